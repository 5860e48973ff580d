# SPDX-License-Identifier: Apache-2.0
"""Xilinx cards: two functions that are one device, and the one with nothing in it."""

import json
from pathlib import Path

import pytest

from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.drivers.xilinx_fpga import XilinxFpga
from cyborg_lite.model import bitstreams
from cyborg_lite.model.inventory import Device, Finding, Health
from tests.fakes import sysfs_tree

_OPTIONS = {'offer_without_reset': False, 'tool': 'xbutil', 'program_timeout': 60}
_CARD, _USER, _GOLDEN = '0000:d8:00.0', '0000:d8:00.1', '0000:3d:00.0'


def _verdicts(host: Host, driver: XilinxFpga | None = None) -> dict[str, Finding]:
    found = list((driver or XilinxFpga(host, _OPTIONS)).discover())
    return {each.address: each for each in found}


def _device(host: Host, address: str, driver: XilinxFpga | None = None) -> Device:
    device = _verdicts(host, driver)[address].device
    assert device is not None
    return device


def _directory(host: Host, address: str) -> Path:
    return (host.root / 'sys/bus/pci/devices' / address).resolve()


def _bind(host: Host, address: str, driver: str | None) -> None:
    link = _directory(host, address) / 'driver'
    link.unlink(missing_ok=True)
    if driver is not None:
        target = host.root / 'sys/bus/pci/drivers' / driver
        target.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)


@pytest.mark.parametrize('name', sysfs_tree.hosts())
def test_exactly_the_expected_cards_are_offered(name: str, host: Host) -> None:
    built = sysfs_tree.build(name, host.root)
    ours = name == 'fpga-xilinx-u250'
    expected = {each['pci']: each for each in built.expect['devices'] if ours}
    offered = {a: f.device for a, f in _verdicts(host).items() if f.device}
    assert set(offered) == set(expected)
    for address, fields in expected.items():
        root = offered[address].root
        assert root.name == f'compute-1_{address}'
        assert (root.resource_class, root.total) == (fields['rc'], fields['total'])
        if 'health' in fields:
            assert offered[address].health_reason == fields['health']
            continue
        assert set(root.traits) == {each.lstrip('+') for each in fields['traits']}
        kind, count, info = fields['handles']
        assert [unit.type for unit in root.units] == [kind] * count
        assert json.dumps(dict(root.units[0].info), sort_keys=True) == info


def test_the_management_function_is_never_given_away(host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    units = [
        unit.key
        for finding in _verdicts(host).values()
        if finding.device
        for part in finding.device.root.walk()
        for unit in part.units
    ]
    assert units == [_USER]


@pytest.mark.parametrize('drivers', [('xclmgmt', 'xocl'), (None, None)])
def test_the_roles_of_the_functions_are_found_without_drivers_too(
    drivers: tuple[str | None, str | None], host: Host
) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    for address, driver in zip((_CARD, _USER), drivers, strict=True):
        _bind(host, address, driver)
    assert _device(host, _CARD).root.units[0].key == _USER
    assert _verdicts(host)[_USER].reason == f'user function of {_CARD}'


def test_what_fits_a_card_stands_in_its_attributes(host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    said = _device(host, _CARD).root.attributes
    interface = 'cec91e5efe5a3c9b3e2a0b0e3b6a2c11'
    logic = '12f0c4c5f5b3cd4c6bd1a5f0b1a7a5f9'
    assert said == {
        bitstreams.VENDOR: '10ee xilinx',
        bitstreams.BOARD: 'u250 5004',
        bitstreams.VERSION: '4.1',
        bitstreams.SHELL: f'{interface} {logic} xilinx_u250_gen3x16_xdma_shell_4_1',
        bitstreams.REGION: interface,
        bitstreams.FUNCTION: '8f3f6a0e3c524b3e8a3c6f0f6b4e7a10',
    }


@pytest.mark.parametrize('text', ['', '00000000-0000-0000-0000-000000000000'])
def test_a_card_without_a_program_has_no_function(text: str, host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    (_directory(host, _USER) / 'xclbinuuid').write_text(text)
    assert bitstreams.FUNCTION not in _device(host, _CARD).root.attributes


@pytest.mark.parametrize(
    ('file', 'text', 'reason'),
    [
        ('firewall.m.55296/status', '3', 'its firewall has tripped (status 3)'),
        ('dev_offline', '1', 'it is offline'),
    ],
)
def test_a_card_that_failed_is_kept_and_closed(
    file: str, text: str, reason: str, host: Host
) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    (_directory(host, _CARD) / file).write_text(f'{text}\n')
    device = _device(host, _CARD)
    assert (device.health, device.health_reason) == (Health.FAILED, reason)
    assert (device.root.total, device.root.reserved) == (1, 1)


def test_contexts_of_the_host_make_the_unit_a_strangers(host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    assert not _device(host, _CARD).root.units[0].in_use
    (_directory(host, _USER) / 'kdsstat').write_text('contexts:\t\t2\n')
    assert _device(host, _CARD).root.units[0].in_use


def test_a_stranger_in_the_group_keeps_the_card_from_guests(host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    group = host.root / 'sys/kernel/iommu_groups/91/devices'
    _bind(host, _GOLDEN, 'nvme')
    (group / _GOLDEN).symlink_to(_directory(host, _GOLDEN))
    device = _device(host, _CARD)
    assert device.root.units == ()
    assert 'IOMMU group 91' in device.health_reason


def test_a_guest_does_not_change_what_the_card_is(host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    driver = XilinxFpga(host, _OPTIONS)
    before = _device(host, _CARD, driver)
    for file in ('xclbinuuid', 'interface_uuids', 'kdsstat'):
        (_directory(host, _USER) / file).unlink()
    _bind(host, _USER, 'vfio-pci')
    assert _device(host, _CARD, driver) == before


def test_a_root_without_sys_has_nothing(host: Host) -> None:
    assert _verdicts(host) == {}
