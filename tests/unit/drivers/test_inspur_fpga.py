# SPDX-License-Identifier: Apache-2.0
"""Inspur cards are given away as they are."""

from cyborg_lite.drivers.base import Programmable
from cyborg_lite.drivers.inspur_fpga import InspurFpga
from cyborg_lite.drivers.sysfs import Host
from tests.unit.drivers.conftest import Plug


def test_a_card_is_one_unit_with_the_traits_it_always_had(
    host: Host, plug: Plug
) -> None:
    plug('0000:01:00.0', ('1bd4', 'a115'), **{'class': '120000'})
    driver = InspurFpga(host, {'offer_without_reset': False})
    (found,) = driver.discover()
    assert found.device is not None
    root = found.device.root
    assert found.device.driver == 'INSPUR'
    assert set(root.traits) == {
        'OWNER_CYBORG',
        'CUSTOM_FPGA_INSPUR',
        'CUSTOM_FPGA_PRODUCT_ID_A115',
    }
    assert (root.resource_class, root.total, len(root.units)) == ('FPGA', 1, 1)
    assert not root.units[0].needs_host


def test_it_cannot_be_programmed(host: Host) -> None:
    driver = InspurFpga(host, {'offer_without_reset': False})
    assert not isinstance(driver, Programmable)
