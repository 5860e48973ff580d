# SPDX-License-Identifier: Apache-2.0
"""Detailed lists of ARQs, in one SELECT, and their histories."""

from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.db.arqs import arqs, binding, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device
from cyborg_lite.errors.arqs import ArqNotFound
from cyborg_lite.model.arqs.arqs import Arq, Scope, State
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import ANY_PROJECT, BIND_JOB, BOUND_EVENT_JOB
from tests.builders.rows import OWNER, PROJECT, add_arqs, add_card, bindings
from tests.support.sql_statements import statements


def create_bound_arqs(database: Database, number: int) -> list[str]:
    uuids, card = add_arqs(database, number), add_card(database, number)
    binding_by_arq = bindings(uuids, card)
    job = database.write(
        binding.accept_bind, binding_by_arq, ANY_PROJECT, BIND_JOB, OWNER
    )
    database.write(binding.claim_for_bind, job, uuids, None, BOUND_EVENT_JOB)
    return uuids


def list_arqs(database: Database, **query: object) -> tuple[Arq, ...]:
    list_query = Query(**{'detailed': True, **query})  # type: ignore[arg-type]  # any field
    return database.read(arqs.list_arqs, list_query, ANY_PROJECT)


def test_list_arqs_detailed_has_device_and_state_times(database: Database) -> None:
    uuids = create_bound_arqs(database, 2)
    for arq in list_arqs(database):
        assert arq.uuid in uuids
        assert arq.deployable_uuid
        assert arq.device_uuid
        assert arq.deployable_uuid != arq.device_uuid
        assert set(arq.state_times) == {State.INITIAL, State.BIND_STARTED, State.BOUND}
        began, started, was_bound = sorted(arq.state_times.values())
        assert (began, was_bound) == (arq.created_at, arq.state_times[State.BOUND])
        assert started == arq.state_times[State.BIND_STARTED]


def test_list_arqs_detailed_state_time_is_latest(database: Database) -> None:
    (uuid,) = create_bound_arqs(database, 1)
    (before,) = list_arqs(database)
    database.write(release.unbind_arqs, [uuid], ANY_PROJECT, None)
    binding_by_arq = bindings([uuid], add_card(database, 1))
    database.write(binding.accept_bind, binding_by_arq, ANY_PROJECT, BIND_JOB, OWNER)
    (after,) = list_arqs(database)
    started = State.BIND_STARTED
    assert after.state_times[started] > before.state_times[started]
    assert after.state_times[State.BOUND] == before.state_times[State.BOUND]


def test_list_arqs_detailed_pages_cost_one_statement_each(database: Database) -> None:
    uuids = create_bound_arqs(database, 5)
    with statements(database) as sql:
        first = list_arqs(database, limit=3)
        second_page = list_arqs(database, limit=3, marker=first[-1].uuid)
    assert len(sql) == 2
    assert [arq.uuid for arq in (*first, *second_page)] == uuids


@pytest.mark.parametrize('health', [Health.FAILED, Health.GONE])
def test_list_arqs_detailed_unusable_device_sets_status_reason(
    database: Database, health: Health
) -> None:
    create_bound_arqs(database, 1)
    add_arqs(database, 1)

    def become(health: Health, reason: str) -> None:
        values = {'health': health, 'health_reason': reason}
        database.write(lambda session: session.execute(update(Device).values(values)))

    become(health, 'all ones')
    reasons = {arq.state: arq.status_reason for arq in list_arqs(database)}
    loss = f'The device is {health}: all ones'
    assert reasons == {State.UNKNOWN: loss, State.INITIAL: None}
    (affected,) = list_arqs(
        database, detailed=False, filters={'state': (State.UNKNOWN.value,)}
    )
    assert (affected.device_loss, affected.status_reason) == (loss, None)
    assert affected.attach_handle_uuid
    become(Health.OK, '')
    assert {arq.status_reason for arq in list_arqs(database)} == {None}
    states = {arq.state for arq in list_arqs(database)}
    assert states == {State.BOUND, State.INITIAL}


def test_list_arqs_detailed_initial_arq_has_no_device(database: Database) -> None:
    add_arqs(database, 1)
    (arq,) = list_arqs(database)
    assert (arq.deployable_uuid, arq.device_uuid) == (None, None)
    assert arq.state_times == {State.INITIAL: arq.created_at}


def test_list_arqs_not_detailed_has_no_device(database: Database) -> None:
    create_bound_arqs(database, 1)
    (arq,) = list_arqs(database, detailed=False)
    assert (arq.device_uuid, arq.state_times) == (None, {})


@pytest.mark.parametrize('name', ['hostname', 'project_id', 'device_profile_name'])
def test_list_arqs_filters_by_field(database: Database, name: str) -> None:
    create_bound_arqs(database, 1)
    add_arqs(database, 1, project='other')
    arq = list_arqs(database)[0]
    (match,) = list_arqs(database, filters={name: (getattr(arq, name),)})
    assert match.uuid == arq.uuid
    assert list_arqs(database, filters={name: ('x',)}) == ()


def test_list_steps_other_project_raises_not_found(database: Database) -> None:
    (uuid,) = add_arqs(database, 1)
    assert len(database.read(arqs.list_steps, uuid, Scope(PROJECT))) == 1
    for scope, arq_uuid in ((Scope('other'), uuid), (ANY_PROJECT, str(uuid4()))):
        with pytest.raises(ArqNotFound):
            database.read(arqs.list_steps, arq_uuid, scope)


def test_list_steps_costs_one_statement(database: Database) -> None:
    (uuid,) = create_bound_arqs(database, 1)
    with statements(database) as sql:
        steps = database.read(arqs.list_steps, uuid, ANY_PROJECT)
    assert len(sql) == 1
    assert [step.step for step in steps] == ['Initial', 'BindStarted', 'Bound']
