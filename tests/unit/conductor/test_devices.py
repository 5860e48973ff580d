# SPDX-License-Identifier: Apache-2.0
"""Maintenance is agreed between the database and Placement, or not begun."""

from uuid import uuid4

import pytest
from sqlalchemy import select

from cyborg_lite.conductor.devices import Devices
from cyborg_lite.conductor.placement_sync import PlacementSync
from cyborg_lite.db import devices, jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Device as Row
from cyborg_lite.exceptions import DeviceNotFound, ServiceUnavailable
from cyborg_lite.model.devices import DeviceStatus
from cyborg_lite.model.queries import Query
from tests.fakes.placement import FakePlacement
from tests.fakes.rows import HOST, add_card
from tests.fakes.statements import statements, writes

MAINTAINING = DeviceStatus.MAINTAINING
ENABLED = DeviceStatus.ENABLED


class AwayPlacement(FakePlacement):
    def provider_named(self, name: str) -> None:
        raise ServiceUnavailable(what='Placement')


def made(database: Database, placement: FakePlacement) -> tuple[Devices, str, str]:
    """With a card of four units: the room, the uuid of the device, the provider's."""
    rp_uuid = add_card(database, 4)
    uuid = database.read(lambda session: session.scalar(select(Row.uuid)))
    assert uuid is not None
    return Devices(database, PlacementSync(database, placement)), uuid, rp_uuid


def placement_with_host() -> FakePlacement:
    placement = FakePlacement()
    placement.create_provider(str(uuid4()), HOST, None)
    return placement


def status(database: Database) -> list[DeviceStatus]:
    return [one.status for one in database.read(devices.listed, Query())]


def test_a_device_in_maintenance_is_reserved_whole(database: Database) -> None:
    placement = placement_with_host()
    room, uuid, rp_uuid = made(database, placement)
    room.set_status(uuid, MAINTAINING)
    assert status(database) == [MAINTAINING]
    assert placement.inventories(rp_uuid).inventories['PGPU'].reserved == 4
    room.set_status(uuid, ENABLED)
    assert placement.inventories(rp_uuid).inventories['PGPU'].reserved == 0


def test_while_placement_is_away_nothing_changes(database: Database) -> None:
    room, uuid, _ = made(database, AwayPlacement())
    with pytest.raises(ServiceUnavailable):
        room.set_status(uuid, MAINTAINING)
    assert status(database) == [ENABLED]


def test_a_process_that_dies_between_leaves_a_job(database: Database) -> None:
    _, uuid, _ = made(database, placement_with_host())
    database.write(devices.set_status, uuid, MAINTAINING)
    assert [one.kind for one in database.read(jobs.count)] == ['placement-sync']


def test_the_same_status_again_changes_nothing(database: Database) -> None:
    room, uuid, _ = made(database, AwayPlacement())
    with statements(database) as sent:
        room.set_status(uuid, ENABLED)
    assert writes(sent) == []


def test_an_unknown_device_is_not_found(database: Database) -> None:
    room, _, _ = made(database, placement_with_host())
    with pytest.raises(DeviceNotFound):
        room.set_status(str(uuid4()), MAINTAINING)
