# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for Xilinx Alveo cards."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.fpga.xilinx import XilinxFpga
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult, Health
from tests.hosts import sysfs_tree

_OPTIONS = {'offer_without_reset': False, 'tool': 'xbutil', 'program_timeout': 60}
_REASONS = (
    'golden image: needs base shell and a cold boot',
    'IOMMU group 71 also contains 0000:5e:00.0 bound to xclmgmt',
)
_HOSTS = ('fpga-xilinx-u250', 'u250-shared-group')
_CARD, _USER, _GOLDEN = '0000:d8:00.0', '0000:d8:00.1', '0000:3d:00.0'


def _results(
    host: Host, driver: XilinxFpga | None = None
) -> dict[str, DiscoveryResult]:
    results = (driver or XilinxFpga(host, _OPTIONS)).discover()
    return {result.address: result for result in results}


def _device(host: Host, address: str, driver: XilinxFpga | None = None) -> Device:
    device = _results(host, driver)[address].device
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


def test_discover_card_without_region_says_why(host: Host) -> None:
    reasons = set()
    for name in _HOSTS:
        tree = host.root / name
        sysfs_tree.build(name, tree)
        devices = [item.device for item in _results(Host('c', tree)).values()]
        withheld = [item for item in devices if item and not item.root.total]
        reasons |= {item.health_reason for item in withheld}
    assert reasons == set(_REASONS)


@pytest.mark.parametrize('drivers', [('xclmgmt', 'xocl'), (None, None)])
def test_discover_without_drivers_finds_user_function(
    drivers: tuple[str | None, str | None], host: Host
) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    for address, driver in zip((_CARD, _USER), drivers, strict=True):
        _bind(host, address, driver)
    assert _device(host, _CARD).root.handles[0].key == _USER
    assert _results(host)[_USER].reason == f'user function of {_CARD}'


@pytest.mark.parametrize('text', ['', '00000000-0000-0000-0000-000000000000'])
def test_discover_card_without_xclbin_has_no_function(text: str, host: Host) -> None:
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
def test_discover_failed_card_is_reserved(
    file: str, text: str, reason: str, host: Host
) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    (_directory(host, _CARD) / file).write_text(f'{text}\n')
    device = _device(host, _CARD)
    assert (device.health, device.health_reason) == (Health.FAILED, reason)
    assert (device.root.total, device.root.reserved) == (1, 1)


def test_discover_card_used_by_host_is_in_use(host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    assert not _device(host, _CARD).root.handles[0].in_use
    (_directory(host, _USER) / 'kdsstat').write_text('contexts:\t\t2\n')
    assert _device(host, _CARD).root.handles[0].in_use


def test_discover_foreign_group_member_withholds_card(host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    group = host.root / 'sys/kernel/iommu_groups/92/devices'
    _bind(host, _GOLDEN, 'nvme')
    (group / _GOLDEN).symlink_to(_directory(host, _GOLDEN))
    device = _device(host, _CARD)
    assert device.root.handles == ()
    assert 'IOMMU group 92' in device.health_reason


def test_discover_card_with_guest_is_unchanged(host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    driver = XilinxFpga(host, _OPTIONS)
    before = _device(host, _CARD, driver)
    for file in ('xclbinuuid', 'interface_uuids', 'kdsstat'):
        (_directory(host, _USER) / file).unlink()
    _bind(host, _USER, 'vfio-pci')
    assert _device(host, _CARD, driver) == before
