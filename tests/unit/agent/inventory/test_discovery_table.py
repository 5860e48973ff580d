# SPDX-License-Identifier: Apache-2.0
"""Tests of the table of candidate functions."""

from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.discovery_report import build_rows, format_table
from cyborg_lite.drivers.fake import FakeDriver
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from tests.hosts import sysfs_tree


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
