# SPDX-License-Identifier: Apache-2.0
"""Tests of the device files of VFIO."""

from pathlib import Path

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.host.vfio import device_files
from tests.hosts.kernel import FakeKernel


def test_device_files_returns_group_and_cdev(tmp_path: Path) -> None:
    FakeKernel('l40s-vendor-vfio', tmp_path, most_virtual=1)
    host = Host('compute-1', tmp_path)
    directory = 'sys/bus/pci/devices/0000:82:00.4'
    assert device_files(host, directory) == ('/dev/vfio/400', '/dev/vfio/devices/vfio0')
    assert device_files(host, 'sys/no/such') == ()
