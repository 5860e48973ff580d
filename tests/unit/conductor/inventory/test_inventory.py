# SPDX-License-Identifier: Apache-2.0
"""Host reports and heartbeats; repetitions cost no write."""

import threading
from dataclasses import replace
from unittest.mock import Mock

import pytest
from sqlalchemy import select

from cyborg_lite import codec
from cyborg_lite.conductor.hosts.heartbeat_batch import HeartbeatBatch
from cyborg_lite.conductor.inventory.inventory import InventoryService, ReportMemory
from cyborg_lite.db.arqs import arqs, binding
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device
from cyborg_lite.db.devices import devices
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.hosts.services import HeartbeatDetails
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.inventory.report_changes import diff_reports
from cyborg_lite.model.jobs import Job, Owner
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import daemon_context
from tests.builders.bind_jobs import ANY_PROJECT, BIND_JOB, BOUND_EVENT_JOB
from tests.builders.reports import HOST, card, host, report
from tests.builders.rows import OWNER, add_arqs, bindings
from tests.support.sql_statements import statements, transactions, writes


@pytest.fixture
def wake() -> Mock:
    """Return the function that wakes the job runner."""
    return Mock()


@pytest.fixture
def inventory(database: Database, wake: Mock) -> InventoryService:
    return InventoryService(database, wake, HeartbeatBatch(database, threading.Event()))


def _job(database: Database) -> Job:
    [job] = database.write(queue.lease_jobs, Owner('me', 1000), 10)
    return job


def test_report_is_stored_and_sync_scheduled(
    inventory: InventoryService, database: Database, wake: Mock
) -> None:
    context = daemon_context()
    inventory.store_report(context, host(2, 4))
    assert len(database.read(devices.list_devices, Query())) == 2
    assert wake.call_count == 1
    job = _job(database)
    assert (job.type, job.payload) == (OperationKind.RECONCILE, {'hostname': HOST})
    # The id identifies the request in the logs of all daemons.
    assert job.request_id == context.request_id


def test_report_unchanged_costs_one_read(
    inventory: InventoryService, database: Database, wake: Mock
) -> None:
    inventory.store_report(daemon_context(), host(64, 16))
    with statements(database) as sql, transactions(database) as ends:
        inventory.store_report(daemon_context(), host(64, 16))
    assert len(sql) == 1
    assert writes(sql) == []
    assert ends == ['rollback']
    assert wake.call_count == 1


def send_changes(
    inventory: InventoryService, later: HostReport, base: HostReport | None = None
) -> int | None:
    changes = diff_reports(later, base)
    return inventory.store_changes(daemon_context(), HOST, changes)


def list_addresses(database: Database) -> list[str]:
    return database.read(
        lambda session: list(
            session.scalars(select(Device.control_address).order_by(Device.id))
        )
    )


def test_changes_to_unknown_base_store_nothing(
    inventory: InventoryService, database: Database
) -> None:
    base = report(card(1), card(2))
    send_changes(inventory, base)
    with statements(database) as sql:
        assert send_changes(inventory, report(card(1)), report(card(3))) is None
    assert sql == []


def test_changes_with_outdated_number_keep_base(
    inventory: InventoryService, database: Database
) -> None:
    base = replace(report(card(1), card(2)), number=5, identity='i')
    later = replace(report(card(1)), number=5, identity='i')
    send_changes(inventory, base)
    assert send_changes(inventory, later, base) == 6
    assert send_changes(inventory, replace(later, number=6), base) == 6
    assert list_addresses(database) == ['0000:01:00.0']


def test_report_of_later_release_is_sent_once(inventory: InventoryService) -> None:
    """The agent includes fields in its digest that this conductor does not know."""
    digest = 'f' * 32
    base = report(card(1), card(2))
    all_devices = replace(diff_reports(base), digest=digest)
    later = replace(diff_reports(report(card(1)), base), base=digest, digest='e' * 32)
    context, details = daemon_context(), HeartbeatDetails(base.boot_id)
    assert inventory.store_changes(context, HOST, all_devices) is not None
    assert not inventory.record_heartbeat(HOST, digest, '1.1.0', details)
    # The fields of the other devices are lost, so the agent sends a whole report.
    assert inventory.store_changes(context, HOST, later) is None


@pytest.mark.parametrize('digest', ['f' * 65, 'x\0'])
def test_report_with_invalid_digest_is_rejected(
    inventory: InventoryService, digest: str
) -> None:
    changes = replace(diff_reports(report(card(1))), digest=digest)
    with pytest.raises(InvalidInput, match='digest'):
        inventory.store_changes(daemon_context(), HOST, changes)


def test_changes_of_another_host_are_rejected(inventory: InventoryService) -> None:
    with pytest.raises(InvalidInput, match='another host'):
        inventory.store_changes(daemon_context(), 'other', diff_reports(report()))


