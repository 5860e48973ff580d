# SPDX-License-Identifier: Apache-2.0
"""The drivers that ship are what the contract asks for."""

from cyborg_lite.drivers.amd_gpu import AmdGpu
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.fake import FakeDriver
from cyborg_lite.drivers.intel_gpu import IntelGpu
from cyborg_lite.drivers.nvidia_gpu import NvidiaGpu
from cyborg_lite.drivers.sysfs import Host
from tests.fakes import sysfs_tree

# That mypy takes them for drivers is half of the test.
SHIPPED: tuple[type[Driver], ...] = (AmdGpu, FakeDriver, IntelGpu, NvidiaGpu)


def test_every_driver_keeps_still_until_it_is_asked(host: Host) -> None:
    for kind in SHIPPED:
        kind(Host('compute-1', host.root / 'not made yet'), {})


def test_every_driver_can_do_with_the_defaults_of_its_options(host: Host) -> None:
    for kind in SHIPPED:
        defaults = {option.dest: option.default for option in kind.OPTIONS}
        list(kind(host, defaults).discover())


def test_handles_of_whole_cards_need_nothing_on_the_host(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    found = NvidiaGpu(host, {'offer_without_reset': False}).discover()
    units = [unit for each in found if each.device for unit in each.device.root.units]
    assert len(units) == 1
    assert not units[0].needs_host
