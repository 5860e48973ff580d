# SPDX-License-Identifier: Apache-2.0
"""Intel cards in all their layouts, as the fabricated host shows them."""

import json
import shutil
from pathlib import Path

import pytest

from cyborg_lite.drivers.intel_fpga import IntelFpga
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model import bitstreams
from cyborg_lite.model.inventory import Deployable, Device, Finding, Health
from tests.fakes import sysfs_tree
from tests.unit.drivers.conftest import Plug

_OPTIONS = {'offer_without_reset': False, 'tool': 'fpgaconf', 'program_timeout': 60}
_ON_CARD, _ON_VIRTUAL, _OLD = '0000:5e:00.0', '0000:be:00.0', '0000:d8:00.0'


def _verdicts(host: Host, driver: IntelFpga | None = None) -> dict[str, Finding]:
    found = list((driver or IntelFpga(host, _OPTIONS)).discover())
    return {each.address: each for each in found}


def _device(host: Host, address: str, driver: IntelFpga | None = None) -> Device:
    device = _verdicts(host, driver)[address].device
    assert device is not None
    return device


def _directory(host: Host, address: str) -> Path:
    return (host.root / 'sys/bus/pci/devices' / address).resolve()


@pytest.mark.parametrize('name', sysfs_tree.hosts())
def test_exactly_the_expected_cards_are_offered(name: str, host: Host) -> None:
    built = sysfs_tree.build(name, host.root)
    ours = name == 'fpga-intel'
    expected = {each['pci']: each for each in built.expect['devices'] if ours}
    offered = {a: f.device for a, f in _verdicts(host).items() if f.device}
    assert set(offered) == set(expected)
    for address, fields in expected.items():
        root = offered[address].root
        assert offered[address].type == fields['type']
        assert root.name == f'compute-1_{address}'
        assert (root.resource_class, root.total) == (fields['rc'], fields['total'])
        assert set(root.traits) == {each.lstrip('+') for each in fields['traits']}
        kind, count, info = fields['handles']
        assert [unit.type for unit in root.units] == [kind] * count
        assert json.dumps(dict(root.units[0].info), sort_keys=True) == info
        assert root.units[0].needs_host


