# SPDX-License-Identifier: Apache-2.0
"""Tests of the records of devices and handles in messages between daemons."""

from datetime import UTC, datetime

from cyborg_lite import codec
from cyborg_lite.model.bitstreams.bitstreams import LoadOrder
from cyborg_lite.model.devices.devices import (
    AllocatedHandle,
    DeviceRecord,
    DeviceStatus,
)
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Health
from tests.builders.bitstream_files import bitstream

HANDLE = AllocatedHandle(
    uuid='u',
    arq_uuid='a',
    hostname='compute-1',
    deployable_name='compute-1_x',
    driver='NVIDIA',
    control_address='0000:3b:00.0',
    key='0000:3b:00.4',
    type='PCI',
    info={'bus': '3b'},
    generation=4,
    host_down=True,
    load=LoadOrder('0000:3b:00.0', '', bitstream()),
)


def test_allocated_handle_survives_transfer() -> None:
    assert codec.load(AllocatedHandle, codec.dump(HANDLE)) == HANDLE


def test_allocated_handle_without_optional_fields_uses_defaults() -> None:
    required = ('uuid', 'arq_uuid', 'hostname', 'deployable_name', 'driver')
    message = dict.fromkeys((*required, 'control_address', 'key', 'type'), 'x')
    handle = codec.load(AllocatedHandle, message)
    assert (handle.generation, handle.load, handle.host_down) == (0, None, False)


def test_device_record_survives_transfer() -> None:
    record = DeviceRecord(
        uuid='u',
        type='GPU',
        vendor='10de',
        model='T4',
        hostname='compute-1',
        std_board_info=None,
        vendor_board_info=None,
        status=DeviceStatus.MAINTAINING,
        health=Health.DEGRADED,
        health_reason='hot',
        created_at=datetime(2026, 11, 21, tzinfo=UTC),
        arqs=('a',),
        usage=Usage(power=5.0),
    )
    assert codec.load(DeviceRecord, codec.dump(record)) == record
