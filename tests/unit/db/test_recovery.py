# SPDX-License-Identifier: Apache-2.0
"""From Bound to Provisioning and back, or to BindFailed, with Nova told of it."""

from collections.abc import Sequence

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db import (
    arqs,
    handles,
    heartbeats,
    history,
    jobs,
    recovery,
    release,
    services,
)
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Arq
from cyborg_lite.model.arqs import Scope, State
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.host_events import Outcome
from cyborg_lite.model.jobs import Job, Kind
from cyborg_lite.model.queries import Query
from cyborg_lite.model.services import Vitals
from tests.fakes.bound_rows import bound
from tests.fakes.rows import HOST, OWNER

EVERYBODY = Scope(project_id=None)
LIMIT = 60_000


@pytest.fixture
def booted_once(database: Database) -> Database:
    """It knows the host since a boot."""
    database.write(services.keep_digest, HOST, 'digest', 'boot-1')
    return database


def states(database: Database, uuids: Sequence[str]) -> list[str]:
    found = {
        arq.uuid: arq.state for arq in database.read(arqs.listed, Query(), EVERYBODY)
    }
    return [found[uuid] for uuid in uuids]


def held(database: Database, uuids: Sequence[str]) -> dict[str, HeldHandle]:
    """By request."""
    return {one.arq_uuid: one for one in database.read(handles.held, uuids)}


def boot(database: Database, boot_id: str = 'boot-2') -> bool:
    return database.write(recovery.notice_boot, HOST, boot_id)


def settle(
    database: Database,
    rebuilt: Sequence[str] = (),
    lost: dict[str, str] | None = None,
) -> tuple[HeldHandle, ...]:
    outcome = Outcome(HOST, 'boot-2', tuple(rebuilt), lost or {})
    return database.write(recovery.settle, outcome, LIMIT)


def waiting(database: Database) -> list[Job]:
    return list(database.write(jobs.take, OWNER, 99))


def told(database: Database) -> list[tuple[list[str], bool]]:
    """What Nova is about to hear."""
    return [
        (job.payload['arqs'], job.payload['succeeded'])
        for job in waiting(database)
        if job.kind == Kind.NOVA_EVENT
    ]


# --- the boot ----------------------------------------------------------------------


def test_a_boot_makes_what_needs_the_host_provisioning(booted_once: Database) -> None:
    on_host = bound(booted_once, 2)
    by_itself = bound(booted_once, 1, needs_host=False)
    assert boot(booted_once)
    assert states(booted_once, on_host) == [State.PROVISIONING] * 2
    assert states(booted_once, by_itself) == [State.BOUND]
    last = booted_once.read(history.steps, on_host[0], EVERYBODY)[-1]
    assert (last.step, last.actor) == ('Provisioning', 'conductor')


def test_a_boot_is_noticed_once(booted_once: Database) -> None:
    uuids = bound(booted_once, 1)
    assert boot(booted_once)
    steps = len(booted_once.read(history.steps, uuids[0], EVERYBODY))
    assert not boot(booted_once)
    assert len(booted_once.read(history.steps, uuids[0], EVERYBODY)) == steps


@pytest.mark.parametrize('boot_id', ['boot-1', ''])
def test_no_boot_is_no_news(booted_once: Database, boot_id: str) -> None:
    uuids = bound(booted_once, 1)
    assert not boot(booted_once, boot_id)
    assert states(booted_once, uuids) == [State.BOUND]


def test_the_first_boot_that_we_hear_of_is_no_news(database: Database) -> None:
    uuids = bound(database, 1)
    services_row = database.write(services.beat, services.AGENT, HOST, '1.0')
    assert services_row is None
    assert not boot(database, 'boot-1')
    assert states(database, uuids) == [State.BOUND]


def test_after_a_boot_the_inventory_is_asked_for(booted_once: Database) -> None:
    boot(booted_once)
    assert booted_once.read(services.held, HOST) == (None, 'boot-2')


def test_another_host_is_left_alone(booted_once: Database) -> None:
    uuids = bound(booted_once, 1)
    booted_once.write(services.keep_digest, 'compute-2', 'digest', 'boot-1')
    assert booted_once.write(recovery.notice_boot, 'compute-2', 'boot-2')
    assert states(booted_once, uuids) == [State.BOUND]


def test_a_heartbeat_is_enough_to_notice_it(booted_once: Database) -> None:
    uuids = bound(booted_once, 1)
    same, other = Vitals('boot-1'), Vitals('boot-2')
    hear = heartbeats.hear
    assert not booted_once.write(hear, HOST, '1.0', 'digest', same)
    assert states(booted_once, uuids) == [State.BOUND]
    assert booted_once.write(hear, HOST, '1.0', 'digest', other)
    assert states(booted_once, uuids) == [State.PROVISIONING]


