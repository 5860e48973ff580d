# SPDX-License-Identifier: Apache-2.0
"""Services: start, heartbeats and lists."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cyborg_lite.db.arqs import binding, release
from cyborg_lite.db.core import clock
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Service as Row
from cyborg_lite.db.devices import devices
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import agents, reports
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.hosts import AgentIdentityRefused, ReportOutdated
from cyborg_lite.model.devices.devices import DeviceRecord
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.services import (
    AgentRecord,
    Heartbeat,
    HeartbeatDetails,
    Service,
    ServiceState,
)
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import (
    ANY_PROJECT,
    FAILED_EVENT_JOB,
    accept_bind,
    claim_for_bind,
)
from tests.builders.reports import HOST, host
from tests.builders.rows import OWNER, add_arqs, add_card, bindings
from tests.builders.service_rows import (
    LONG_AGO,
    expire_heartbeat,
    mark_down,
    mark_up,
    record_heartbeat,
    service_states,
)
from tests.builders.table_rows import change_rows
from tests.support.sql_statements import statements

CONDUCTOR = 'cyborg-lite-conductor'


def read_only_service(database: Database) -> Service:
    (service,) = database.read(services.list_services)
    return service


def test_record_start_sets_state_and_times(database: Database) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    database.write(services.record_start, CONDUCTOR, 'ctl1', '0.1.0')
    service = read_only_service(database)
    assert (service.binary, service.host) == (CONDUCTOR, 'ctl1')
    assert (service.version, service.state) == ('0.1.0', ServiceState.UP)
    assert before < service.started_at <= datetime.now(UTC) + timedelta(seconds=1)
    assert before < service.heartbeat_at <= datetime.now(UTC) + timedelta(seconds=1)


def test_record_heartbeat_keeps_uuid_and_start_time(database: Database) -> None:
    expire_heartbeat(database, 'compute-1')
    before = read_only_service(database)
    record_heartbeat(database, 'compute-1')
    after = read_only_service(database)
    assert before.heartbeat_at == LONG_AGO
    assert after.heartbeat_at > LONG_AGO
    assert (after.uuid, after.started_at) == (before.uuid, before.started_at)


def test_record_agent_heartbeat_unchanged_costs_one_statement(
    database: Database,
) -> None:
    database.write(agents.store_digest, 'compute-1', 'digest', 'boot')
    with statements(database) as sql:
        needs_report = database.write(
            services.record_agent_heartbeat, 'compute-1', '0.1.0', 'digest'
        )
    assert needs_report is False
    assert len(sql) == 1


# --- identities of agents, the order of their reports, and the time of their start ---


_FIRST, _SECOND = 'identity-1', 'identity-2'


def send_heartbeat(
    database: Database, identity: str, digest: str = '', *, started: bool = False
) -> bool:
    details = HeartbeatDetails('boot', identity=identity, started=started)
    return database.write(services.record_agent_heartbeat, HOST, '1', digest, details)


def build_report(number: int, devices: int = 1, identity: str = _FIRST) -> HostReport:
    return replace(host(devices, 1), identity=identity, number=number)


def agent(database: Database) -> AgentRecord:
    record = database.read(agents.find_agent, HOST)
    assert record is not None
    return record


def test_second_identity_is_refused_while_first_is_up(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    before = agent(database)
    with pytest.raises(AgentIdentityRefused, match=f'{HOST} has another agent'):
        send_heartbeat(database, _SECOND)
    with pytest.raises(AgentIdentityRefused):
        database.write(reports.store_report, build_report(1, identity=_SECOND))
    assert agent(database) == before
    assert send_heartbeat(database, _FIRST)


def test_stopped_agent_is_up_again_with_heartbeat(database: Database) -> None:
    for digest in ('', 'digest'):  # the second time, the heartbeat changes nothing
        send_heartbeat(database, _FIRST)
        database.write(agents.store_digest, HOST, digest, 'boot')
        assert not database.write(services.record_stop, HOST, _SECOND)
        assert database.write(services.record_stop, HOST, _FIRST)
        assert agent(database).state is ServiceState.STOPPED
        repeated = Heartbeat(HOST, '1', digest, 'boot', _FIRST)
        hosts = database.write(services.record_repeated_heartbeats, [repeated])
        assert (hosts, agent(database).state) == (set(), ServiceState.STOPPED)
        send_heartbeat(database, _FIRST, digest)
        assert agent(database).state is ServiceState.UP


def test_agent_replaces_stopped_one_at_once(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    database.write(services.record_stop, HOST, _FIRST)
    send_heartbeat(database, _SECOND)
    record = agent(database)
    assert (record.identity, record.state) == (_SECOND, ServiceState.UP)


def test_refused_heartbeat_does_not_keep_first_agent_alive(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    past = datetime.now(UTC) - timedelta(hours=1)
    change_rows(database, Row, heartbeat_at=past)
    with pytest.raises(AgentIdentityRefused):
        send_heartbeat(database, _SECOND)
    [service] = database.read(services.list_services)
    assert service.heartbeat_at == past


def test_second_identity_replaces_agent_that_is_down(database: Database) -> None:
    database.write(reports.store_report, build_report(7))
    change_rows(database, Row, state='down')
    assert send_heartbeat(database, _SECOND, host(1, 1).digest)
    record = agent(database)
    assert (record.identity, record.digest, record.report_number) == (_SECOND, None, 0)


def test_forgotten_identity_is_replaced(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    assert database.write(agents.forget_identity, HOST)
    assert not database.write(agents.forget_identity, HOST)
    send_heartbeat(database, _SECOND)
    assert agent(database).identity == _SECOND


def test_earlier_agent_without_identity_is_accepted(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    send_heartbeat(database, '')
    database.write(reports.store_report, host(1, 1))
    assert agent(database).identity == _FIRST


def test_report_older_than_stored_is_refused(database: Database) -> None:
    database.write(reports.store_report, build_report(2, devices=2))
    stored = agent(database)
    for number in (1, 2):
        with pytest.raises(ReportOutdated):
            database.write(reports.store_report, build_report(number))
    assert agent(database) == stored
    database.write(reports.store_report, build_report(3))
    stored = agent(database)
    assert (stored.digest, stored.report_number) == (build_report(3).digest, 3)


def test_heartbeat_with_identity_costs_one_statement(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    database.write(reports.store_report, build_report(1))
    with statements(database) as sql:
        assert not send_heartbeat(database, _FIRST, build_report(1).digest)
    assert len(sql) == 1


def test_report_number_costs_one_statement(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    database.write(reports.store_report, host(1, 1))
    with statements(database) as without_number:
        database.write(reports.store_report, host(1, 1))
    with statements(database) as with_number:
        database.write(reports.store_report, build_report(1))
    assert len(with_number) == len(without_number) + 1


def test_started_is_last_start(database: Database) -> None:
    database.write(reports.store_report, build_report(1))
    digest = build_report(1).digest
    past = datetime.now(UTC) - timedelta(hours=1)
    change_rows(database, Row, started_at=past)
    send_heartbeat(database, _FIRST, digest)
    assert database.read(services.list_services)[0].started_at == past
    send_heartbeat(database, _FIRST, digest, started=True)
    assert database.read(services.list_services)[0].started_at > past
    change_rows(database, Row, started_at=past)
    send_heartbeat(database, _FIRST, 'another digest', started=True)
    assert database.read(services.list_services)[0].started_at > past


# --- heartbeats of agents: one statement, and two more for telemetry ----------------


TELEMETRY = Usage(
    busy_percent=35.0, memory_used=2**34, temperature=60.0, counters={'fatal': 0}
)


def send_telemetry(database: Database, telemetry: dict[str, Usage]) -> bool:
    digest = host(64, 2).digest
    details = HeartbeatDetails('boot', telemetry)
    return database.write(services.record_agent_heartbeat, HOST, '1.0', digest, details)


def list_devices(database: Database) -> dict[str, DeviceRecord]:
    """Return the devices by PCI address, which follows the order of creation."""
    records = database.read(devices.list_devices, Query())
    return {f'0000:{number:02x}:00.0': record for number, record in enumerate(records)}


@pytest.mark.parametrize(('number', 'cost'), [(0, 1), (64, 3)])
def test_heartbeat_cost_depends_on_telemetry_only(
    database: Database, number: int, cost: int
) -> None:
    database.write(reports.store_report, host(64, 2))
    telemetry = {f'0000:{bus:02x}:00.0': TELEMETRY for bus in range(number)}
    with statements(database) as sql:
        assert not send_telemetry(database, telemetry)
    assert len(sql) == cost
    usages = [record.usage for record in list_devices(database).values()]
    assert usages == [TELEMETRY if number else None] * 64


def test_heartbeat_telemetry_keeps_updated_at(database: Database) -> None:
    database.write(reports.store_report, host(1, 1))
    send_telemetry(database, {'0000:00:00.0': TELEMETRY})
    (record,) = list_devices(database).values()
    assert record.updated_at is None


def test_heartbeat_telemetry_of_unknown_device_needs_report(database: Database) -> None:
    database.write(reports.store_report, host(1, 1))
    assert send_telemetry(database, {'0000:99:00.0': TELEMETRY})
    assert [record.usage for record in list_devices(database).values()] == [None]


# --- services up and down: the database clock decides, one conductor changes --------


AGENT_DOWN_AFTER = 100.0


def oldest_heartbeat(database: Database) -> datetime:
    return database.read(clock.read_time_before, AGENT_DOWN_AFTER)


def list_stale_services(database: Database) -> dict[str, Service]:
    stale = database.read(services.list_stale_services, oldest_heartbeat(database))
    return {service.host: service for service in stale}


def switch_state(database: Database, service: Service) -> bool:
    oldest = oldest_heartbeat(database)
    return bool(database.write(services.switch_states, (service,), oldest))


def test_switch_state_old_heartbeat_marks_down(database: Database) -> None:
    record_heartbeat(database, 'compute-1')
    expire_heartbeat(database, 'compute-2')
    stale = list_stale_services(database)
    assert set(stale) == {'compute-2'}
    assert switch_state(database, stale['compute-2'])
    assert list_stale_services(database) == {}
    assert service_states(database) == {'compute-1': 'up', 'compute-2': 'down'}


def test_switch_state_second_conductor_changes_nothing(database: Database) -> None:
    expire_heartbeat(database, 'compute-1')
    service = list_stale_services(database)['compute-1']
    assert switch_state(database, service)
    assert not switch_state(database, service)
    assert service_states(database) == {'compute-1': 'down'}


def test_switch_state_heartbeat_meanwhile_stays_up(database: Database) -> None:
    expire_heartbeat(database, 'compute-1')
    service = list_stale_services(database)['compute-1']
    record_heartbeat(database, 'compute-1')
    assert not switch_state(database, service)
    assert service_states(database) == {'compute-1': 'up'}
    assert database.read(queue.count_jobs) == ()


def test_switch_state_heartbeat_expires_meanwhile_stays_down(
    database: Database,
) -> None:
    mark_down(database, 'compute-1')
    record_heartbeat(database, 'compute-1')
    service = list_stale_services(database)['compute-1']
    expire_heartbeat(database, 'compute-1')
    assert not switch_state(database, service)
    assert service_states(database) == {'compute-1': 'down'}


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
    jobs = database.write(queue.lease_jobs, OWNER, 10, [OperationKind.RECONCILE])
    for job in jobs:
        database.write(queue.finish_job, job)
    return len(jobs)


def accept_one(database: Database, needs_host: bool = False) -> tuple[Job, list[str]]:
    """Accept the bind of one ARQ to a card with four handles."""
    card, uuids = add_card(database, 4, needs_host=needs_host), add_arqs(database, 1)
    return accept_bind(database, bindings(uuids, card)), uuids


@pytest.mark.parametrize('down', [True, False])
def test_claim_and_release_host_down_change_reservation(
    database: Database, down: bool
) -> None:
    job, uuids = accept_one(database)
    (mark_down if down else mark_up)(database, HOST)
    assert read_reserved(database) == (4 if down else 0)
    claim_for_bind(database, job, uuids)
    assert read_reserved(database) == (3 if down else 0)
    assert finish_sync_jobs(database) == int(down)
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    assert read_reserved(database) == (4 if down else 0)
    assert finish_sync_jobs(database) == int(down)


def test_fail_bind_host_down_reserves_handle(database: Database) -> None:
    job, uuids = accept_one(database, needs_host=True)
    job = claim_for_bind(database, job, uuids).job
    mark_down(database, HOST)
    assert read_reserved(database) == 3
    finish_sync_jobs(database)
    error = DriverError(reason='no answer')
    database.write(binding.fail_bind, job, uuids, error, FAILED_EVENT_JOB)
    assert read_reserved(database) == 4
    assert finish_sync_jobs(database) == 1
