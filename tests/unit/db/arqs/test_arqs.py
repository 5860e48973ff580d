# SPDX-License-Identifier: Apache-2.0
"""Lists of ARQs, and their state while the agent of their host is down."""

from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import arqs, binding
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq as Row
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.arqs.arqs import STORED_STATES, Arq, Scope, State
from cyborg_lite.model.jobs import NewJob
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import (
    ANY_PROJECT,
    BIND_JOB,
    BOUND_EVENT_JOB,
    complete_bind,
)
from tests.builders.rows import HOST, OWNER, add_arqs, add_card, bindings
from tests.builders.service_rows import expire_heartbeat, mark_down, mark_up
from tests.support.sql_statements import statements


def create_bound_arq(database: Database, *, needs_host: bool, host: str = HOST) -> str:
    """Create one bound ARQ of a new instance and return its uuid."""
    uuids = add_arqs(database, 1)
    card = add_card(database, 1, needs_host=needs_host)
    binding_by_arq = {
        uuid: replace(arq_binding, hostname=host)
        for uuid, arq_binding in bindings(uuids, card, str(uuid4())).items()
    }
    bind_job, event_job = NewJob(OperationKind.BIND), NewJob(OperationKind.NOVA_EVENT)
    job = database.write(
        binding.accept_bind, binding_by_arq, ANY_PROJECT, bind_job, OWNER
    )
    claimed = database.write(binding.claim_for_bind, job, uuids, None, event_job)
    if claimed.handles:
        complete_bind(database, claimed.job, uuids, event_job)
    return uuids[0]


def list_arqs(database: Database, **filters: tuple[str, ...]) -> tuple[Arq, ...]:
    return database.read(arqs.list_arqs, Query(filters=filters), ANY_PROJECT)


def read_only_arq(database: Database) -> Arq:
    (arq,) = list_arqs(database)
    return arq


def read_stored_states(database: Database) -> list[str]:
    return database.read(_select_states)


def _select_states(session: Session) -> list[str]:
    return list(session.scalars(select(Row.state)))


def test_list_arqs_host_down_shows_unknown_until_up(database: Database) -> None:
    create_bound_arq(database, needs_host=True)
    reported_states = []
    for change in (mark_up, mark_down, mark_up):
        change(database, HOST)
        reported_states.append(read_only_arq(database).state)
        assert read_stored_states(database) == ['Bound']
    assert reported_states == [State.BOUND, State.UNKNOWN, State.BOUND]


def test_list_arqs_host_down_still_shows_handle(database: Database) -> None:
    create_bound_arq(database, needs_host=True)
    before = read_only_arq(database)
    mark_down(database, HOST)
    assert read_only_arq(database) == replace(before, state=State.UNKNOWN)
    assert before.attach_handle_uuid is not None
    assert before.needs_host


def test_list_arqs_host_down_passthrough_stays_bound(database: Database) -> None:
    create_bound_arq(database, needs_host=False)
    mark_down(database, HOST)
    arq = read_only_arq(database)
    assert (arq.state, arq.needs_host) == (State.BOUND, False)


@pytest.mark.parametrize('state', sorted(STORED_STATES - {State.BOUND}))
def test_list_arqs_host_down_other_states_are_unchanged(
    database: Database, state: State
) -> None:
    create_bound_arq(database, needs_host=True)
    mark_down(database, HOST)
    database.write(lambda session: session.execute(update(Row).values(state=state)))
    assert read_only_arq(database).state is state


def test_list_arqs_other_services_down_stays_bound(database: Database) -> None:
    create_bound_arq(database, needs_host=True)
    mark_down(database, 'compute-2')
    expire_heartbeat(database, HOST, 'cyborg-lite-conductor')
    assert read_only_arq(database).state is State.BOUND


@pytest.mark.parametrize('sort_key', [None, 'uuid', 'created_at'])
@pytest.mark.parametrize('descending', [False, True])
@pytest.mark.parametrize('detailed', [False, True])
def test_list_arqs_marker_does_not_reveal_foreign(
    database: Database, sort_key: str | None, descending: bool, detailed: bool
) -> None:
    """The ARQs before and after the marker belong to the caller."""
    _first, marker, _last = add_arqs(database, 3)

    def change_owner(session: Session) -> None:
        session.execute(update(Row).values(project_id='mine'))
        foreign = update(Row).where(Row.uuid == marker)
        session.execute(foreign.values(project_id='other'))

    database.write(change_owner)
    query = Query(
        marker=marker, sort_key=sort_key, descending=descending, detailed=detailed
    )
    with pytest.raises(InvalidInput, match='is not in the collection'):
        database.read(arqs.list_arqs, query, Scope('mine'))
    database.read(arqs.list_arqs, query, Scope('other'))
    database.read(arqs.list_arqs, query, ANY_PROJECT)


def test_list_arqs_costs_one_statement(database: Database) -> None:
    create_bound_arq(database, needs_host=True)
    create_bound_arq(database, needs_host=False)
    mark_down(database, HOST)
    with statements(database) as sql:
        assert len(list_arqs(database)) == 2
    assert len(sql) == 1


def test_list_arqs_of_instance_equals_filtered_list(database: Database) -> None:
    """The list of one instance has a statement of its own."""
    create_bound_arq(database, needs_host=True)
    create_bound_arq(database, needs_host=False)
    for arq in list_arqs(database):
        of_instance = list_arqs(database, instance_uuid=(str(arq.instance_uuid),))
        assert of_instance == (arq,)


@pytest.mark.parametrize(
    'instances', [(), ('\0',), ('8c55b27f-9a40-4c0a-9ce9-6d2f1e8f5d0a',)]
)
def test_list_arqs_of_other_instance_is_empty(
    database: Database, instances: tuple[str, ...]
) -> None:
    create_bound_arq(database, needs_host=False)
    assert list_arqs(database, instance_uuid=instances) == ()


# --- detailed lists of ARQs, in one SELECT, and their histories ---------------------


def bind_arqs(database: Database, number: int) -> list[str]:
    uuids, card = add_arqs(database, number), add_card(database, number)
    binding_by_arq = bindings(uuids, card)
    job = database.write(
        binding.accept_bind, binding_by_arq, ANY_PROJECT, BIND_JOB, OWNER
    )
    database.write(binding.claim_for_bind, job, uuids, None, BOUND_EVENT_JOB)
    return uuids


def list_detailed(database: Database, **query: object) -> tuple[Arq, ...]:
    list_query = Query(**{'detailed': True, **query})  # type: ignore[arg-type]  # any field
    return database.read(arqs.list_arqs, list_query, ANY_PROJECT)


def test_list_arqs_detailed_pages_cost_one_statement_each(database: Database) -> None:
    uuids = bind_arqs(database, 5)
    with statements(database) as sql:
        first = list_detailed(database, limit=3)
        second_page = list_detailed(database, limit=3, marker=first[-1].uuid)
    assert len(sql) == 2
    assert [arq.uuid for arq in (*first, *second_page)] == uuids
