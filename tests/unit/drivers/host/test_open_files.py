# SPDX-License-Identifier: Apache-2.0
"""Tests of the search for processes by open file."""

from pathlib import Path

from cyborg_lite.drivers.host.open_files import find_processes
from tests.hosts.kernel import FakeKernel


def test_find_processes_returns_holders_of_file(tmp_path: Path) -> None:
    kernel = FakeKernel('l40s-vendor-vfio', tmp_path, most_virtual=1)
    kernel.open('/dev/vfio/400', process=7)
    kernel.open('/dev/vfio/40', process=8)
    (tmp_path / 'proc/9').mkdir()
    assert find_processes(str(tmp_path), ['/dev/vfio/400']) == [7]
    assert find_processes(str(tmp_path), []) == []
    assert find_processes(str(tmp_path / 'nowhere'), ['/dev/vfio/400']) == []