def test_a_virtual_function_is_known_as_a_part_of_its_card(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    found = _verdicts(host)['0000:be:00.1']
    assert found.device is None
    assert found.reason == f'virtual function of {_ON_VIRTUAL}'


def test_a_card_is_a_tree_of_regions_and_functions(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    root = _device(host, _ON_VIRTUAL).root
    names = [each.name.removeprefix('compute-1_') for each in root.walk()]
    region = f'{_ON_VIRTUAL}_region0'
    assert names == [_ON_VIRTUAL, region, f'{region}_vf0']
    # One provider for one thing that can be given away.
    assert [each.resource_class for each in root.walk()] == ['FPGA', None, None]
    assert all(not each.units for each in root.parts)


def test_the_management_of_a_card_stays_its_physical_function(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    device = _device(host, _ON_VIRTUAL)
    assert device.address == _ON_VIRTUAL
    assert device.root.units[0].key == '0000:be:00.1'


def test_what_fits_a_card_stands_in_its_attributes(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    said = _device(host, _ON_CARD).root.attributes
    assert said == {
        bitstreams.VENDOR: '8086 intel',
        bitstreams.BOARD: 'PAC_ARRIA10 09c4',
        bitstreams.VERSION: '1.1.3',
        bitstreams.SHELL: '113000200000177 69528db6eb31577a8c3668f9faa081f6',
        bitstreams.REGION: '69528db6eb31577a8c3668f9faa081f6',
        bitstreams.FUNCTION: 'd8424dc4a4a3c413f89e433683f9040b',
    }


@pytest.mark.parametrize('nothing', ['0' * 32, 'f' * 32])
def test_an_empty_region_has_no_function(nothing: str, host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    port = _directory(host, _ON_CARD) / 'fpga_region/region0/dfl-port.0'
    (port / 'afu_id').write_text(f'{nothing}\n')
    root = _device(host, _ON_CARD).root
    assert bitstreams.FUNCTION not in root.attributes
    assert not [trait for trait in root.traits if 'FUNCTION' in trait]


def test_a_manager_with_an_error_closes_the_region(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    fme = _directory(host, _ON_CARD) / 'fpga_region/region0/dfl-fme.0'
    manager = fme / 'dfl-fme-mgr.0/fpga_manager/fpga0'
    (manager / 'state').write_text('write error\n')
    (manager / 'status').write_text('reconfig CRC error\n')
    device = _device(host, _ON_CARD)
    assert device.health is Health.DEGRADED
    assert device.health_reason == 'write error: reconfig CRC error'
    assert (device.root.total, device.root.reserved) == (1, 1)


def test_a_card_whose_driver_is_missing_has_nothing_to_give(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    shutil.rmtree(_directory(host, _ON_CARD) / 'fpga_region')
    device = _device(host, _ON_CARD)
    assert device.health is Health.FAILED
    assert 'dfl-pci' in device.health_reason
    assert (device.root.resource_class, device.root.total) == ('FPGA', 0)


def test_a_guest_that_has_the_card_does_not_change_what_it_is(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    driver = IntelFpga(host, _OPTIONS)
    before = _device(host, _ON_CARD, driver)
    directory = _directory(host, _ON_CARD)
    shutil.rmtree(directory / 'fpga_region')
    (directory / 'driver').unlink()
    (host.root / 'sys/bus/pci/drivers/vfio-pci').mkdir(parents=True, exist_ok=True)
    (directory / 'driver').symlink_to(host.root / 'sys/bus/pci/drivers/vfio-pci')
    after = _device(host, _ON_CARD, driver)
    assert after.root.units == before.root.units
    assert bitstreams.REGION in after.root.attributes
    assert (after.root.total, after.health) == (1, Health.OK)


def test_a_neural_processor_of_the_same_class_is_left_alone(
    host: Host, plug: Plug
) -> None:
    plug('0000:00:0b.0', ('8086', '7d1d'), **{'class': '120000'})
    assert _verdicts(host) == {}


def test_an_unknown_card_with_the_files_of_one_is_taken(host: Host, plug: Plug) -> None:
    directory = plug('0000:01:00.0', ('8086', 'ffff'), **{'class': '120000'})
    fme = directory / 'fpga_region/region0/dfl-fme.0'
    compat = fme / 'dfl-fme-region.0/fpga_region/region1'
    compat.mkdir(parents=True)
    (compat / 'compat_id').write_text('ab' * 16)
    device = _device(host, '0000:01:00.0')
    assert device.model == '8086:ffff'
    assert 'CUSTOM_FPGA_INTEL' in device.root.traits


def _with_two_regions(host: Host, plug: Plug) -> Deployable:
    """A card with two virtual functions, each of which has a port."""
    sysfs_tree.build('fpga-intel', host.root)
    directory = _directory(host, _ON_VIRTUAL)
    second = directory / 'fpga_region/region2/dfl-fme.1/dfl-fme-region.10'
    (second / 'fpga_region/region9').mkdir(parents=True)
    (second / 'fpga_region/region9/compat_id').write_text('cd' * 16)
    virtual = plug(
        '0000:be:00.2', ('8086', '09c5'), iommu_group=82, **{'class': '120000'}
    )
    (directory / 'virtfn1').symlink_to(virtual)
    (virtual / 'physfn').symlink_to(directory)
    return _device(host, _ON_VIRTUAL).root


def test_regions_with_functions_of_their_own_are_given_apart(
    host: Host, plug: Plug
) -> None:
    root = _with_two_regions(host, plug)
    assert root.resource_class is None
    assert [part.resource_class for part in root.parts] == ['FPGA', 'FPGA']
    assert [part.units[0].key for part in root.parts] == [
        '0000:be:00.1',
        '0000:be:00.2',
    ]
    traits = [set(part.traits) for part in root.parts]
    assert f'CUSTOM_FPGA_REGION_INTEL_{"CD" * 16}' in traits[1] - traits[0]
    assert len({part.provider_uuid for part in root.parts}) == 2


def test_discovery_can_be_repeated(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    driver = IntelFpga(host, _OPTIONS)
    assert list(driver.discover()) == list(driver.discover())


def test_a_card_that_vanishes_costs_only_itself(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    scan = iter(IntelFpga(host, _OPTIONS).discover())
    first = next(scan)
    shutil.rmtree(host.root / 'sys/devices/pci0000:bd')
    assert [first.address, *(each.address for each in scan if each.device)] == [
        _ON_CARD,
        _OLD,
    ]


def test_a_root_without_sys_has_nothing(host: Host) -> None:
    assert _verdicts(host) == {}
