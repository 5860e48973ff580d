# SPDX-License-Identifier: Apache-2.0
"""Tests of the record of loaded bitstreams, closed regions and functions."""

import json
from dataclasses import replace
from pathlib import Path

from cyborg_lite.agent.bitstreams.loaded_bitstreams import LoadedBitstreams
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.inventory.host_report import (
    Deployable,
    Device,
    DiscoveryResult,
    Health,
)
from tests.builders.bitstream_files import OTHER_FUNCTION, bitstream
from tests.builders.fpga_reports import HOST, fpga_card

ADDRESS = '0000:5e:00.0'
CARD, OTHER_CARD = f'{HOST}_{ADDRESS}', f'{HOST}_0000:5f:00.0'


def list_reserved(regions: LoadedBitstreams) -> list[int]:
    """Return the reserved amount of each region of a card with two regions."""
    card = fpga_card(regions=2)
    result = regions.amend(DiscoveryResult(card.control_address, '', '', '', '', card))
    assert result.device is not None
    return [child.reserved for child in result.device.root.children]


def test_remove_regions_opens_all_regions_of_card(tmp_path: Path) -> None:
    regions = LoadedBitstreams(tmp_path)
    for region in (f'{CARD}_region0', f'{CARD}_region1', f'{OTHER_CARD}_region0'):
        regions.record_failure(region, 'CRC error')
    regions.remove_regions(CARD)
    assert list_reserved(regions) == list_reserved(LoadedBitstreams(tmp_path)) == [0, 0]
    assert OTHER_CARD in (tmp_path / 'loaded.json').read_text()


# --- functions that a bitstream describes ---


def add_function(host: Host, address: str, vendor: str = '8086') -> None:
    """Create a function that is alone in its IOMMU group and can be reset."""
    devices = host.root / 'sys/bus/pci/devices'
    function = devices / address
    function.mkdir(parents=True)
    (function / 'vendor').write_text(f'0x{vendor}\n')
    (function / 'reset').write_text('')
    members = host.root / f'sys/kernel/iommu_groups/{address[-1]}/devices'
    members.mkdir(parents=True)
    (members / address).touch()
    (function / 'iommu_group').symlink_to(members.parent)


def amend_device(host: Host, directory: Path, topology: object) -> Device:
    """Return a card whose region contains a bitstream with a topology."""
    loaded = LoadedBitstreams(directory, host)
    text = json.dumps(topology)
    loaded.record_loaded(CARD, bitstream(properties={'topology': text}))
    card = fpga_card(function=OTHER_FUNCTION)
    (handle,) = card.root.handles
    info = {**handle.info, 'function': '1'}  # of the user function
    card = replace(card, root=replace(card.root, handles=(replace(handle, info=info),)))
    result = loaded.amend(DiscoveryResult(ADDRESS, '', '', '', '', card))
    assert result.device is not None
    return result.device


def find_child(device: Device, name: str) -> Deployable:
    return next(item for item in device.root.walk() if item.name.endswith(name))


def read_function(device: Device) -> str:
    return device.root.handles[0].info['function']


def test_function_address_is_in_attributes_and_handle(tmp_path: Path) -> None:
    host = Host(HOST, tmp_path)
    add_function(host, '0000:5e:00.1')
    add_function(host, '0000:5e:00.2')
    device = amend_device(host, tmp_path, {'pf_1': {'pci_offset': '2'}})
    assert find_child(device, 'pf_1').attributes['address'] == '0000:5e:00.2'
    assert read_function(device) == '2'
    assert device.root.handles[0].key == ADDRESS
    assert device.health is Health.OK


def test_missing_function_degrades_device(tmp_path: Path) -> None:
    host = Host(HOST, tmp_path)
    add_function(host, '0000:5e:00.1')
    device = amend_device(host, tmp_path, {'pf_1': {'pci_offset': '2'}})
    assert 'address' not in find_child(device, 'pf_1').attributes
    assert read_function(device) == '1'
    reason = 'The host has no function 0000:5e:00.2 (pf_1).'
    assert (device.health, device.health_reason) == (Health.DEGRADED, reason)


def test_several_functions_keep_handle_of_driver(tmp_path: Path) -> None:
    host = Host(HOST, tmp_path)
    for address in ('0000:5e:00.1', '0000:5e:00.2', '0000:5e:00.3'):
        add_function(host, address)
    functions = {'pf_1': {'pci_offset': '2'}, 'pf_2': {'pci_offset': '3'}}
    device = amend_device(host, tmp_path, functions)
    assert find_child(device, 'pf_2').attributes['address'] == '0000:5e:00.3'
    assert read_function(device) == '1'


def test_unsafe_function_keeps_handle_of_driver(tmp_path: Path) -> None:
    host = Host(HOST, tmp_path)
    add_function(host, ADDRESS)
    add_function(host, '0000:5e:00.1')
    add_function(host, '0000:5e:00.2', vendor='10ee')
    add_function(host, '0000:5e:00.3')
    (host.root / 'sys/kernel/iommu_groups/3/devices/0000:00:1f.0').touch()
    for offset in ('0', '2', '3'):
        device = amend_device(host, tmp_path, {'pf_1': {'pci_offset': offset}})
        assert read_function(device) == '1', offset
