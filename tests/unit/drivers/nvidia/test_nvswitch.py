# SPDX-License-Identifier: Apache-2.0
"""Tests of cards on a host with NVSwitches."""

import copy
from typing import Any

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.host.timed_scan import TimedScan
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.drivers.nvidia.nvswitch import TRAIT, Fabric, read_fabric
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from tests.hosts import sysfs_tree
from tests.hosts.scans import find_device, scan
from tests.hosts.sysfs_device import Plug

_CARD, _SWITCH = '0000:1b:00.0', '0000:07:00.0'
_BRIDGE = {'class': '068000', 'driver': None}


def _results(host: Host) -> dict[str, DiscoveryResult]:
    return scan(NvidiaGpu(host, {'offer_without_reset': False}))


def test_card_behind_nvswitches_shows_fabric(host: Host) -> None:
    sysfs_tree.build('h100-hgx', host.root)
    assert read_fabric(host, TimedScan()) == Fabric(switches=4, active=4)
    result = _results(host)[_CARD]
    assert result.device is not None
    root = result.device.root
    assert TRAIT in root.traits
    assert root.attributes['nvswitches'] == '4'
    assert TRAIT in root.attributes.values()
    assert result.reason == (
        'whole card, behind 4 NVSwitches; NVLink needs an active Fabric Manager '
        'partition'
    )


def test_vgpus_behind_nvswitches_have_trait(host: Host) -> None:
    # Any: YAML values have no common type.
    fields: dict[str, Any] = copy.deepcopy(
        dict(sysfs_tree.fields_of('l4-blackwell-vgpu'))
    )
    card = fields['devices'][1]
    card['ids'][1] = card['sriov']['vf_device'] = '2901'
    switch = {'pci': _SWITCH, 'like': 'nvswitch', 'under': 'pci0000:00'}
    fields['devices'].append({**switch, 'iommu_group': 40})
    sysfs_tree.build_from(fields, host.root, most_virtual=8)
    rule = f'{card["pci"]}=1525'
    driver = NvidiaGpu(host, {'offer_without_reset': False, 'vgpu_types': [rule]})
    assert find_device(driver, card['pci']).root.traits[2:] == (TRAIT,)


def test_nvswitch_without_driver_is_named_in_reason(host: Host) -> None:
    sysfs_tree.build('h100-hgx', host.root)
    (host.root / f'sys/bus/pci/devices/{_SWITCH}/driver').unlink()
    results = _results(host)
    assert results[_SWITCH].device is None
    assert 'behind 4 NVSwitches, of which 3 have' in results[_CARD].reason


def test_pcie_card_beside_nvswitches_has_no_trait(host: Host, plug: Plug) -> None:
    plug(_SWITCH, ('10de', '22a3'), **_BRIDGE, iommu_group=40)
    plug('0000:3b:00.0')
    assert read_fabric(host, TimedScan()) == Fabric(switches=1)
    result = _results(host)['0000:3b:00.0']
    assert result.reason == 'whole card'
    assert result.device is not None
    assert TRAIT not in result.device.root.traits


def test_other_bridge_of_vendor_is_no_nvswitch(host: Host, plug: Plug) -> None:
    plug(_SWITCH, ('10de', '0272'), **_BRIDGE)
    assert _results(host) == {}
