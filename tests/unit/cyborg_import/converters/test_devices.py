# SPDX-License-Identifier: Apache-2.0
"""Tests of imported devices: identity, status, and devices that are refused."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from cyborg_lite.cyborg_import.converters.devices import convert_devices
from cyborg_lite.cyborg_import.notes import Notes
from cyborg_lite.cyborg_import.plan import NewDevice, StoredRows, Table
from cyborg_lite.cyborg_import.source_rows import (
    SourceAttribute,
    SourceControlPath,
    SourceDatabase,
    SourceDeployable,
    SourceDevice,
    SourceHandle,
)
from cyborg_lite.model.devices.devices import DeviceStatus

NOW = datetime(2026, 11, 22, tzinfo=UTC)
HOST = 'compute-1'
ADDRESS = {'domain': '0000', 'bus': '3b', 'device': '00', 'function': '0'}
DEVICE = SourceDevice(
    1, 'd', 'GPU', '10DE', 'T4', '{}', None, HOST, 'enabled', None, NOW
)
DEPLOYABLE = SourceDeployable(
    1, 'p', None, 1, 'x', 1, None, 'nvidia_gpu_driver', None, NOW
)
CONTROL_PATH = SourceControlPath(1, 1, json.dumps(ADDRESS))


def build_source(**tables: Any) -> SourceDatabase:
    tables = {'devices': (DEVICE,), 'control_paths': (CONTROL_PATH,), **tables}
    return SourceDatabase('x', deployables=(DEPLOYABLE,), **tables)


def convert(
    source: SourceDatabase, notes: Notes, stored: StoredRows | None = None
) -> list[NewDevice]:
    return list(convert_devices(source, stored or StoredRows(), notes).values())


def test_product_comes_from_board_or_trait() -> None:
    board = json.dumps({'product_id': '0x1EB8'})
    trait = SourceAttribute(1, 'a', 1, 'trait1', 'CUSTOM_GPU_PRODUCT_ID_20B5', NOW)
    device = replace(DEVICE, std_board_info=board)
    sources = (build_source(devices=(device,)), build_source(attributes=(trait,)))
    for source, product in zip(sources, ('1eb8', '20b5'), strict=True):
        (imported,) = convert(source, Notes(NOW))
        assert imported.facts.hardware_id == f'0000:3b:00.0 10de:{product}'
        assert (imported.facts.vendor, imported.facts.driver) == (
            '10de',
            'nvidia_gpu_driver',
        )


def test_address_of_first_handle_replaces_control_path() -> None:
    info = json.dumps({**ADDRESS, 'function': '2'})
    handle = SourceHandle(1, 'h', 1, 0, 'PCI', info, NOW)
    (device,) = convert(build_source(control_paths=(), handles=(handle,)), Notes(NOW))
    assert device.facts.control_address == '0000:3b:00.2'


def test_device_without_address_is_refused() -> None:
    handle = SourceHandle(1, 'h', 1, 0, 'PCI', 'nonsense', NOW)
    notes = Notes(NOW)
    assert not convert(build_source(control_paths=(), handles=(handle,)), notes)
    assert 'no PCI address' in notes.items[0].reason


@pytest.mark.parametrize(
    ('status', 'state', 'result', 'has_note'),
    [
        (None, None, DeviceStatus.ENABLED, False),
        ('enabled', 'available', DeviceStatus.ENABLED, False),
        ('disabled', None, DeviceStatus.MAINTAINING, False),
        ('enabled', 'error', DeviceStatus.MAINTAINING, True),
        ('enabled', 'cleaning', DeviceStatus.MAINTAINING, True),
    ],
)
def test_unusable_device_is_maintaining(
    status: str | None, state: str | None, result: DeviceStatus, has_note: bool
) -> None:
    notes = Notes(NOW)
    row = replace(DEVICE, status=status, device_state=state)
    (device,) = convert(build_source(devices=(row,)), notes)
    assert (device.status, bool(notes.items)) == (result, has_note)
    assert bool(device.status_reason) == (result is DeviceStatus.MAINTAINING)


def test_device_of_running_agent_is_refused() -> None:
    (device,) = convert(build_source(), Notes(NOW))
    hardware_ids = frozenset({(HOST, device.facts.hardware_id)})
    notes = Notes(NOW)
    assert not convert(build_source(), notes, StoredRows(hardware_ids=hardware_ids))
    assert f'host forget {HOST}' in notes.items[0].reason
    stored = StoredRows(
        uuids={Table.DEVICES: frozenset({'d'})}, hardware_ids=hardware_ids
    )
    assert convert(build_source(), Notes(NOW), stored) == [device]
