# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for network cards of several vendors."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.network import sriov_nic
from cyborg_lite.drivers.network.sriov_nic import (
    PHYSICAL_NETWORKS,
    SriovNic,
    parse_mappings,
    read_cyborg_mappings,
)
from tests.hosts import sysfs_tree
from tests.hosts.pci_links import bind_driver, find_directory
from tests.hosts.scans import find_device, scan
from tests.hosts.sysfs_device import Plug

_SHARED, _PORT = '0000:18:00.0', '0000:18:00.1'
_MAPPINGS = {'physical_device_mappings': ['physnet1:ens1f0', 'physnet2:ens1f1']}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    sysfs_tree.build('qat-x710', tmp_path)
    return Host('compute-1', tmp_path)


# Any: driver options have various types.
def _driver(host: Host, **options: Any) -> SriovNic:
    return SriovNic(host, {'offer_without_reset': False, **options})


def _give_to_guest(host: Host, address: str) -> None:
    shutil.rmtree(find_directory(host, address) / 'net')
    bind_driver(host, address, 'vfio-pci')


def test_discover_without_mapping_has_no_network(host: Host) -> None:
    handle = find_device(_driver(host), _SHARED).root.handles[0]
    assert 'physical_network' not in handle.info


def test_discover_port_in_guest_keeps_network(host: Host) -> None:
    driver = _driver(host, **_MAPPINGS)
    before = find_device(driver, _PORT)
    assert before.root.handles[0].info['physical_network'] == 'physnet2'
    _give_to_guest(host, _PORT)
    assert find_device(driver, _PORT) == before
    successor = _driver(host, **_MAPPINGS)
    successor.restore_device(before)
    assert find_device(successor, _PORT) == before


def test_discover_mapping_accepts_pci_address(host: Host) -> None:
    driver = _driver(host, physical_device_mappings=[f'physnet9:{_PORT}'])
    _give_to_guest(host, _PORT)
    root = find_device(driver, _PORT).root
    assert root.traits == ('OWNER_CYBORG', 'CUSTOM_PF', 'CUSTOM_PHYSNET9')


def test_discover_port_that_is_up_is_withheld(host: Host) -> None:
    (find_directory(host, _PORT) / 'net/ens1f1/operstate').write_text('up\n')
    result = scan(_driver(host))[_PORT]
    assert result.reason == 'in use by the host: its interface ens1f1 is up'
    assert result.device is not None
    assert result.device.root.handles == ()


def test_discover_function_of_host_is_in_use(host: Host) -> None:
    bridge = host.root / 'sys/devices/virtual/net/br0'
    bridge.mkdir(parents=True)
    master = find_directory(host, '0000:18:02.0') / 'net/ens1f0v0/master'
    master.symlink_to(bridge)
    results = scan(_driver(host))
    assert results[_SHARED].reason == '4 virtual functions, 1 in use by the host'
    assert results['0000:18:02.0'].reason.endswith(
        'in use by the host: its interface ens1f0v0 is part of br0'
    )
    device = results[_SHARED].device
    assert device is not None
    used = [handle.key for handle in device.root.handles if handle.in_use]
    assert used == ['0000:18:02.0']


def test_read_legacy_config_returns_mappings_of_cyborg(host: Host) -> None:
    # Any: the value of each option has its own type.
    sections: dict[str, dict[str, Any]] = {
        'nic_devices': {'enabled_nic_types': ['x710_static', 'cx5_static']},
        'x710_static': {
            'physical_device_mappings': ['physnet1:ens1f0|ens1f1'],
            'function_device_mappings': ['ovs-offload:ens1f0'],
        },
        'cx5_static': {
            'physical_device_mappings': [],
            'function_device_mappings': ['trusted:ens1f1'],
        },
        'unused': {'physical_device_mappings': ['physnet9:ens1f0']},
    }
    options = SriovNic.read_legacy_config(lambda name, _: sections[name])
    driver = _driver(host, **options)
    assert find_device(driver, _SHARED).root.traits[2:] == (
        'CUSTOM_PHYSNET1',
        'CUSTOM_OVS_OFFLOAD',
    )
    port = find_device(driver, _PORT).root
    assert port.traits[2:] == ('CUSTOM_PHYSNET1', 'CUSTOM_TRUSTED')


def test_vdpa_device_is_shown_with_type_and_excluded(tmp_path: Path) -> None:
    sysfs_tree.build('dpu-gaudi', tmp_path / 'dpu')
    driver = _driver(Host('compute-1', tmp_path / 'dpu'))
    results = scan(driver)
    reason = 'in use by the host: it has the vDPA device vdpa0 of type vhost_vdpa'
    assert results['0000:65:00.4'].reason.endswith(reason)
    device = results['0000:65:00.0'].device
    assert device is not None
    in_use = {handle.key: handle.in_use for handle in device.root.handles}
    assert in_use == {
        '0000:65:00.2': False,
        '0000:65:00.3': False,
        '0000:65:00.4': True,
    }


@pytest.mark.parametrize('address', ['0000:5e:00.0', '0000:5E:00.0'])
def test_parse_mappings_pci_address_is_normalized(address: str) -> None:
    assert parse_mappings([f'physnet2:{address}']) == {'0000:5e:00.0': ['physnet2']}


@pytest.mark.parametrize('text', ['physnet1', ':ens1', 'physnet1:', 'physnet1:a||b'])
def test_option_malformed_pair_is_refused(text: str) -> None:
    conf = cfg.ConfigOpts()
    conf.register_opt(PHYSICAL_NETWORKS)
    with pytest.raises(ValueError, match='regex'):
        conf.set_override(PHYSICAL_NETWORKS.dest, [text])


def test_read_cyborg_mappings_without_nic_types_is_empty() -> None:
    values = read_cyborg_mappings(lambda name, _: {'enabled_nic_types': []})
    assert not any(values.values())
    assert sriov_nic.parse_mappings(values['cyborg_networks']) == {}


def test_discover_port_in_infiniband_mode_has_trait(host: Host, plug: Plug) -> None:
    """The port has no network interface, because nothing loads ``ib_ipoib``."""
    fields = {'class': '020700', 'driver': 'mlx5_core'}
    plug('0000:1d:00.0', ('15b3', '1021'), **fields)
    root = find_device(_driver(host), '0000:1d:00.0').root
    assert root.traits == ('OWNER_CYBORG', 'CUSTOM_PF', 'CUSTOM_NIC_INFINIBAND')
    assert root.total == 1


def test_discover_management_function_stays_with_host(host: Host, plug: Plug) -> None:
    plug('0000:1d:00.0', ('15b3', 'c2d5'), **{'class': '080100', 'driver': None})
    result = scan(_driver(host))['0000:1d:00.0']
    assert (result.device, result.driver) == (None, 'sriov_nic_driver')
    assert result.reason.startswith('management interface of a BlueField-3: it stays')