# --- the outcome ----------------------------------------------------------------


def test_what_was_rebuilt_is_bound_and_nova_hears_of_it(booted_once: Database) -> None:
    uuids = bound(booted_once, 2)
    boot(booted_once)
    assert (
        settle(booted_once, [h.uuid for h in held(booted_once, uuids).values()]) == ()
    )
    assert states(booted_once, uuids) == [State.BOUND] * 2
    assert told(booted_once) == [(sorted(uuids), True)]
    steps = [one.step for one in booted_once.read(history.steps, uuids[0], EVERYBODY)]
    assert steps[-3:] == ['Bound', 'Provisioning', 'Bound']


def test_an_outcome_that_comes_before_the_news_of_the_boot_counts(
    booted_once: Database,
) -> None:
    uuids = bound(booted_once, 1)
    settle(booted_once, [h.uuid for h in held(booted_once, uuids).values()])
    assert states(booted_once, uuids) == [State.BOUND]
    assert told(booted_once) == [(uuids, True)]
    assert not boot(booted_once)


def test_to_tell_it_again_changes_nothing(booted_once: Database) -> None:
    uuids = bound(booted_once, 1)
    rebuilt = [handle.uuid for handle in held(booted_once, uuids).values()]
    settle(booted_once, rebuilt)
    waiting(booted_once)
    settle(booted_once, rebuilt)
    assert told(booted_once) == []


def test_what_was_lost_fails_with_its_reason_and_is_released(
    booted_once: Database,
) -> None:
    """The rest goes on."""
    kept, gone = uuids = bound(booted_once, 2)
    handle = held(booted_once, uuids)
    boot(booted_once)
    lost = {handle[gone].uuid: 'No such type.' + 'x' * 999}
    assert settle(booted_once, [handle[kept].uuid], lost) == ()
    assert states(booted_once, uuids) == [State.BOUND, State.BIND_FAILED]
    after = waiting(booted_once)
    assert sorted(
        (job.payload['arqs'], job.payload['succeeded'])
        for job in after
        if job.kind == Kind.NOVA_EVENT
    ) == sorted([([kept], True), ([gone], False)])
    (cleaning,) = (job for job in after if job.kind == Kind.RELEASE)
    assert cleaning.payload == {'handle': handle[gone].uuid}
    last = booted_once.read(history.steps, gone, EVERYBODY)[-1]
    assert (last.step, last.actor) == ('BindFailed', 'agent')
    assert last.reason is not None
    assert last.reason.startswith('No such type.')
    assert booted_once.read(_reason, gone) == last.reason
    assert booted_once.read(handles.to_clean, handle[gone].uuid) is not None


def _reason(session: Session, uuid: str) -> str | None:
    return session.scalar(select(Arq.status_reason).where(Arq.uuid == uuid))


def test_what_the_agent_does_not_mention_is_asked_for(booted_once: Database) -> None:
    uuids = bound(booted_once, 2)
    first, second = held(booted_once, uuids).values()
    assert [one.uuid for one in settle(booted_once, [first.uuid])] == [second.uuid]
    assert [one.uuid for one in settle(booted_once)] == [second.uuid]
    assert settle(booted_once, [second.uuid]) == ()
    assert states(booted_once, uuids) == [State.BOUND] * 2


def test_an_agent_cannot_speak_for_another_host(booted_once: Database) -> None:
    uuids = bound(booted_once, 1)
    boot(booted_once)
    handle = held(booted_once, uuids)[uuids[0]].uuid
    outcome = Outcome('compute-2', 'boot-2', (handle,), {})
    assert booted_once.write(recovery.settle, outcome, LIMIT) == ()
    assert states(booted_once, uuids) == [State.PROVISIONING]


def test_what_was_deleted_meanwhile_stays_so(booted_once: Database) -> None:
    uuids = bound(booted_once, 1)
    boot(booted_once)
    rebuilt = [handle.uuid for handle in held(booted_once, uuids).values()]
    booted_once.write(release.delete_listed, uuids, EVERYBODY, True, None)
    assert settle(booted_once, rebuilt) == ()
    assert states(booted_once, uuids) == [State.DELETING]
    assert told(booted_once) == []


def test_a_second_boot_before_the_outcome_changes_nothing(
    booted_once: Database,
) -> None:
    uuids = bound(booted_once, 1)
    boot(booted_once)
    boot(booted_once, 'boot-3')
    assert states(booted_once, uuids) == [State.PROVISIONING]
