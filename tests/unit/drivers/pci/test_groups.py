# SPDX-License-Identifier: Apache-2.0
"""Tests of PCI functions that guests get together."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.network.sriov_nic import SriovNic
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.drivers.pci.driver import PciDriver
from cyborg_lite.drivers.pci.generic import GenericPci
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.inventory.host_report import Health
from tests.hosts import sysfs_tree
from tests.hosts.pci_links import bind_driver
from tests.hosts.scans import build_handles, find_device, scan

GPU, AUDIO = '0000:3b:00.0', '0000:3b:00.1'
PORTS = '0000:18:00.0', '0000:18:00.1'
FABRIC = '0000:1b:00.0', '0000:43:00.0'
_PAIR = f'{GPU}+{AUDIO}'


@pytest.fixture
def host(tmp_path: Path) -> Host:
    sysfs_tree.build('function-groups', tmp_path)
    return Host('compute-1', tmp_path)


# Any: driver options have various types.
def make_gpus(host: Host, **options: Any) -> NvidiaGpu:
    return NvidiaGpu(host, {'offer_without_reset': False, 'groups': [_PAIR], **options})


def make_nics(host: Host) -> SriovNic:
    groups = ['+'.join(PORTS)]
    return SriovNic(host, {'offer_without_reset': False, 'groups': groups})


def test_gpu_and_audio_are_units_of_one_device(host: Host) -> None:
    results = scan(make_gpus(host))
    device = results[GPU].device
    assert device is not None
    root = device.root
    assert [handle.key for handle in root.handles] == [GPU, AUDIO]
    assert all(handle.needs_host for handle in root.handles)
    assert (root.total, root.attributes['group_size']) == (2, '2')
    assert root.attributes['trait2'] == 'CUSTOM_WITH_AUDIO'
    assert (results[AUDIO].device, results[AUDIO].reason) == (
        None,
        f'guests get it together with {GPU}',
    )


def test_without_group_audio_of_host_withholds_gpu(host: Host) -> None:
    result = scan(make_gpus(host, groups=[]))[GPU]
    assert 'bound to snd_hda_intel' in result.reason


def test_group_in_guest_stays_the_same(host: Host) -> None:
    driver = make_gpus(host)
    before = scan(driver)[GPU]
    for address in (GPU, AUDIO):
        bind_driver(host, address, 'vfio-pci')
    assert scan(driver)[GPU] == before


def test_unfit_member_withholds_group(host: Host) -> None:
    net = (host.root / 'sys/bus/pci/devices' / PORTS[1]).resolve() / 'net/ens1f1'
    (net / 'operstate').write_text('up\n')
    result = scan(make_nics(host))[PORTS[0]]
    reason = 'in use by the host: its interface ens1f1 is up'
    assert result.reason == f'{PORTS[1]}: {reason}'
    assert result.device is not None
    assert result.device.root.handles == ()


def test_lost_member_reserves_group(host: Host) -> None:
    driver = make_nics(host)
    before = find_device(driver, PORTS[0])
    config = host.root / 'sys/bus/pci/devices' / PORTS[1] / 'config'
    config.write_bytes(b'\xff' * 64)
    device = find_device(driver, PORTS[0])
    assert device.root == replace(before.root, reserved=2)
    assert device.health is Health.FAILED
    assert device.health_reason.startswith(f'{PORTS[1]}: lost')


@pytest.mark.parametrize('member', ['0000:18:00.0', '0000:99:00.0'])
def test_foreign_or_missing_member_withholds_group(host: Host, member: str) -> None:
    result = scan(make_gpus(host, groups=[f'{_PAIR}+{member}']))[GPU]
    assert result.device is not None
    assert result.device.root.total == result.device.root.unavailable
    assert member in result.reason


def test_vgpu_rule_withholds_group(host: Host) -> None:
    device = find_device(make_gpus(host, vgpu_types=[f'{GPU}=whole']), GPU)
    assert device.root.total == 2
    result = scan(make_gpus(host, vgpu_types=[f'{GPU}=RTXA6000-4Q']))
    assert result[GPU].reason == 'vgpu_types has a rule for it'


def test_activate_refuses_other_members(host: Host) -> None:
    driver = make_nics(host)
    handles = build_handles(find_device(driver, PORTS[0]))
    assert {driver.find_group(handle) for handle in handles} == {PORTS[0]}
    driver.activate(handles)
    with pytest.raises(DriverError, match='are not the functions of a group'):
        driver.activate(handles[:1])


def test_ungrouped_card_has_no_group(host: Host) -> None:
    (handle,) = build_handles(find_device(make_nics(host), '0000:19:00.0'))
    assert make_nics(host).find_group(handle) == ''


def test_allowed_functions_can_be_a_group(host: Host) -> None:
    entry = '{"vendor_id": "8086", "product_id": "1572", "resource_class": "PORT"}'
    options = {
        'offer_without_reset': False,
        'device_spec': [entry],
        'groups': ['+'.join(PORTS)],
    }
    device = find_device(GenericPci(host, options), PORTS[0])
    assert (device.root.resource_class, device.root.total) == ('CUSTOM_PORT', 2)


@pytest.mark.parametrize(
    ('group', 'nodes', 'expected'),
    [
        ((GPU, AUDIO), (1, 1), {'same_card': True, 'same_numa_node': True}),
        (FABRIC, (0, 0), {'same_card': False, 'same_numa_node': True}),
        (FABRIC, (0, 1), {'same_card': False, 'same_numa_node': False}),
        (FABRIC, (0, -1), {'same_card': False}),
    ],
)
def test_group_reports_what_its_functions_share(
    host: Host,
    group: tuple[str, str],
    nodes: tuple[int, int],
    expected: dict[str, bool],
) -> None:
    for address, node in zip(group, nodes, strict=True):
        path = host.root / 'sys/bus/pci/devices' / address / 'numa_node'
        path.write_text(f'{node}\n')
    driver = make_gpus(host, groups=['+'.join(group)])
    assert list_shared(driver, group[0]) == expected
    partition = make_gpus(host, groups=[], fabric_partitions=['1=' + '+'.join(group)])
    assert list_shared(partition, group[0]) == {**expected, 'same_fabric': True}


def test_ungrouped_card_reports_nothing_shared(host: Host) -> None:
    assert list_shared(make_gpus(host, groups=[]), FABRIC[0]) == {}


def list_shared(driver: PciDriver, address: str) -> dict[str, bool]:
    device = find_device(driver, address)
    return {
        attribute.name: attribute.value == 'true'
        for attribute in device.root.typed_attributes
        if attribute.name.startswith('same_')
    }


def test_storage_beside_card_needs_known_root(host: Host) -> None:
    companion = host.root / 'sys/bus/pci/devices' / AUDIO
    (companion / 'class').write_text('0x010802\n')
    result = scan(make_gpus(host))[GPU]
    assert result.reason.startswith(
        f'{AUDIO}: in use by the host: it may be the system'
    )
