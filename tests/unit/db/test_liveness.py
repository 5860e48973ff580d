# SPDX-License-Identifier: Apache-2.0
"""Silent or not is told by the database, and each change is one conductor's."""

from datetime import UTC, datetime, timedelta

import pytest

from cyborg_lite.db import binding, clock, jobs, liveness, providers, release
from cyborg_lite.db.engine import Database
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import Job, JobCount, JobState, Kind, NewJob
from cyborg_lite.model.services import Service, ServiceState
from tests.fakes.daemons import (
    call_down,
    call_up,
    fall_silent,
    service_states,
    speak,
)
from tests.fakes.rows import HOST, OWNER, add_arqs, add_card, bindings

EVERYBODY = Scope(project_id=None)
PATIENCE = 100.0


def oldest(database: Database) -> datetime:
    return database.read(clock.ago, PATIENCE)


def misjudged(database: Database) -> dict[str, Service]:
    found = database.read(liveness.misjudged, oldest(database))
    return {service.host: service for service in found}


def turn(database: Database, service: Service) -> bool:
    return database.write(liveness.turn, service, oldest(database))


def test_patience_is_measured_by_the_database(database: Database) -> None:
    span = datetime.now(UTC) - oldest(database)
    assert abs(span - timedelta(seconds=PATIENCE)) < timedelta(seconds=60)


def test_a_daemon_that_speaks_is_left_alone(database: Database) -> None:
    speak(database, 'compute-1')
    assert misjudged(database) == {}


def test_a_daemon_that_fell_silent_is_found_until_it_is_down(
    database: Database,
) -> None:
    speak(database, 'compute-1')
    fall_silent(database, 'compute-2')
    found = misjudged(database)
    assert set(found) == {'compute-2'}
    assert turn(database, found['compute-2'])
    assert misjudged(database) == {}
    assert service_states(database) == {'compute-1': 'up', 'compute-2': 'down'}


def test_a_daemon_that_is_back_is_found_until_it_is_up(database: Database) -> None:
    call_down(database, 'compute-1')
    assert misjudged(database) == {}
    speak(database, 'compute-1')
    assert turn(database, misjudged(database)['compute-1'])
    assert service_states(database) == {'compute-1': 'up'}
    assert misjudged(database) == {}


def test_of_two_conductors_one_makes_the_change(database: Database) -> None:
    fall_silent(database, 'compute-1')
    found = misjudged(database)['compute-1']
    assert [turn(database, found), turn(database, found)] == [True, False]
    assert service_states(database) == {'compute-1': 'down'}


def test_who_speaks_at_the_last_moment_stays_up(database: Database) -> None:
    fall_silent(database, 'compute-1')
    found = misjudged(database)['compute-1']
    speak(database, 'compute-1')
    assert not turn(database, found)
    assert service_states(database) == {'compute-1': 'up'}


def test_who_falls_silent_again_at_the_last_moment_stays_down(
    database: Database,
) -> None:
    call_down(database, 'compute-1')
    speak(database, 'compute-1')
    found = misjudged(database)['compute-1']
    fall_silent(database, 'compute-1')
    assert not turn(database, found)
    assert service_states(database) == {'compute-1': 'down'}


def test_placement_follows_an_agent_both_ways(database: Database) -> None:
    fall_silent(database, 'compute-1')
    assert turn(database, misjudged(database)['compute-1'])
    sync = JobCount(Kind.PLACEMENT_SYNC, JobState.WAITING, 1)
    assert database.read(jobs.count) == (sync,)
    speak(database, 'compute-1')
    assert turn(database, misjudged(database)['compute-1'])
    # The one that waits will see the last state.
    assert database.read(jobs.count) == (sync,)


def test_a_lost_change_calls_for_nothing(database: Database) -> None:
    fall_silent(database, 'compute-1')
    found = misjudged(database)['compute-1']
    call_up(database, 'compute-1')
    assert not turn(database, found)
    assert database.read(jobs.count) == ()


def test_placement_has_no_part_in_a_conductor(database: Database) -> None:
    fall_silent(database, 'ctl1', 'cyborg-lite-conductor')
    found = misjudged(database)['ctl1']
    assert found.state is ServiceState.UP
    assert turn(database, found)
    assert service_states(database) == {'ctl1': 'down'}
    assert database.read(jobs.count) == ()


# --- what is bound and released while a host is silent --------------------------------


def reserved(database: Database) -> int:
    (row,) = database.read(providers.providers_of_host, HOST)
    return row.reserved


def syncs(database: Database) -> int:
    """How often Placement would be brought in line; none waits afterwards."""
    taken = database.write(jobs.take, OWNER, 10, [Kind.PLACEMENT_SYNC])
    for job in taken:
        database.write(jobs.finish, job)
    return len(taken)


def accepted(database: Database, needs_host: bool = False) -> tuple[Job, list[str]]:
    card = add_card(database, 4, needs_host=needs_host)
    uuids = add_arqs(database, 1)
    wanted, bind = bindings(uuids, card), NewJob(Kind.BIND)
    job = database.write(binding.accept, wanted, EVERYBODY, bind, OWNER)
    return job, uuids


@pytest.mark.parametrize('silent', [True, False])
def test_a_unit_that_is_claimed_on_a_silent_host_is_not_reserved_any_more(
    database: Database, silent: bool
) -> None:
    job, uuids = accepted(database)
    (call_down if silent else call_up)(database, HOST)
    assert reserved(database) == (4 if silent else 0)
    database.write(binding.claim, job, uuids, None, NewJob(Kind.NOVA_EVENT))
    assert reserved(database) == (3 if silent else 0)
    assert syncs(database) == int(silent)


@pytest.mark.parametrize('silent', [True, False])
def test_a_unit_that_is_released_on_a_silent_host_is_reserved_at_once(
    database: Database, silent: bool
) -> None:
    job, uuids = accepted(database)
    database.write(binding.claim, job, uuids, None, NewJob(Kind.NOVA_EVENT))
    (call_down if silent else call_up)(database, HOST)
    assert reserved(database) == (3 if silent else 0)
    database.write(release.delete_listed, uuids, EVERYBODY, True, None)
    assert reserved(database) == (4 if silent else 0)
    assert syncs(database) == int(silent)


def test_a_unit_of_a_bind_that_failed_on_a_silent_host_is_reserved(
    database: Database,
) -> None:
    job, uuids = accepted(database, needs_host=True)
    told = NewJob(Kind.NOVA_EVENT)
    job = database.write(binding.claim, job, uuids, None, told).job
    call_down(database, HOST)
    assert reserved(database) == 3
    syncs(database)
    database.write(binding.fail, job, uuids, 'no answer', told)
    assert reserved(database) == 4
    assert syncs(database) == 1
