# SPDX-License-Identifier: Apache-2.0
"""Changes of device status in the database and in Placement."""

from uuid import uuid4

import pytest
from sqlalchemy import select

from cyborg_lite.conductor.devices.devices import DeviceService
from cyborg_lite.conductor.providers.host_jobs import HostSyncJobs
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device as Row
from cyborg_lite.db.devices import devices
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.devices import DeviceNotFound
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.jobs import Owner
from cyborg_lite.model.providers.providers import TreeNode
from cyborg_lite.model.queries import Query
from tests.builders.rows import HOST, add_card
from tests.doubles.placement import FakePlacement
from tests.support.sql_statements import statements, writes

MAINTAINING = DeviceStatus.MAINTAINING
ENABLED = DeviceStatus.ENABLED


class UnreachablePlacement(FakePlacement):
    """Placement that does not answer."""

    def find_provider_by_name(self, name: str) -> None:
        raise ServiceUnavailable(what='Placement')


def create_service(
    database: Database, placement: FakePlacement
) -> tuple[DeviceService, str, str]:
    """Return a service, and the uuids of a card of four handles and its provider."""
    rp_uuid = add_card(database, 4)
    uuid = database.read(lambda session: session.scalar(select(Row.uuid)))
    assert uuid is not None
    owner = Owner('me', 30_000)
    jobs = HostSyncJobs(database, PlacementSync(database, placement), owner)
    return DeviceService(database, jobs.sync), uuid, rp_uuid


def placement_with_host() -> FakePlacement:
    placement = FakePlacement()
    placement.create_provider(str(uuid4()), HOST, None)
    return placement


def status(database: Database) -> list[DeviceStatus]:
    return [device.status for device in database.read(devices.list_devices, Query())]


def test_set_status_maintaining_reserves_device(database: Database) -> None:
    placement = placement_with_host()
    service, uuid, rp_uuid = create_service(database, placement)
    service.set_status(uuid, MAINTAINING)
    assert status(database) == [MAINTAINING]
    assert placement.get_inventories(rp_uuid).inventories['PGPU'].reserved == 4
    service.set_status(uuid, ENABLED)
    assert placement.get_inventories(rp_uuid).inventories['PGPU'].reserved == 0


def test_set_status_placement_down_changes_nothing(database: Database) -> None:
    service, uuid, _ = create_service(database, UnreachablePlacement())
    with pytest.raises(ServiceUnavailable):
        service.set_status(uuid, MAINTAINING)
    assert status(database) == [ENABLED]


def test_set_status_placement_down_keeps_later_change(database: Database) -> None:
    class ChangingPlacement(UnreachablePlacement):
        """Placement that fails after another administrator has changed the device."""

        def find_provider_by_name(self, name: str) -> None:
            later = (MAINTAINING, 'another fan')
            database.write(devices.set_device_status, uuid, *later)
            super().find_provider_by_name(name)

    service, uuid, _ = create_service(database, ChangingPlacement())
    with pytest.raises(ServiceUnavailable):
        service.set_status(uuid, MAINTAINING, 'fan')
    (device,) = database.read(devices.list_devices, Query())
    assert (device.status, device.status_reason) == (MAINTAINING, 'another fan')


def test_set_status_that_another_call_undoes_is_set_again(database: Database) -> None:
    class UndoingPlacement(FakePlacement):
        """Placement whose first call comes while the other call undoes its change."""

        def find_provider_by_name(self, name: str) -> TreeNode | None:
            if not self.calls:
                setting = (MAINTAINING, '')
                database.write(devices.undo_device_status, uuid, setting, enabled)
            return super().find_provider_by_name(name)

    placement = UndoingPlacement()
    placement.create_provider(str(uuid4()), HOST, None)
    placement.calls.clear()
    service, uuid, rp_uuid = create_service(database, placement)
    enabled = database.write(devices.set_device_status, uuid, MAINTAINING)
    service.set_status(uuid, MAINTAINING)
    assert status(database) == [MAINTAINING]
    assert placement.get_inventories(rp_uuid).inventories['PGPU'].reserved == 4


def test_set_status_that_placement_has_is_not_undone(database: Database) -> None:
    service, uuid, _ = create_service(database, placement_with_host())
    enabled = database.write(devices.set_device_status, uuid, MAINTAINING)
    service.set_status(uuid, MAINTAINING)
    database.write(devices.undo_device_status, uuid, (MAINTAINING, ''), enabled)
    assert status(database) == [MAINTAINING]


def test_set_status_other_reason_compares_generation_once(database: Database) -> None:
    service, uuid, _ = create_service(database, placement_with_host())
    service.set_status(uuid, MAINTAINING, 'fan')
    (device,) = database.read(devices.list_devices, Query())
    service.set_status(uuid, MAINTAINING, 'new fan', device.generation)
    (changed,) = database.read(devices.list_devices, Query())
    assert changed.status_reason == 'new fan'


def test_set_status_writes_sync_job(database: Database) -> None:
    _, uuid, _ = create_service(database, placement_with_host())
    database.write(devices.set_device_status, uuid, MAINTAINING)
    assert [count.type for count in database.read(queue.count_jobs)] == ['reconcile']


def test_set_status_unchanged_writes_nothing(database: Database) -> None:
    service, uuid, _ = create_service(database, UnreachablePlacement())
    with statements(database) as sql:
        service.set_status(uuid, ENABLED)
    assert writes(sql) == []


def test_set_status_unknown_device_raises(database: Database) -> None:
    service, _, _ = create_service(database, placement_with_host())
    with pytest.raises(DeviceNotFound):
        service.set_status(str(uuid4()), MAINTAINING)
