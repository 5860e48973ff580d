# SPDX-License-Identifier: Apache-2.0
"""Lists of the REST API with real SQL: conversations on each database."""

import pytest

from cyborg_lite.db.engine import Database
from tests.builders.rows import add_arqs, add_card
from tests.support.api.conversation import Client
from tests.support.api.stored_conductor import StoredConductor
from tests.support.sql_statements import statements


@pytest.fixture
def newest(database: Database) -> Client:
    """Return a client of an API whose lists come from the database."""
    return Client(StoredConductor(database)).at('2.23')


def count_statements(client: Client, database: Database, path: str) -> int:
    """Return the number of statements of a GET, which must succeed."""
    with statements(database) as collected:
        assert client.get(path).status == 200
    return len(collected)


@pytest.mark.parametrize(
    ('path', 'costly', 'cheap'),
    [
        ('/devices', 'arqs', 'health'),
        ('/deployables', 'attributes_list', 'name'),
        ('/device_profiles', 'groups', 'name'),
        ('/accelerator_requests', 'state_times', 'state'),
    ],
)
def test_fields_need_no_further_statement(
    newest: Client, database: Database, path: str, costly: str, cheap: str
) -> None:
    add_card(database, 2)
    add_arqs(database, 2)
    complete, with_costly, with_cheap = (
        count_statements(newest, database, path + query)
        for query in ('', f'?fields={costly}', f'?fields={cheap}')
    )
    assert complete == with_costly
    assert with_cheap == (complete - 1 if path == '/devices' else complete)


def test_fields_of_list_are_those_of_rows(newest: Client, database: Database) -> None:
    add_card(database, 2)
    (device,) = newest.get('/devices?fields=hostname,model').json['devices']
    assert {**device, 'links': []} == {
        'hostname': 'compute-1',
        'model': 'T4',
        'links': [],
    }
