# SPDX-License-Identifier: Apache-2.0
"""Lists of the REST API with real SQL, on each database."""

import pytest

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.profiles.device_profiles import ProfileChange
from tests.builders.provider_rows import change_deployable
from tests.builders.rows import add_arqs, add_card, add_profile
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import Client
from tests.support.sql_statements import statements


@pytest.fixture
def newest(database: Database) -> Client:
    """Return a client of an API whose lists come from the database."""
    return Client(LocalConductor(database)).at('2.7')


def count_statements(client: Client, database: Database, path: str) -> int:
    """Return the number of statements of a GET, which must succeed."""
    with statements(database) as collected:
        assert client.get(path).status == 200
    return len(collected)


@pytest.mark.parametrize(
    ('path', 'costly', 'cheap'),
    [
        ('/devices', 'arqs', 'health'),
        ('/deployables', 'attributes', 'name'),
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
    has_second = path in ('/devices', '/deployables')
    assert with_cheap == complete - has_second


def test_fields_of_list_are_those_of_rows(newest: Client, database: Database) -> None:
    add_card(database, 2)
    (device,) = newest.get('/devices?fields=hostname,model').json['devices']
    assert {**device, 'links': []} == {
        'hostname': 'compute-1',
        'model': 'T4',
        'links': [],
    }


@pytest.mark.parametrize(
    ('prefix', 'names'),
    [
        ('gpu', ['gpu', 'gpu%', 'gpu_x', 'gpuax']),
        ('GPU', ['GPU-A']),
        ('gpu_', ['gpu_x']),
        ('gpu%25', ['gpu%']),
        ('%25', []),
        ('gpu%20', []),
        ('gpu/', []),
        ('gpu%5C', []),
        ('%C3%A9', ['ét']),
        ('e', []),
        ('%C3%89', []),
        ("gpu'", []),
        ('%F0%9F%92%BB', ['💻1']),
        ('x' * 255, []),
    ],
)
def test_prefix_is_literal_and_distinguishes_case(
    newest: Client, database: Database, prefix: str, names: list[str]
) -> None:
    for name in ('gpu', 'GPU-A', 'gpu_x', 'gpuax', 'gpu%', 'ét', '💻1'):
        provider = add_card(database, 1)
        change_deployable(database, provider, name=name)
    path = f'/deployables?name_prefix={prefix}&sort_key=name'
    objects = newest.get(path).json['deployables']
    assert sorted(item['name'] for item in objects) == sorted(names)


def test_prefix_of_profiles_ignores_former_names(
    newest: Client, database: Database
) -> None:
    name = add_profile(database, [{'resources:PGPU': '1'}])
    path = f'/device_profiles?name_prefix={name[:-1]}&fields=name'
    (profile,) = newest.get(path).json['device_profiles']
    assert profile['name'] == name
    change = ProfileChange(('name',), name='renamed')
    uuid = newest.get('/device_profiles').json['device_profiles'][0]['uuid']
    database.write(profiles.update_profile, uuid, change)
    assert newest.get(path).json['device_profiles'] == []