def test_report_is_one_transaction(
    inventory: InventoryService, database: Database
) -> None:
    with transactions(database) as ends:
        inventory.store_report(daemon_context(), host(64, 16))
    assert ends == ['rollback', 'commit']


def test_report_without_placement_change_wakes_no_worker(
    inventory: InventoryService, wake: Mock
) -> None:
    inventory.store_report(daemon_context(), report(card(1, serial='s')))
    inventory.store_report(
        daemon_context(), report(replace(card(1, serial='s'), model='A2'))
    )
    assert wake.call_count == 1


def test_report_invalid_changes_nothing(
    inventory: InventoryService, database: Database, wake: Mock
) -> None:
    inventory.store_report(daemon_context(), report(card(1)))
    with pytest.raises(InvalidInput), statements(database) as sql:
        inventory.store_report(daemon_context(), report(card(1), card(1)))
    assert sql == []
    assert wake.call_count == 1


def test_heartbeat_requests_report_until_stored(inventory: InventoryService) -> None:
    reported = report(card(1))
    assert inventory.record_heartbeat(HOST, reported.digest, '1.0')
    assert inventory.record_heartbeat(HOST, reported.digest, '1.0')
    inventory.store_report(daemon_context(), reported)
    assert not inventory.record_heartbeat(HOST, reported.digest, '1.0')
    assert inventory.record_heartbeat(HOST, report(card(2)).digest, '1.0')


def test_heartbeat_report_failed_requests_report(
    inventory: InventoryService, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest is stored in the transaction that stores the rows."""

    def fail(*_: object) -> None:
        raise InvalidInput(reason='no')

    monkeypatch.setattr(reports, 'write_changes', fail)
    with pytest.raises(InvalidInput):
        inventory.store_report(daemon_context(), report(card(1)))
    assert inventory.record_heartbeat(HOST, report(card(1)).digest, '1.0')


def test_first_report_of_restarted_agent_is_stored(
    inventory: InventoryService, database: Database
) -> None:
    """A new process counts its reports from 1."""

    def send(cards: int, number: int) -> int:
        numbered = replace(host(cards, 1), identity='a', number=number)
        return inventory.store_report(daemon_context(), numbered)

    def count_devices() -> int:
        return len(database.read(devices.list_devices, Query()))

    inventory.record_heartbeat(HOST, '', '1.0', HeartbeatDetails(identity='a'))
    assert send(2, number=1) == 1
    assert send(1, number=1) == 2
    assert count_devices() == 2
    assert send(1, number=2) == 2
    assert count_devices() == 1


def test_lost_card_of_arq_is_logged_and_heals_elsewhere(
    inventory: InventoryService, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    inventory.store_report(daemon_context(), report(card(0x3B, serial='S1')))
    (provider,) = database.read(providers.list_providers_of_host, HOST)
    uuids = add_arqs(database, 1)
    requested = bindings(uuids, provider.rp_uuid)
    job = database.write(binding.accept_bind, requested, ANY_PROJECT, BIND_JOB, OWNER)
    database.write(binding.claim_for_bind, job, uuids, None, BOUND_EVENT_JOB)

    def read() -> tuple[State, str, str]:
        (arq,) = database.read(arqs.list_arqs, Query(), ANY_PROJECT)
        return arq.state, arq.attach_handle_info['bus'], arq.device_loss

    inventory.store_report(daemon_context(), report(card(0x41, serial='S2')))
    state, bus, loss = read()
    assert (state, bus) == (State.UNKNOWN, '3b')
    assert 'The device is missing on the host' in loss
    assert 'Device 0000:3b:00.0 of host compute-1 is gone' in caplog.text
    assert '0000:3b:00.0' in caplog.text
    cards = card(0x41, serial='S2'), card(0x5E, serial='S1')
    inventory.store_report(daemon_context(), report(*cards))
    assert read() == (State.BOUND, '5e', '')


# --- last reports of hosts ------------------------------------------------------------

REPORT = host(2, 2)


def test_find_returns_last_report_of_host() -> None:
    memory = ReportMemory()
    memory.remember(host(1, 1))
    memory.remember(REPORT)
    assert memory.find(HOST, REPORT.digest) == REPORT
    assert memory.find(HOST, host(1, 1).digest) is None
    assert memory.find('other', REPORT.digest) is None


def test_remember_above_maximum_forgets_oldest() -> None:
    memory = ReportMemory(max_size=2 * len(codec.pack(REPORT)) + 40)
    for name in ('a', 'b', 'a', 'c', 'd'):
        memory.remember(replace(REPORT, hostname=name))
    names = [name for name in 'abcd' if memory.find(name, REPORT.digest)]
    assert names == ['c', 'd']
