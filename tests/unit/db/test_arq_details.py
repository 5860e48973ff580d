# SPDX-License-Identifier: Apache-2.0
"""What a detailed list of requests tells besides, still in one SELECT."""

from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.db import arqs, binding, history, release
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Device
from cyborg_lite.exceptions import ArqNotFound
from cyborg_lite.model.arqs import Arq, Scope, State
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.queries import Query
from tests.fakes.rows import OWNER, PROJECT, add_arqs, add_card, bindings
from tests.fakes.statements import statements
from tests.unit.db.test_binding import BIND, BOUND, EVERYBODY


def bound(database: Database, number: int) -> list[str]:
    uuids, card = add_arqs(database, number), add_card(database, number)
    wanted = bindings(uuids, card)
    job = database.write(binding.accept, wanted, EVERYBODY, BIND, OWNER)
    database.write(binding.claim, job, uuids, None, BOUND)
    return uuids


def listed(database: Database, **query: object) -> tuple[Arq, ...]:
    wanted = Query(**{'detailed': True, **query})  # type: ignore[arg-type]  # any field
    return database.read(arqs.listed, wanted, EVERYBODY)


def test_a_request_knows_its_device_and_when_it_came_to_each_state(
    database: Database,
) -> None:
    uuids = bound(database, 2)
    for arq in listed(database):
        assert arq.uuid in uuids
        assert arq.deployable_uuid
        assert arq.device_uuid
        assert arq.deployable_uuid != arq.device_uuid
        assert set(arq.state_times) == {State.INITIAL, State.BIND_STARTED, State.BOUND}
        began, started, was_bound = sorted(arq.state_times.values())
        assert (began, was_bound) == (arq.created_at, arq.state_times[State.BOUND])
        assert started == arq.state_times[State.BIND_STARTED]


def test_the_time_of_a_state_is_the_last_one(database: Database) -> None:
    (uuid,) = bound(database, 1)
    (before,) = listed(database)
    database.write(release.unbind, [uuid], EVERYBODY, None)
    wanted = bindings([uuid], add_card(database, 1))
    database.write(binding.accept, wanted, EVERYBODY, BIND, OWNER)
    (after,) = listed(database)
    started = State.BIND_STARTED
    assert after.state_times[started] > before.state_times[started]
    assert after.state_times[State.BOUND] == before.state_times[State.BOUND]


def test_details_cost_no_further_statement_and_leave_pages_as_they_are(
    database: Database,
) -> None:
    uuids = bound(database, 5)
    with statements(database) as seen:
        first = listed(database, limit=3)
        rest = listed(database, limit=3, marker=first[-1].uuid)
    assert len(seen) == 2
    assert [arq.uuid for arq in (*first, *rest)] == uuids


@pytest.mark.parametrize('health', [Health.FAILED, Health.GONE])
def test_a_request_says_what_is_wrong_with_its_device_while_it_is(
    database: Database, health: Health
) -> None:
    bound(database, 1)
    add_arqs(database, 1)

    def become(health: Health, reason: str) -> None:
        values = {'health': health, 'health_reason': reason}
        database.write(lambda session: session.execute(update(Device).values(values)))

    become(health, 'all ones')
    reasons = {arq.state: arq.status_reason for arq in listed(database)}
    wrong = f'Its device is {health}: all ones'
    assert reasons == {State.BOUND: wrong, State.INITIAL: None}
    become(Health.OK, '')
    assert {arq.status_reason for arq in listed(database)} == {None}


def test_what_holds_nothing_has_no_device(database: Database) -> None:
    add_arqs(database, 1)
    (arq,) = listed(database)
    assert (arq.deployable_uuid, arq.device_uuid) == (None, None)
    assert arq.state_times == {State.INITIAL: arq.created_at}


def test_who_does_not_ask_is_not_told(database: Database) -> None:
    bound(database, 1)
    (arq,) = listed(database, detailed=False)
    assert (arq.device_uuid, arq.state_times) == (None, {})


@pytest.mark.parametrize('name', ['hostname', 'project_id', 'device_profile_name'])
def test_requests_are_picked_by_what_they_are(database: Database, name: str) -> None:
    bound(database, 1)
    add_arqs(database, 1, project='other')
    one = listed(database)[0]
    (found,) = listed(database, filters={name: (getattr(one, name),)})
    assert found.uuid == one.uuid
    assert listed(database, filters={name: ('x',)}) == ()


def test_a_history_is_read_by_its_project_alone(database: Database) -> None:
    (uuid,) = add_arqs(database, 1)
    assert len(database.read(history.steps, uuid, Scope(PROJECT))) == 1
    for scope, wanted in ((Scope('other'), uuid), (EVERYBODY, str(uuid4()))):
        with pytest.raises(ArqNotFound):
            database.read(history.steps, wanted, scope)


def test_a_history_is_one_statement(database: Database) -> None:
    (uuid,) = bound(database, 1)
    with statements(database) as seen:
        steps = database.read(history.steps, uuid, EVERYBODY)
    assert len(seen) == 1
    assert [step.step for step in steps] == ['Initial', 'BindStarted', 'Bound']
