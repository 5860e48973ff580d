# SPDX-License-Identifier: Apache-2.0
"""The table reads well on a terminal."""

from pathlib import Path

import pytest

from cyborg_lite.agent.verdict_table import table
from cyborg_lite.agent.verdicts import verdicts
from cyborg_lite.drivers.fake import FakeDriver
from cyborg_lite.drivers.nvidia_gpu import NvidiaGpu
from cyborg_lite.drivers.sysfs import Host
from tests.fakes import sysfs_tree


def _table(name: str, root: Path, hostname: str = 'compute-1') -> str:
    sysfs_tree.build(name, root)
    host = Host(hostname, root)
    drivers = (FakeDriver(host, {}), NvidiaGpu(host, {'offer_without_reset': False}))
    found = [each for driver in drivers for each in driver.discover()]
    return table(verdicts(host, found, {}))


def test_a_host_looks_like_this(tmp_path: Path) -> None:
    lines = _table('t4-mdev', tmp_path).splitlines()
    assert lines[:7] == [
        'ADDRESS       IDS        CLASS   DRIVER             OFFERED  REASON',
        '0000:03:00.0  102b:0538  030000  -                  no       '
        'boot VGA of the host; no enabled driver claims it',
        '0000:3b:00.0  10de:1eb8  030200  nvidia_gpu_driver  yes      whole card',
        ' ' * 61 + 'provider  compute-1_0000:3b:00.0: PGPU 1',
        ' ' * 61 + 'traits    OWNER_CYBORG, CUSTOM_NVIDIA_1EB8',
        ' ' * 61 + 'handles   PCI 0000:3b:00.0',
        '0000:af:00.0  10de:1eb8  030200  nvidia_gpu_driver  no       '
        'carved into vGPUs: 2 mediated devices exist',
    ]
    assert lines[-1] == '2 of 4 offered.'


@pytest.mark.parametrize('name', sysfs_tree.hosts())
def test_it_fits_into_120_columns(name: str, tmp_path: Path) -> None:
    lines = _table(name, tmp_path, 'compute-0123.region-one.example.org').splitlines()
    assert max(map(len, lines)) <= 120
    assert not any(line != line.rstrip() for line in lines)


def test_an_empty_host_is_said_to_be_empty() -> None:
    assert table([]) == 'No candidate function on this host.'
