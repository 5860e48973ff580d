# SPDX-License-Identifier: Apache-2.0
"""Tests of the fake driver: the names that clients of Cyborg's fake device expect."""

from cyborg_lite.drivers.fake import FakeDriver
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.inventory.host_report import Device


def _device(host: str = 'compute-1') -> Device:
    (result,) = FakeDriver(Host(host), {}).discover()
    assert result.device is not None
    return result.device


def test_discover_returns_one_board() -> None:
    device = _device()
    assert (device.type, device.vendor, device.model, device.driver) == (
        'FPGA',
        '0xABCD',
        'FakeDevice',
        'fake',
    )
    assert device.std_board_info == {'device_id': '0xabcd', 'class': 'Fake class'}
    assert device.vendor_board_info == 'fake_vendor_info'


def test_root_matches_tempest_expectations() -> None:
    root = _device().root
    assert root.name == 'compute-1_FakeDevice'
    assert root.resource_class == 'FPGA'
    assert set(root.traits) == {'CUSTOM_FAKE_DEVICE', 'OWNER_CYBORG'}
    assert list(root.attributes.items())[:2] == [
        ('rc', 'FPGA'),
        ('traits1', 'CUSTOM_FAKE_DEVICE'),
    ]
