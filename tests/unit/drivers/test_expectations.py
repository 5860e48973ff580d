# SPDX-License-Identifier: Apache-2.0
"""Every GPU host of the fixtures gives what its fixture says, function by function."""

import json
from collections.abc import Mapping
from typing import Final

import pytest

from cyborg_lite.drivers.amd_gpu import AmdGpu
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.intel_gpu import IntelGpu
from cyborg_lite.drivers.nvidia_gpu import NvidiaGpu
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.inventory import Deployable, Finding
from tests.fakes import sysfs_tree
from tests.fakes.sysfs_functions import Fields
from tests.unit.drivers.benches import vgpu_rules

GPU_HOSTS: Final = ('t4-mdev', 'a100-sriov-mig', 'l40s-vendor-vfio', 'generic-pci')
_DISPLAY: Final = ('0300', '0302', '0380')


def _verdicts(host: Host, name: str) -> dict[str, Finding]:
    rules = vgpu_rules(name) if name != 'generic-pci' else []
    options = {'offer_without_reset': False, 'vgpu_types': rules}
    drivers: list[Driver] = [
        kind(host, options) for kind in (AmdGpu, IntelGpu, NvidiaGpu)
    ]
    found = [finding for driver in drivers for finding in driver.discover()]
    assert len({each.address for each in found}) == len(found)
    return {each.address: each for each in found}


def _expected(expect: Fields) -> Mapping[str, Fields]:
    """What is said of GPUs, by address."""
    return {
        fields['pci']: fields
        for fields in expect['devices']
        if fields.get('type') == 'GPU'
    }


def _offered(finding: Finding) -> list[Deployable]:
    parts = finding.device.root.walk() if finding.device else ()
    return [part for part in parts if part.resource_class]


@pytest.mark.parametrize('name', GPU_HOSTS)
def test_a_host_gives_exactly_what_is_expected(name: str, host: Host) -> None:
    built = sysfs_tree.build(name, host.root)
    found = _verdicts(host, name)
    offered = {address for address, each in found.items() if _offered(each)}
    assert offered == set(_expected(built.expect))
    for address, fields in _expected(built.expect).items():
        parts = _offered(found[address])
        traits = dict.fromkeys(trait for part in parts for trait in part.traits)
        assert {part.resource_class for part in parts} == {fields['rc']}
        assert sum(part.total for part in parts) == fields['total']
        assert list(traits) == [trait.lstrip('+') for trait in fields['traits']]
        if 'handles' in fields:
            kind, count, info = fields['handles']
            (part,) = parts
            assert part.name == f'compute-1_{address}'
            assert [unit.type for unit in part.units] == [kind] * count
            assert json.dumps(dict(part.units[0].info), sort_keys=True) == info


def test_gpu_instances_are_counted_one_by_one(host: Host) -> None:
    sysfs_tree.build('a100-sriov-mig', host.root)
    found = _verdicts(host, 'a100-sriov-mig')['0000:c1:00.0']
    assert {part.name: part.total for part in _offered(found)} == {
        'compute-1_0000:c1:00.0_A100_1_5C': 2,
        'compute-1_0000:c1:00.0_A100_3_20C': 1,
    }
    places = [unit.key.split('/')[0] for p in _offered(found) for unit in p.units]
    assert len(set(places)) == 3


def test_functions_whose_driver_must_stay_are_marked(host: Host) -> None:
    sysfs_tree.build('l40s-vendor-vfio', host.root)
    (part,) = _offered(_verdicts(host, 'l40s-vendor-vfio')['0000:82:00.0'])
    assert [(unit.managed, unit.needs_host) for unit in part.units] == [
        (False, True)
    ] * 2


def test_every_function_is_accounted_for(host: Host) -> None:
    """Run with ``-s`` to read the table."""
    table = []
    for name in GPU_HOSTS:
        here = Host('compute-1', host.root / name)
        built = sysfs_tree.build(name, here.root)
        found = _verdicts(here, name)
        gpus = {
            address
            for address, directory in built.functions.items()
            if (here.text(f'{directory}/class') or '')[2:].startswith(_DISPLAY)
        }
        # The one that is nobody's is the console, of a vendor without a driver.
        strangers = gpus - found.keys()
        assert strangers == ({'0000:03:00.0'} if name == 't4-mdev' else set())
        for address in sorted(gpus):
            table.append((name, address, *_row(found.get(address))))
    assert all(row[-1] for row in table)
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    for row in table:
        cells = (f'{cell:<{size}}' for cell, size in zip(row, widths, strict=False))
        print('  '.join([*cells, row[-1]]))


def _row(finding: Finding | None) -> tuple[str, str, str]:
    if finding is None:
        return '-', 'no', 'no driver claims it'
    offers = [f'{part.resource_class} {part.total}' for part in _offered(finding)]
    return finding.driver, ' + '.join(offers) or 'no', finding.reason
