# SPDX-License-Identifier: Apache-2.0
"""The fake driver shows what clients of the fake device have always seen."""

from cyborg_lite.drivers.fake import FakeDriver
from cyborg_lite.drivers.sysfs import Host, pci_address
from cyborg_lite.model.inventory import Device, HandleType


def _device(host: str = 'compute-1') -> Device:
    (finding,) = FakeDriver(Host(host), {}).discover()
    assert finding.device is not None
    return finding.device


def test_there_is_one_board() -> None:
    device = _device()
    assert (device.type, device.vendor, device.model, device.driver) == (
        'FPGA',
        '0xABCD',
        'FakeDevice',
        'fake',
    )
    assert device.std_board_info == {'device_id': '0xabcd', 'class': 'Fake class'}
    assert device.vendor_board_info == 'fake_vendor_info'


def test_its_provider_is_the_one_that_tempest_asks_for() -> None:
    root = _device().root
    assert root.name == 'compute-1_FakeDevice'
    assert root.resource_class == 'FPGA'
    assert set(root.traits) == {'CUSTOM_FAKE_DEVICE', 'OWNER_CYBORG'}
    assert list(root.attributes.items())[:2] == [
        ('rc', 'FPGA'),
        ('traits1', 'CUSTOM_FAKE_DEVICE'),
    ]


def test_it_has_sixteen_units_that_nova_ignores() -> None:
    root = _device().root
    assert root.total == len(root.units) == 16
    assert {unit.type for unit in root.units} == {HandleType.TEST_PCI}
    assert not any(unit.needs_host for unit in root.units)


def test_every_unit_has_an_address_of_its_own() -> None:
    units = _device().root.units
    spelled = {'{domain}:{bus}:{device}.{function}'.format(**u.info) for u in units}
    assert len(spelled) == 16
    assert all(pci_address(address) == address for address in spelled)
    assert {unit.key for unit in units} == spelled


def test_two_hosts_have_two_providers() -> None:
    assert _device('a').root.provider_uuid != _device('b').root.provider_uuid
