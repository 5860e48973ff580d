# SPDX-License-Identifier: Apache-2.0
"""Services up and down: the database clock decides, one conductor changes."""

from datetime import UTC, datetime, timedelta

import pytest

from cyborg_lite.db.arqs import binding, release
from cyborg_lite.db.core import clock
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.hosts.services import Service, ServiceState
from cyborg_lite.model.jobs import Job, JobCount, JobState, JobType, NewJob
from tests.builders.rows import HOST, OWNER, add_arqs, add_card, bindings
from tests.builders.service_rows import (
    expire_heartbeat,
    mark_down,
    mark_up,
    record_heartbeat,
    service_states,
)
from tests.support.sql_statements import statements

ANY_PROJECT = Scope(project_id=None)
AGENT_DOWN_AFTER = 100.0


def oldest_heartbeat(database: Database) -> datetime:
    return database.read(clock.read_time_before, AGENT_DOWN_AFTER)


def list_stale_services(database: Database) -> dict[str, Service]:
    stale = database.read(services.list_stale_services, oldest_heartbeat(database))
    return {service.host: service for service in stale}


def switch_state(database: Database, service: Service) -> bool:
    oldest = oldest_heartbeat(database)
    return bool(database.write(services.switch_states, (service,), oldest))


def test_read_time_before_uses_database_clock(database: Database) -> None:
    span = datetime.now(UTC) - oldest_heartbeat(database)
    assert abs(span - timedelta(seconds=AGENT_DOWN_AFTER)) < timedelta(seconds=60)


def test_list_stale_services_recent_heartbeat_is_omitted(database: Database) -> None:
    record_heartbeat(database, 'compute-1')
    assert list_stale_services(database) == {}


def test_switch_state_old_heartbeat_marks_down(database: Database) -> None:
    record_heartbeat(database, 'compute-1')
    expire_heartbeat(database, 'compute-2')
    stale = list_stale_services(database)
    assert set(stale) == {'compute-2'}
    assert switch_state(database, stale['compute-2'])
    assert list_stale_services(database) == {}
    assert service_states(database) == {'compute-1': 'up', 'compute-2': 'down'}


def test_switch_state_new_heartbeat_marks_up(database: Database) -> None:
    mark_down(database, 'compute-1')
    assert list_stale_services(database) == {}
    record_heartbeat(database, 'compute-1')
    assert switch_state(database, list_stale_services(database)['compute-1'])
    assert service_states(database) == {'compute-1': 'up'}
    assert list_stale_services(database) == {}


def test_switch_state_second_conductor_changes_nothing(database: Database) -> None:
    expire_heartbeat(database, 'compute-1')
    service = list_stale_services(database)['compute-1']
    assert [switch_state(database, service), switch_state(database, service)] == [
        True,
        False,
    ]
    assert service_states(database) == {'compute-1': 'down'}


def test_switch_state_heartbeat_meanwhile_stays_up(database: Database) -> None:
    expire_heartbeat(database, 'compute-1')
    service = list_stale_services(database)['compute-1']
    record_heartbeat(database, 'compute-1')
    assert not switch_state(database, service)
    assert service_states(database) == {'compute-1': 'up'}


def test_switch_state_heartbeat_expires_meanwhile_stays_down(
    database: Database,
) -> None:
    mark_down(database, 'compute-1')
    record_heartbeat(database, 'compute-1')
    service = list_stale_services(database)['compute-1']
    expire_heartbeat(database, 'compute-1')
    assert not switch_state(database, service)
    assert service_states(database) == {'compute-1': 'down'}


def test_switch_state_agent_adds_placement_sync(database: Database) -> None:
    expire_heartbeat(database, 'compute-1')
    assert switch_state(database, list_stale_services(database)['compute-1'])
    sync = JobCount(JobType.PLACEMENT_SYNC, JobState.WAITING, 1)
    assert database.read(queue.count_jobs) == (sync,)
    record_heartbeat(database, 'compute-1')
    assert switch_state(database, list_stale_services(database)['compute-1'])
    # The waiting job will read the last state.
    assert database.read(queue.count_jobs) == (sync,)


