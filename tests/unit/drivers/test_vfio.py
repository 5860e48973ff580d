# SPDX-License-Identifier: Apache-2.0
"""What a guest that has a device opens."""

from pathlib import Path

from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.drivers.vfio import device_files
from tests.fakes.kernel import FakeKernel


def test_a_device_has_the_file_of_its_group_and_its_own(tmp_path: Path) -> None:
    FakeKernel('l40s-vendor-vfio', tmp_path, most_virtual=1)
    host = Host('compute-1', tmp_path)
    directory = 'sys/bus/pci/devices/0000:82:00.4'
    assert device_files(host, directory) == ('/dev/vfio/400', '/dev/vfio/devices/vfio0')
    assert device_files(host, 'sys/no/such') == ()
