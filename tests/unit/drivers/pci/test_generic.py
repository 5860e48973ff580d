# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for PCI functions that the operator allows."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.pci.generic import GenericPci
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from tests.hosts import mount_tables, sysfs_tree
from tests.hosts.scans import scan
from tests.hosts.sysfs_device import Plug

_ADDRESS: Final = '0000:3b:00.0'
_IDS: Final = ('1d55', '1001')
_PLAIN: Final = {'class': 'ff0000', 'driver': None}


# Any: entries are JSON.
def _results(host: Host, *entries: Any) -> dict[str, DiscoveryResult]:
    options = {
        'offer_without_reset': False,
        'device_spec': [json.dumps(entry) for entry in entries],
    }
    return scan(GenericPci(host, options))


def _reason(host: Host, *entries: Any) -> str:
    result = _results(host, *entries)[_ADDRESS]
    assert result.device is not None
    assert result.device.root.handles == ()
    return result.reason


@pytest.mark.parametrize(
    'entry',
    [
        {'vendor_id': '1d55'},
        {'product_id': '1001'},
        {'address': '*:3b:00.*'},
        {'address': {'bus': '3[a-f]', 'function': '[0-1]'}},
        {'class': 'ff'},
        {'vendor_id': '1d55', 'class': '0xff00'},
    ],
)
def test_discover_matching_function_is_offered(
    host: Host, plug: Plug, entry: dict[str, Any]
) -> None:
    plug(_ADDRESS, _IDS, **_PLAIN)
    plug('0000:4b:00.0', ('1234', '5678'), **{**_PLAIN, 'class': '120000'})
    results = _results(host, entry)
    assert [address for address, item in results.items() if item.device] == [_ADDRESS]


def test_discover_entry_settings_apply_first_match(host: Host, plug: Plug) -> None:
    plug(_ADDRESS, _IDS, **_PLAIN)
    entry = {
        'vendor_id': '1d55',
        'resource_class': 'dsp',
        'traits': 'fast, CUSTOM_DSP_V2',
        'device_type': 'AICHIP',
        'managed': 'no',
        'physical_network': 'physnet1',
    }
    device = _results(host, entry, {'vendor_id': '1d55'})[_ADDRESS].device
    assert device is not None
    assert device.type == 'AICHIP'
    assert device.root.resource_class == 'CUSTOM_DSP'
    assert device.root.traits == (
        'OWNER_CYBORG',
        'CUSTOM_PCI_PRODUCT_ID_1001',
        'CUSTOM_FAST',
        'CUSTOM_DSP_V2',
    )
    (handle,) = device.root.handles
    assert not handle.managed
    assert handle.info['physical_network'] == 'physnet1'


def test_discover_known_vendor_has_vendor_trait(host: Host, plug: Plug) -> None:
    plug(_ADDRESS, ('8086', '0b25'), **_PLAIN)
    device = _results(host, {'vendor_id': '8086'})[_ADDRESS].device
    assert device is not None
    assert device.root.traits[1] == 'CUSTOM_PCI_INTEL'
    assert device.root.resource_class == 'CUSTOM_PCI'


_INTERFACE: Final = {'name': 'ens1', 'mac': '02:00:00:00:00:01', 'operstate': 'up'}


@pytest.mark.parametrize(
    ('ids', 'fields', 'reason'),
    [
        (_IDS, {'files': {'boot_vga': '1'}}, 'boot VGA of the host'),
        # NVSwitches have this class: a guest would get the links of all GPUs.
        (
            ('10de', '22a3'),
            {'class': '068000', 'driver': None},
            'in use by the host: a bridge, which other functions need',
        ),
        (
            ('8086', '1521'),
            {'class': '020000', 'driver': 'igb', 'net': [_INTERFACE]},
            'in use by the host: its interface ens1 is up',
        ),
    ],
)
def test_discover_function_of_host_is_withheld(
    host: Host, plug: Plug, ids: tuple[str, str], fields: dict[str, Any], reason: str
) -> None:
    plug(_ADDRESS, ids, **fields)
    assert _reason(host, {'vendor_id': ids[0]}) == reason


def test_discover_root_disk_controller_is_withheld(host: Host, plug: Plug) -> None:
    directory = plug(_ADDRESS, _IDS, **{'class': '010601', 'driver': 'ahci'})
    disk = directory / 'ata1/host0/target0:0:0/0:0:0:0/block/sda'
    (disk / 'sda1').mkdir(parents=True)
    (disk / 'sda1/partition').write_text('1\n')
    (host.root / 'sys/block').mkdir()
    (host.root / 'sys/block/sda').symlink_to(disk)
    (host.root / 'proc').mkdir()
    (host.root / 'proc/mounts').write_text('/dev/sda1 / ext4 rw 0 0\n')
    reason = _reason(host, {'vendor_id': '1d55'})
    assert reason == 'in use by the host: / is mounted from sda1'


def test_discover_boot_drive_is_never_offered(tmp_path: Path) -> None:
    sysfs_tree.build('nvme-lvm', tmp_path)
    results = _results(Host('compute-1', tmp_path), {'class': '0108'})
    assert 'is mounted' in results['0000:c1:00.0'].reason
    device = results['0000:c2:00.0'].device
    assert device is not None
    assert device.root.total == 1


def test_read_legacy_config_returns_whitelist() -> None:
    text = '{"vendor_id": "1d55"}'
    options = GenericPci.read_legacy_config(
        lambda name, _: {'passthrough_whitelist': [text]} if name == 'pci' else {}
    )
    assert options == {'cyborg_entries': [text]}


@pytest.mark.parametrize('fault', mount_tables.FAULTS)
def test_discover_unknown_system_disk_withholds_storage(
    host: Host, plug: Plug, fault: str
) -> None:
    sysfs_tree.build('nvme-ascend', host.root)
    plug(_ADDRESS, _IDS, **{'class': '010700', 'driver': None})
    plug('0000:3c:00.0', _IDS, **{'class': 'ff0000', 'iommu_group': 8})
    mount_tables.replace_tables(host.root, fault)
    results = _results(host, {'class': '01'}, {'vendor_id': '1d55'})
    devices = {address: item.device for address, item in results.items()}
    addresses = [
        address for address, item in devices.items() if item and item.root.total
    ]
    assert len(devices) == 5
    assert addresses == ['0000:3c:00.0']
    assert 'it may be the system disk' in results[_ADDRESS].reason
