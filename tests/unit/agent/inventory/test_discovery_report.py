# SPDX-License-Identifier: Apache-2.0
"""Tests of the rows that the discovery report shows for candidate functions."""

from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.discovery_report import (
    DiscoveryRow,
    build_rows,
    format_table,
)
from cyborg_lite.drivers.fake import FakeDriver
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.model.inventory.host_report import AttachHandle, Deployable, HandleType
from tests.doubles.drivers import discovery_result
from tests.hosts import sysfs_tree
from tests.hosts.fixture_drivers import create_drivers


def _build_rows_by_address(host: Host) -> dict[str, DiscoveryRow]:
    results = list(NvidiaGpu(host, {'offer_without_reset': False}).discover())
    return {row.result.address: row for row in build_rows(host, results, {})}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host('compute-1', tmp_path)


def test_handles_in_foreign_use_are_reserved(host: Host) -> None:
    """The agent reports the same reserved amount to Placement."""
    result = discovery_result()
    assert result.device is not None
    address = {'domain': '0000', 'bus': '82', 'device': '00', 'function': '4'}
    used_handle = AttachHandle('0000:82:00.4', HandleType.PCI, address, in_use=True)
    free = AttachHandle('0000:82:00.5', HandleType.PCI, {**address, 'function': '5'})

    def build_row_of(*handles: AttachHandle) -> DiscoveryRow:
        root = Deployable('card', 'VGPU', total=len(handles), handles=handles)
        assert result.device is not None
        device = replace(result.device, root=root)
        (row,) = build_rows(host, [replace(result, device=device)], {})
        return row

    partly_used = build_row_of(used_handle, free)
    assert partly_used.as_json()['provider']['reserved'] == 1
    assert 'VGPU 2, 1 reserved' in format_table([partly_used])
    assert build_row_of(used_handle).as_json()['offered'] is False


def test_unclaimed_virtual_function_names_physical_function(host: Host) -> None:
    sysfs_tree.build('qat-x710', host.root)
    assert _build_rows_by_address(host)['0000:6b:02.0'].result.reason == (
        'virtual function of 0000:6b:00.0; no enabled driver claims it'
    )


def test_unclaimed_function_names_unavailable_driver(host: Host) -> None:
    sysfs_tree.build('qat-x710', host.root)
    rows = build_rows(host, [], {'qat_driver': 'it does not return'})
    assert rows[0].result.reason == (
        'no driver claims it, but qat_driver did not answer'
    )


def test_function_with_unreadable_ids_has_row(host: Host) -> None:
    built = sysfs_tree.build('t4-mdev', host.root)
    (host.root / built.functions['0000:3b:00.0'] / 'class').unlink()
    row = _build_rows_by_address(host)['0000:3b:00.0']
    assert row.driver is None
    assert row.result.reason == 'its ids cannot be read'


def test_unclaimed_function_names_disabled_driver(host: Host) -> None:
    """Functions of all classes are listed if an installed driver supports them."""
    sysfs_tree.build('nvme-ascend', host.root)
    disabled = {driver.NAME: driver for driver in create_drivers(host, {})}
    rows = {row.result.address: row for row in build_rows(host, [], {}, disabled)}
    expected = sysfs_tree.expectation('nvme-ascend')['devices']
    assert {fields['pci'] for fields in expected} <= rows.keys()
    drive = next(row for row in rows.values() if row.result.pci_class == '010802')
    assert drive.suggestions == ('nvme_driver',)
    assert drive.result.reason == (
        'no enabled driver claims it; [agent] enabled_drivers lacks nvme_driver'
    )


def test_function_of_unassigned_class_has_row(host: Host) -> None:
    sysfs_tree.build('generic-pci', host.root)
    rows = {row.result.address: row for row in build_rows(host, [], {})}
    row = rows['0000:21:00.0']
    assert row.result.pci_class.startswith('ff')
    assert (row.driver, row.suggestions) == (None, ('pci_driver',))
    assert 'pci_driver offers it if device_spec selects it' in row.result.reason


def test_host_without_sysfs_has_no_rows(host: Host) -> None:
    assert _build_rows_by_address(host) == {}


# --- the table ---


def _format_host(name: str, root: Path, hostname: str = 'compute-1') -> str:
    sysfs_tree.build(name, root)
    host = Host(hostname, root)
    drivers = (FakeDriver(host, {}), NvidiaGpu(host, {'offer_without_reset': False}))
    results = [result for driver in drivers for result in driver.discover()]
    return format_table(build_rows(host, results, {}))


def test_format_table_shows_rows_and_summary(tmp_path: Path) -> None:
    lines = _format_host('t4-mdev', tmp_path).splitlines()
    assert lines[:7] == [
        'ADDRESS       IDS        CLASS   DRIVER             OFFERED  REASON',
        '0000:03:00.0  102b:0538  030000  -                  no       '
        'boot VGA of the host; no enabled driver claims it',
        '0000:3b:00.0  10de:1eb8  030200  nvidia_gpu_driver  yes      whole card',
        ' ' * 61 + 'provider  compute-1_0000:3b:00.0: PGPU 1',
        ' ' * 61 + 'traits    OWNER_CYBORG, CUSTOM_NVIDIA_1EB8',
        ' ' * 61 + 'handles   PCI 0000:3b:00.0',
        '0000:af:00.0  10de:1eb8  030200  nvidia_gpu_driver  no       '
        'divided into vGPUs: 2 mediated devices exist',
    ]
    assert lines[-1] == '2 of 4 offered.'


@pytest.mark.parametrize('name', sysfs_tree.hosts())
def test_format_table_fits_120_columns(name: str, tmp_path: Path) -> None:
    lines = _format_host(
        name, tmp_path, 'compute-0123.region-one.example.org'
    ).splitlines()
    assert max(map(len, lines)) <= 120
    assert not any(line != line.rstrip() for line in lines)
