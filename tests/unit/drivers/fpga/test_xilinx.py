# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for Xilinx Alveo cards."""

import pytest

from cyborg_lite.drivers.fpga.xilinx import XilinxFpga
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.inventory.host_report import Device, Health
from tests.hosts import sysfs_tree
from tests.hosts.pci_links import bind_driver, find_directory
from tests.hosts.scans import find_device, scan

_OPTIONS = {'offer_without_reset': False, 'tool': 'xbutil', 'program_timeout': 60}
_REASONS = (
    'golden image: needs base shell and a cold boot',
    'IOMMU group 71 also contains 0000:5e:00.0 bound to xclmgmt',
)
_HOSTS = ('fpga-xilinx-u250', 'u250-shared-group')
_CARD, _USER, _GOLDEN = '0000:d8:00.0', '0000:d8:00.1', '0000:3d:00.0'


def _find_card(host: Host) -> Device:
    return find_device(XilinxFpga(host, _OPTIONS), _CARD)


def test_discover_card_without_region_says_why(host: Host) -> None:
    reasons = set()
    for name in _HOSTS:
        tree = host.root / name
        sysfs_tree.build(name, tree)
        driver = XilinxFpga(Host('c', tree), _OPTIONS)
        devices = [result.device for result in driver.discover()]
        withheld = [item for item in devices if item and not item.root.total]
        reasons |= {item.health_reason for item in withheld}
    assert reasons == set(_REASONS)


@pytest.mark.parametrize('drivers', [('xclmgmt', 'xocl'), (None, None)])
def test_discover_without_drivers_finds_user_function(
    drivers: tuple[str | None, str | None], host: Host
) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    for address, driver in zip((_CARD, _USER), drivers, strict=True):
        bind_driver(host, address, driver)
    assert _find_card(host).root.handles[0].key == _USER
    assert scan(XilinxFpga(host, _OPTIONS))[_USER].reason == f'user function of {_CARD}'


@pytest.mark.parametrize('text', ['', '00000000-0000-0000-0000-000000000000'])
def test_discover_card_without_xclbin_has_no_function(text: str, host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    (find_directory(host, _USER) / 'xclbinuuid').write_text(text)
    assert bitstreams.FUNCTION not in _find_card(host).root.attributes


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
    (find_directory(host, _CARD) / file).write_text(f'{text}\n')
    device = _find_card(host)
    assert (device.health, device.health_reason) == (Health.FAILED, reason)
    assert (device.root.total, device.root.reserved) == (1, 1)


def test_discover_card_used_by_host_is_in_use(host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    assert not _find_card(host).root.handles[0].in_use
    (find_directory(host, _USER) / 'kdsstat').write_text('contexts:\t\t2\n')
    assert _find_card(host).root.handles[0].in_use


def test_discover_foreign_group_member_withholds_card(host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    group = host.root / 'sys/kernel/iommu_groups/92/devices'
    bind_driver(host, _GOLDEN, 'nvme')
    (group / _GOLDEN).symlink_to(find_directory(host, _GOLDEN))
    device = _find_card(host)
    assert device.root.handles == ()
    assert 'IOMMU group 92' in device.health_reason


def test_discover_card_with_guest_is_unchanged(host: Host) -> None:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    driver = XilinxFpga(host, _OPTIONS)
    before = find_device(driver, _CARD)
    for file in ('xclbinuuid', 'interface_uuids', 'kdsstat'):
        (find_directory(host, _USER) / file).unlink()
    bind_driver(host, _USER, 'vfio-pci')
    assert find_device(driver, _CARD) == before
