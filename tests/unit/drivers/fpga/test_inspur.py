# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for Inspur FPGA cards."""

from cyborg_lite.drivers.base import LoadsBitstreams
from cyborg_lite.drivers.fpga.inspur import InspurFpga
from cyborg_lite.drivers.host.sysfs import Host
from tests.hosts.sysfs_device import Plug


def test_discover_card_has_one_handle(host: Host, plug: Plug) -> None:
    plug('0000:01:00.0', ('1bd4', 'a115'), **{'class': '120000'})
    driver = InspurFpga(host, {'offer_without_reset': False})
    (result,) = driver.discover()
    assert result.device is not None
    root = result.device.root
    assert result.device.driver == 'INSPUR'
    assert set(root.traits) == {
        'OWNER_CYBORG',
        'CUSTOM_FPGA_INSPUR',
        'CUSTOM_FPGA_PRODUCT_ID_A115',
    }
    assert (root.resource_class, root.total, len(root.handles)) == ('FPGA', 1, 1)
    assert not root.handles[0].needs_host


def test_driver_does_not_load_bitstreams(host: Host) -> None:
    driver = InspurFpga(host, {'offer_without_reset': False})
    assert not isinstance(driver, LoadsBitstreams)
