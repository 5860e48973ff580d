# SPDX-License-Identifier: Apache-2.0
"""Lists of ARQs, and their state while the agent of their host is down."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq as Row
from cyborg_lite.model.arqs.arqs import STORED_STATES, Arq, State
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import ANY_PROJECT
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.rows import HOST
from tests.builders.service_rows import expire_heartbeat, mark_down, mark_up
from tests.builders.table_rows import change_rows, read_column
from tests.support.sql_statements import statements


def list_arqs(database: Database, **filters: tuple[str, ...]) -> tuple[Arq, ...]:
    return database.read(arqs.list_arqs, Query(filters=filters), ANY_PROJECT)


def read_only_arq(database: Database) -> Arq:
    (arq,) = list_arqs(database)
    return arq


def test_list_arqs_host_down_shows_unknown_until_up(database: Database) -> None:
    create_bound_arqs(database, 1)
    reported_states = []
    for change in (mark_up, mark_down, mark_up):
        change(database, HOST)
        reported_states.append(read_only_arq(database).state)
        assert read_column(database, select(Row.state)) == ['Bound']
    assert reported_states == [State.BOUND, State.UNKNOWN, State.BOUND]


@pytest.mark.parametrize(
    ('needs_host', 'state'), [(True, State.UNKNOWN), (False, State.BOUND)]
)
def test_list_arqs_host_down_changes_state_only(
    database: Database, needs_host: bool, state: State
) -> None:
    create_bound_arqs(database, 1, needs_host=needs_host)
    before = read_only_arq(database)
    mark_down(database, HOST)
    assert read_only_arq(database) == replace(before, state=state)
    assert before.attach_handle_uuid is not None
    assert before.needs_host is needs_host


@pytest.mark.parametrize('state', sorted(STORED_STATES - {State.BOUND}))
def test_list_arqs_host_down_other_states_are_unchanged(
    database: Database, state: State
) -> None:
    create_bound_arqs(database, 1)
    mark_down(database, HOST)
    change_rows(database, Row, state=state)
    assert read_only_arq(database).state is state


def test_list_arqs_other_services_down_stays_bound(database: Database) -> None:
    create_bound_arqs(database, 1)
    mark_down(database, 'compute-2')
    expire_heartbeat(database, HOST, 'cyborg-lite-conductor')
    assert read_only_arq(database).state is State.BOUND


def test_list_arqs_costs_one_statement(database: Database) -> None:
    create_bound_arqs(database, 1)
    create_bound_arqs(database, 1, needs_host=False)
    mark_down(database, HOST)
    with statements(database) as sql:
        assert len(list_arqs(database)) == 2
    assert len(sql) == 1


def test_list_arqs_of_instance_equals_filtered_list(database: Database) -> None:
    """The list of one instance has a statement of its own."""
    create_bound_arqs(database, 1)
    create_bound_arqs(database, 1, needs_host=False)
    for arq in list_arqs(database):
        of_instance = list_arqs(database, instance_uuid=(str(arq.instance_uuid),))
        assert of_instance == (arq,)


@pytest.mark.parametrize(
    'instances', [(), ('\0',), ('8c55b27f-9a40-4c0a-9ce9-6d2f1e8f5d0a',)]
)
def test_list_arqs_of_other_instance_is_empty(
    database: Database, instances: tuple[str, ...]
) -> None:
    create_bound_arqs(database, 1, needs_host=False)
    assert list_arqs(database, instance_uuid=instances) == ()


def test_list_arqs_detailed_pages_cost_one_statement_each(database: Database) -> None:
    uuids = create_bound_arqs(database, 5, needs_host=False)
    query = Query(detailed=True, limit=3)
    with statements(database) as sql:
        first = database.read(arqs.list_arqs, query, ANY_PROJECT)
        following = replace(query, marker=first[-1].uuid)
        second = database.read(arqs.list_arqs, following, ANY_PROJECT)
    assert len(sql) == 2
    assert [arq.uuid for arq in (*first, *second)] == uuids
