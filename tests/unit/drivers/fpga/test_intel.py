# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for Intel FPGA cards in all layouts of the fixture host."""

import shutil

import pytest

from cyborg_lite.drivers.fpga.intel import IntelFpga
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.inventory.host_report import Device, Health
from tests.hosts import sysfs_tree
from tests.hosts.pci_links import bind_driver, find_directory
from tests.hosts.scans import find_device, scan
from tests.hosts.sysfs_device import Plug

_OPTIONS = {
    'offer_without_reset': False,
    'offer_management_function': True,
    'tool': 'fpgaconf',
    'program_timeout': 60,
}
_ON_CARD = '0000:5e:00.0'


def _find_card(host: Host, address: str = _ON_CARD) -> Device:
    return find_device(IntelFpga(host, _OPTIONS), address)


def test_discover_attributes_describe_card(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    attributes = _find_card(host).root.attributes
    assert attributes == {
        bitstreams.VENDOR: '8086 intel',
        bitstreams.BOARD: 'PAC_ARRIA10 09c4',
        bitstreams.VERSION: '1.1.3',
        bitstreams.SHELL: '113000200000177 69528db6eb31577a8c3668f9faa081f6',
        bitstreams.REGION: '69528db6eb31577a8c3668f9faa081f6',
        bitstreams.FUNCTION: 'd8424dc4a4a3c413f89e433683f9040b',
        bitstreams.TYPES: 'gbs',
        bitstreams.DRIVERS: attributes[bitstreams.DRIVERS],
    }


@pytest.mark.parametrize('afu_id', ['0' * 32, 'f' * 32])
def test_discover_empty_region_has_no_function(afu_id: str, host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    port = find_directory(host, _ON_CARD) / 'fpga_region/region0/dfl-port.0'
    (port / 'afu_id').write_text(f'{afu_id}\n')
    root = _find_card(host).root
    assert bitstreams.FUNCTION not in root.attributes
    assert not [trait for trait in root.traits if 'FUNCTION' in trait]


def test_discover_card_without_driver_is_failed(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    shutil.rmtree(find_directory(host, _ON_CARD) / 'fpga_region')
    device = _find_card(host)
    assert device.health is Health.FAILED
    assert 'dfl-pci' in device.health_reason
    assert (device.root.resource_class, device.root.total) == ('FPGA', 0)


def test_discover_card_with_guest_is_unchanged(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    driver = IntelFpga(host, _OPTIONS)
    before = find_device(driver, _ON_CARD)
    shutil.rmtree(find_directory(host, _ON_CARD) / 'fpga_region')
    bind_driver(host, _ON_CARD, 'vfio-pci')
    after = find_device(driver, _ON_CARD)
    assert after.root.handles == before.root.handles
    assert bitstreams.REGION in after.root.attributes
    assert (after.root.total, after.health) == (1, Health.OK)


def test_classify_neural_processor_is_ignored(host: Host, plug: Plug) -> None:
    plug('0000:00:0b.0', ('8086', '7d1d'), **{'class': '120000'})
    assert scan(IntelFpga(host, _OPTIONS)) == {}


def test_classify_unknown_card_with_dfl_is_offered(host: Host, plug: Plug) -> None:
    directory = plug('0000:01:00.0', ('8086', 'ffff'), **{'class': '120000'})
    fme = directory / 'fpga_region/region0/dfl-fme.0'
    compat = fme / 'dfl-fme-region.0/fpga_region/region1'
    compat.mkdir(parents=True)
    (compat / 'compat_id').write_text('ab' * 16)
    device = _find_card(host, '0000:01:00.0')
    assert device.model == '8086:ffff'
    assert 'CUSTOM_FPGA_INTEL' in device.root.traits


def test_discover_management_function_of_guest_is_not_offered(host: Host) -> None:
    """The function on vfio-pci does not show its management engine."""
    sysfs_tree.build('fpga-intel', host.root)
    shutil.rmtree(find_directory(host, _ON_CARD) / 'fpga_region')
    bind_driver(host, _ON_CARD, 'vfio-pci')
    driver = IntelFpga(host, {**_OPTIONS, 'offer_management_function': False})
    assert 'management function' in scan(driver)[_ON_CARD].reason


def test_discover_offered_management_function_is_warned_about(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    driver = IntelFpga(host, _OPTIONS)
    for _ in range(2):
        assert find_device(driver, _ON_CARD).root.total == 1
    warnings = [text for text in caplog.messages if f'Card {_ON_CARD} is' in text]
    assert len(warnings) == 1