def test_switch_state_without_change_adds_no_sync(database: Database) -> None:
    expire_heartbeat(database, 'compute-1')
    service = list_stale_services(database)['compute-1']
    mark_up(database, 'compute-1')
    assert not switch_state(database, service)
    assert database.read(queue.count_jobs) == ()


def test_switch_state_conductor_adds_no_sync(database: Database) -> None:
    expire_heartbeat(database, 'ctl1', 'cyborg-lite-conductor')
    service = list_stale_services(database)['ctl1']
    assert service.state is ServiceState.UP
    assert switch_state(database, service)
    assert service_states(database) == {'ctl1': 'down'}
    assert database.read(queue.count_jobs) == ()


# --- bind and release while a host is down --------------------------------------------


def read_reserved(database: Database) -> int:
    (row,) = database.read(providers.list_providers_of_host, HOST)
    return row.reserved


def finish_sync_jobs(database: Database) -> int:
    """Finish all waiting jobs of the Placement sync; return their number."""
    jobs = database.write(queue.lease_jobs, OWNER, 10, [JobType.PLACEMENT_SYNC])
    for job in jobs:
        database.write(queue.finish_job, job)
    return len(jobs)


def accept_bind(database: Database, needs_host: bool = False) -> tuple[Job, list[str]]:
    card = add_card(database, 4, needs_host=needs_host)
    uuids = add_arqs(database, 1)
    binding_by_arq, bind = bindings(uuids, card), NewJob(JobType.BIND)
    job = database.write(binding.accept_bind, binding_by_arq, ANY_PROJECT, bind, OWNER)
    return job, uuids


@pytest.mark.parametrize('down', [True, False])
def test_claim_handle_host_down_ends_reservation(
    database: Database, down: bool
) -> None:
    job, uuids = accept_bind(database)
    (mark_down if down else mark_up)(database, HOST)
    assert read_reserved(database) == (4 if down else 0)
    database.write(binding.claim_for_bind, job, uuids, None, NewJob(JobType.NOVA_EVENT))
    assert read_reserved(database) == (3 if down else 0)
    assert finish_sync_jobs(database) == int(down)


@pytest.mark.parametrize('down', [True, False])
def test_release_handle_host_down_is_reserved(database: Database, down: bool) -> None:
    job, uuids = accept_bind(database)
    database.write(binding.claim_for_bind, job, uuids, None, NewJob(JobType.NOVA_EVENT))
    (mark_down if down else mark_up)(database, HOST)
    assert read_reserved(database) == (3 if down else 0)
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    assert read_reserved(database) == (4 if down else 0)
    assert finish_sync_jobs(database) == int(down)


def test_fail_bind_host_down_reserves_handle(database: Database) -> None:
    job, uuids = accept_bind(database, needs_host=True)
    event_job = NewJob(JobType.NOVA_EVENT)
    job = database.write(binding.claim_for_bind, job, uuids, None, event_job).job
    mark_down(database, HOST)
    assert read_reserved(database) == 3
    finish_sync_jobs(database)
    database.write(
        binding.fail_bind, job, uuids, DriverError(reason='no answer'), event_job
    )
    assert read_reserved(database) == 4
    assert finish_sync_jobs(database) == 1


def test_switch_states_of_agents_is_four_statements(database: Database) -> None:
    for number in range(25):
        expire_heartbeat(database, f'compute-{number:02d}')
    stale = list(list_stale_services(database).values())
    record_heartbeat(database, 'compute-07')
    with statements(database) as sql:
        switched = database.write(
            services.switch_states, stale, oldest_heartbeat(database)
        )
    assert len(sql) == 5  # with the current time, which is read twice
    assert {service.host for service in stale} - {
        service.host for service in switched
    } == {'compute-07'}
    down = [host for host, state in service_states(database).items() if state == 'down']
    assert len(down) == 24
    sync = JobCount(JobType.PLACEMENT_SYNC, JobState.WAITING, 24)
    assert database.read(queue.count_jobs) == (sync,)
