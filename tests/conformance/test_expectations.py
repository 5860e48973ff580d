# SPDX-License-Identifier: Apache-2.0
"""GPU drivers on fixture hosts return the expected result for every function."""

import json
from collections.abc import Mapping
from typing import Final

import pytest

from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.gpus.amd import AmdGpu
from cyborg_lite.drivers.gpus.intel import IntelGpu
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.model.inventory.host_report import Deployable, DiscoveryResult
from tests.hosts import sysfs_tree
from tests.hosts.driver_benches import vgpu_rules
from tests.hosts.sysfs_functions import Fields

GPU_HOSTS: Final = ('t4-mdev', 'a100-sriov-mig', 'l40s-vendor-vfio', 'generic-pci')
_DISPLAY: Final = ('0300', '0302', '0380')


def _scan_host(host: Host, name: str) -> dict[str, DiscoveryResult]:
    rules = vgpu_rules(name) if name != 'generic-pci' else []
    options = {'offer_without_reset': False, 'vgpu_types': rules}
    drivers: list[Driver] = [
        kind(host, options) for kind in (AmdGpu, IntelGpu, NvidiaGpu)
    ]
    results = [result for driver in drivers for result in driver.discover()]
    assert len({result.address for result in results}) == len(results)
    return {result.address: result for result in results}


def _select_gpus(expect: Fields) -> Mapping[str, Fields]:
    """Return the expectations for GPUs by address."""
    return {
        fields['pci']: fields
        for fields in expect['devices']
        if fields.get('type') == 'GPU'
    }


def _list_offered(result: DiscoveryResult) -> list[Deployable]:
    parts = result.device.root.walk() if result.device else ()
    return [part for part in parts if part.resource_class]


@pytest.mark.parametrize('name', GPU_HOSTS)
def test_fixture_host_offers_expected_deployables(name: str, host: Host) -> None:
    built = sysfs_tree.build(name, host.root)
    results = _scan_host(host, name)
    addresses_offered = {
        address for address, result in results.items() if _list_offered(result)
    }
    assert addresses_offered == set(_select_gpus(built.expect))
    for address, fields in _select_gpus(built.expect).items():
        parts = _list_offered(results[address])
        traits = dict.fromkeys(trait for part in parts for trait in part.traits)
        assert {part.resource_class for part in parts} == {fields['rc']}
        assert sum(part.total for part in parts) == fields['total']
        assert list(traits) == [trait.lstrip('+') for trait in fields['traits']]
        if 'handles' in fields:
            kind, count, info = fields['handles']
            (part,) = parts
            assert part.name == f'compute-1_{address}'
            assert [handle.type for handle in part.handles] == [kind] * count
            assert json.dumps(dict(part.handles[0].info), sort_keys=True) == info


def test_gpu_instances_are_counted_separately(host: Host) -> None:
    sysfs_tree.build('a100-sriov-mig', host.root)
    results = _scan_host(host, 'a100-sriov-mig')['0000:c1:00.0']
    assert {part.name: part.total for part in _list_offered(results)} == {
        'compute-1_0000:c1:00.0_A100_1_5C': 2,
        'compute-1_0000:c1:00.0_A100_3_20C': 1,
    }
    places = [
        handle.key.split('/')[0] for p in _list_offered(results) for handle in p.handles
    ]
    assert len(set(places)) == 3


def test_functions_with_required_driver_are_marked(host: Host) -> None:
    sysfs_tree.build('l40s-vendor-vfio', host.root)
    (part,) = _list_offered(_scan_host(host, 'l40s-vendor-vfio')['0000:82:00.0'])
    assert [(handle.managed, handle.needs_host) for handle in part.handles] == [
        (False, True)
    ] * 2


def test_every_function_has_a_result(host: Host) -> None:
    """Run with ``-s`` to read the table."""
    table = []
    for name in GPU_HOSTS:
        fixture = Host('compute-1', host.root / name)
        built = sysfs_tree.build(name, fixture.root)
        results = _scan_host(fixture, name)
        gpus = {
            address
            for address, directory in built.functions.items()
            if (fixture.text(f'{directory}/class') or '')[2:].startswith(_DISPLAY)
        }
        # The function without a driver is the console, of an unsupported vendor.
        unsupported = gpus - results.keys()
        assert unsupported == ({'0000:03:00.0'} if name == 't4-mdev' else set())
        for address in sorted(gpus):
            table.append((name, address, *_row(results.get(address))))
    assert all(row[-1] for row in table)
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    for row in table:
        cells = (f'{cell:<{size}}' for cell, size in zip(row, widths, strict=False))
        print('  '.join([*cells, row[-1]]))


def _row(result: DiscoveryResult | None) -> tuple[str, str, str]:
    if result is None:
        return '-', 'no', 'no driver claims it'
    offers = [f'{part.resource_class} {part.total}' for part in _list_offered(result)]
    return result.driver, ' + '.join(offers) or 'no', result.reason
