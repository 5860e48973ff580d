# SPDX-License-Identifier: Apache-2.0
"""Batches of heartbeats that repeat the stored values."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.hosts.heartbeat_batch import HeartbeatBatch
from cyborg_lite.conductor.inventory.inventory import InventoryService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Service as Row
from cyborg_lite.db.devices import devices
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import agents
from cyborg_lite.errors.base import CyborgError, InvalidInput
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark
from cyborg_lite.model.hosts.services import Heartbeat, HeartbeatDetails
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import daemon_context
from tests.builders.reports import HOST, host
from tests.support.sql_statements import statements

REPORT = host(2, 2)
HEARTBEAT = Heartbeat(HOST, '1.0', REPORT.digest, REPORT.boot_id)


@pytest.fixture
def batch(database: Database) -> HeartbeatBatch:
    return HeartbeatBatch(database, threading.Event())


@pytest.fixture
def inventory(database: Database, batch: HeartbeatBatch) -> InventoryService:
    """Return a service with a stored report and one heartbeat."""
    inventory = InventoryService(database, lambda: None, batch)
    inventory.store_report(daemon_context(), REPORT)
    assert not send(inventory)
    return inventory


def send(inventory: InventoryService, heartbeat: Heartbeat = HEARTBEAT) -> bool:
    vitals = HeartbeatDetails(heartbeat.boot_id)
    return inventory.record_heartbeat(
        heartbeat.host, heartbeat.digest, heartbeat.version, vitals
    )


def age(database: Database) -> timedelta:
    """Return the time since the stored heartbeat."""
    [service] = database.read(services.list_services)
    return datetime.now(UTC) - service.heartbeat_at


def make_old(database: Database) -> None:
    past = datetime.now(UTC) - timedelta(seconds=600)
    database.write(
        lambda session: session.execute(update(Row).values(heartbeat_at=past))
    )


@pytest.mark.parametrize(
    'news', [{'digest': 'another'}, {'boot_id': 'another'}, {'version': '2.0'}]
)
def test_heartbeat_changed_is_compared_with_database(
    inventory: InventoryService, database: Database, news: dict[str, str]
) -> None:
    with statements(database) as sql:
        send(inventory, replace(HEARTBEAT, **news))
    assert sql != []


def test_write_database_down_fails_next_heartbeat(
    inventory: InventoryService,
    database: Database,
    batch: HeartbeatBatch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise CyborgError

    assert not send(inventory)
    with monkeypatch.context() as patch:
        patch.setattr(database, 'write', fail)
        with pytest.raises(CyborgError):
            batch.write()
        with pytest.raises(CyborgError):
            send(inventory)
    assert not send(inventory)


POWER = Usage(power=50.0)
ADDRESS = '0000:00:00.0'


def repeat(
    inventory: InventoryService, telemetry: dict[str, Usage]
) -> DatabaseMark | None:
    return inventory.repeat_heartbeat(HOST, HEARTBEAT.token, telemetry)


def list_usages(database: Database) -> list[Usage | None]:
    return [device.usage for device in database.read(devices.list_devices, Query())]


def test_repeated_heartbeats_are_no_statement_until_written(
    inventory: InventoryService, database: Database, batch: HeartbeatBatch
) -> None:
    make_old(database)
    with statements(database) as sql:
        assert [repeat(inventory, {}) for _ in range(3)] == [NO_MARK] * 3
        assert repeat(inventory, {ADDRESS: POWER})
    assert sql == []
    with statements(database) as sql:
        batch.write()
    assert len(sql) == 4  # two for the times, two for the telemetry
    assert age(database) < timedelta(seconds=100)
    assert list_usages(database) == [POWER, None]
    with statements(database) as sql:
        batch.write()
    assert sql == []


def test_repeat_heartbeat_of_unknown_token_is_not_recorded(
    inventory: InventoryService, database: Database, batch: HeartbeatBatch
) -> None:
    second_batch = HeartbeatBatch(database, threading.Event())
    restarted = InventoryService(database, lambda: None, second_batch)
    assert not repeat(restarted, {})
    assert not inventory.repeat_heartbeat(HOST, 'another')
    assert not inventory.repeat_heartbeat('another', HEARTBEAT.token)
    make_old(database)
    batch.write()
    second_batch.write()
    assert age(database) > timedelta(seconds=500)


def test_repeat_heartbeat_after_change_elsewhere_is_not_recorded(
    inventory: InventoryService, database: Database, batch: HeartbeatBatch
) -> None:
    database.write(agents.clear_digest, HOST)
    assert repeat(inventory, {})
    batch.write()
    assert not repeat(inventory, {})


def test_repeat_heartbeat_with_invalid_telemetry_is_rejected(
    inventory: InventoryService,
) -> None:
    with pytest.raises(InvalidInput):
        repeat(inventory, {ADDRESS: Usage(power=float('nan'))})


def test_run_stopped_writes_last_batch(
    inventory: InventoryService, database: Database, batch: HeartbeatBatch
) -> None:
    make_old(database)
    stopping = threading.Event()
    stopping.set()
    last = HeartbeatBatch(database, stopping)
    last.remember(HEARTBEAT)
    assert last.add(HEARTBEAT)
    last.run()
    assert age(database) < timedelta(seconds=100)
