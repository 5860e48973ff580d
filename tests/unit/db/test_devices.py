# SPDX-License-Identifier: Apache-2.0
"""Devices as clients see them."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from sqlalchemy import insert, update

from cyborg_lite.db import binding, devices, inventory
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Device as Row
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.devices import DeviceStatus
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.queries import Query
from tests.fakes.cards import HOST, card, report
from tests.fakes.rows import OWNER, add_arqs, add_card, bindings
from tests.fakes.statements import statements
from tests.unit.db.test_binding import BIND, BOUND, EVERYBODY

_FPGA = replace(card(2), type='FPGA', vendor='8086', health=Health.FAILED)


@pytest.fixture
def stocked(database: Database) -> Database:
    """A GPU and an FPGA."""
    bare = replace(_FPGA, std_board_info={}, vendor_board_info='board 7')
    database.write(inventory.store, report(card(1), bare))
    return database


def _types(database: Database, **filters: tuple[str, ...]) -> list[str]:
    found = database.read(devices.listed, Query(filters=filters))
    return [device.type for device in found]


def test_a_device_shows_what_its_driver_said(stocked: Database) -> None:
    gpu, fpga = stocked.read(devices.listed, Query())
    assert (gpu.type, gpu.vendor, gpu.model) == ('GPU', '10de', 'Tesla T4')
    assert gpu.hostname == HOST
    assert gpu.status is DeviceStatus.ENABLED
    assert gpu.health is Health.OK
    assert fpga.health is Health.FAILED
    assert gpu.updated_at is None
    assert abs((datetime.now(UTC) - gpu.created_at).total_seconds()) < 3600


def test_board_information_is_json_text_or_nothing(stocked: Database) -> None:
    """Clients of version 2 parse the text."""
    gpu, fpga = stocked.read(devices.listed, Query())
    assert json.loads(gpu.std_board_info or '') == {'product_id': '1eb8'}
    assert gpu.vendor_board_info is None
    assert fpga.std_board_info is None
    assert fpga.vendor_board_info == 'board 7'


def test_all_filters_must_fit(stocked: Database) -> None:
    assert _types(stocked) == ['GPU', 'FPGA']
    assert _types(stocked, type=('FPGA',)) == ['FPGA']
    assert _types(stocked, vendor=('10de',), hostname=(HOST,)) == ['GPU']
    assert _types(stocked, vendor=('10de',), type=('FPGA',)) == []
    assert _types(stocked, status=('enabled',)) == ['GPU', 'FPGA']
    assert _types(stocked, type=('nonsense',)) == []
    uuid = stocked.read(devices.listed, Query())[1].uuid
    assert _types(stocked, uuid=(uuid,)) == ['FPGA']


@pytest.mark.parametrize(
    'key',
    [
        'uuid',
        'type',
        'vendor',
        'model',
        'hostname',
        'status',
        'created_at',
        'updated_at',
    ],
)
def test_devices_can_be_sorted(stocked: Database, key: str) -> None:
    found = stocked.read(devices.listed, Query(sort_key=key))
    assert len(found) == 2


def test_devices_cannot_be_sorted_by_what_is_not_shown(stocked: Database) -> None:
    with pytest.raises(InvalidInput):
        stocked.read(devices.listed, Query(sort_key='hardware_id'))


def test_a_list_costs_one_select(stocked: Database) -> None:
    with statements(stocked) as seen:
        _types(stocked)
    assert len(seen) == 1


def test_who_uses_a_device_is_told_in_one_more_select(database: Database) -> None:
    uuids, card = add_arqs(database, 3), add_card(database, 3)
    add_card(database, 1)
    wanted = bindings(uuids[:2], card)
    job = database.write(binding.accept, wanted, EVERYBODY, BIND, OWNER)
    database.write(binding.claim, job, uuids[:2], None, BOUND)
    with statements(database) as seen:
        used, free = database.read(devices.listed, Query(detailed=True))
    assert len(seen) == 2
    assert (sorted(used.arqs), free.arqs) == (sorted(uuids[:2]), ())
    bare, _ = database.read(devices.listed, Query())
    assert bare.arqs == ()


def test_the_reason_of_a_maintenance_goes_with_it(stocked: Database) -> None:
    uuid = stocked.read(devices.listed, Query())[0].uuid
    rest, work = DeviceStatus.MAINTAINING, DeviceStatus.ENABLED
    former = stocked.write(devices.set_status, uuid, rest, 'hot')
    assert former == devices.Former(HOST, work, '')
    assert stocked.read(devices.listed, Query())[0].status_reason == 'hot'
    # Another reason is nothing that Placement must follow.
    assert stocked.write(devices.set_status, uuid, rest, 'very hot') is None
    assert stocked.read(devices.listed, Query())[0].status_reason == 'very hot'
    former = stocked.write(devices.set_status, uuid, work)
    assert former == devices.Former(HOST, rest, 'very hot')
    assert stocked.read(devices.listed, Query())[0].status_reason == ''


def test_a_conflict_is_a_health_that_can_be_asked_for(stocked: Database) -> None:
    stocked.write(lambda session: session.execute(update(Row).values(conflict='nova')))
    for device in stocked.read(devices.listed, Query()):
        assert device.health is Health.CONFLICT
    assert len(_types(stocked, health=('conflict',))) == 2
    assert _types(stocked, health=('failed',)) == []


def test_a_page_of_a_thousand_devices_is_two_selects(database: Database) -> None:
    rows = [
        {
            'uuid': str(uuid4()),
            'hostname': f'compute-{number}',
            'type': 'GPU',
            'vendor': '10de',
            'model': 'T4',
            'driver': 'NVIDIA',
            'address': '0000:3b:00.0',
            'hardware_id': '0000:3b:00.0',
        }
        for number in range(1001)
    ]
    database.write(lambda session: session.execute(insert(Row), rows))
    with statements(database) as seen:
        found = database.read(devices.listed, Query(limit=1000, detailed=True))
    assert (len(found), len(seen)) == (1000, 2)
    with statements(database) as seen:
        rest = Query(limit=1000, detailed=True, marker=found[-1].uuid)
        assert len(database.read(devices.listed, rest)) == 1
    assert len(seen) == 2
