# SPDX-License-Identifier: Apache-2.0
"""Who has a device open is told by the files of processes."""

from pathlib import Path

from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.drivers.vfio import device_files, processes_with
from tests.fakes.kernel import FakeKernel


def test_a_device_has_the_file_of_its_group_and_its_own(tmp_path: Path) -> None:
    FakeKernel('l40s-vendor-vfio', tmp_path, most_virtual=1)
    host = Host('compute-1', tmp_path)
    directory = 'sys/bus/pci/devices/0000:82:00.4'
    assert device_files(host, directory) == ('/dev/vfio/400', '/dev/vfio/devices/vfio0')
    assert device_files(host, 'sys/no/such') == ()


def test_processes_are_found_by_what_they_have_open(tmp_path: Path) -> None:
    kernel = FakeKernel('l40s-vendor-vfio', tmp_path, most_virtual=1)
    kernel.open('/dev/vfio/400', process=7)
    kernel.open('/dev/vfio/40', process=8)
    (tmp_path / 'proc/9').mkdir()
    assert processes_with(str(tmp_path), ['/dev/vfio/400']) == [7]
    assert processes_with(str(tmp_path), []) == []
    assert processes_with(str(tmp_path / 'nowhere'), ['/dev/vfio/400']) == []
