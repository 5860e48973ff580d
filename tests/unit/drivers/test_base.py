# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver contract with the drivers of this package."""

from cyborg_lite.drivers.amd_gpu import AmdGpu
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.fake import FakeDriver
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.intel_gpu import IntelGpu
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from tests.hosts import sysfs_tree

# mypy checks that each class conforms to the protocol.
SHIPPED: tuple[type[Driver], ...] = (AmdGpu, FakeDriver, IntelGpu, NvidiaGpu)


def test_drivers_init_reads_no_file(host: Host) -> None:
    for driver_class in SHIPPED:
        driver_class(Host('compute-1', host.root / 'missing'), {})


def test_drivers_default_options_discover(host: Host) -> None:
    for driver_class in SHIPPED:
        defaults = {option.dest: option.default for option in driver_class.OPTIONS}
        list(driver_class(host, defaults).discover())


def test_whole_card_handle_does_not_need_host(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    results = NvidiaGpu(host, {'offer_without_reset': False}).discover()
    devices = [result.device for result in results if result.device]
    (handle,) = (handle for device in devices for handle in device.root.handles)
    assert not handle.needs_host
