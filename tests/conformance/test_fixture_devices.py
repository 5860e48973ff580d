# SPDX-License-Identifier: Apache-2.0
"""The drivers together offer exactly the expected devices of every fixture host."""

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.agent.inventory.discovery import resolve_conflicts
from cyborg_lite.agent.inventory.discovery_report import build_rows
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.inventory.host_report import Deployable, DiscoveryResult
from tests.hosts import sysfs_tree
from tests.hosts.fixture_drivers import create_drivers

# Any: YAML values have no common type.
Fields = Mapping[str, Any]


def _list_cases() -> Iterator[Any]:
    for name in sysfs_tree.hosts():
        for fields in sysfs_tree.expectation(name)['devices']:
            if 'pci' in fields:
                yield pytest.param(name, fields, id=f'{name} {fields["pci"]}')


@pytest.fixture(scope='module')
def roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('hosts')


@functools.cache
def _scan(name: str, roots: Path) -> Mapping[str, DiscoveryResult]:
    """Return all results, and the functions that no driver claims, by address."""
    built = sysfs_tree.build(name, roots / name)
    host = Host('compute-1', built.root)
    drivers = create_drivers(host, built.expect.get('config', {}))
    results = [result for driver in drivers for result in driver.discover()]
    rows = build_rows(host, resolve_conflicts(results), {})
    return {row.result.address: row.result for row in rows}


def _list_offered(result: DiscoveryResult) -> list[Deployable]:
    parts = result.device.root.walk() if result.device else ()
    return [part for part in parts if part.resource_class]


@pytest.mark.parametrize(('name', 'fields'), list(_list_cases()))
def test_fixture_device_is_offered_as_expected(
    name: str, fields: Fields, roots: Path
) -> None:
    result = _scan(name, roots)[fields['pci']]
    assert result.reason
    parts = _list_offered(result)
    total = sum(part.total for part in parts)
    free = total - sum(part.unavailable for part in parts)
    if not fields.get('total'):
        assert free == 0
        return
    assert result.device is not None
    assert result.device.type == fields['type']
    assert {part.resource_class for part in parts} == {fields['rc'].lstrip('+')}
    assert total == fields['total']
    if 'free' in fields or fields['type'] != 'GPU':
        assert free == fields.get('free', total)
    traits = dict.fromkeys(trait for part in parts for trait in part.traits)
    if 'traits' in fields:
        expected = {trait.lstrip('+') for trait in fields['traits']}
        assert set(traits) >= expected if fields['type'] == 'FPGA' else traits.keys()
        assert fields['type'] == 'FPGA' or set(traits) == expected
    _check_handles(fields, parts)


def _check_handles(fields: Fields, parts: list[Deployable]) -> None:
    handles = [handle for part in parts for handle in part.handles]
    used = {handle.key.partition('/')[0] for handle in handles if handle.in_use}
    assert used >= set(fields.get('busy', ()))
    assert {handle.managed for handle in handles} == {fields.get('managed', True)}
    if 'handles' in fields:
        kind, count, info = fields['handles']
        assert [handle.type for handle in handles] == [kind] * count
        assert json.dumps(dict(handles[0].info), sort_keys=True) == info


@pytest.mark.parametrize('name', sysfs_tree.hosts())
def test_fixture_host_offers_no_other_device(name: str, roots: Path) -> None:
    addresses = {
        address
        for address, result in _scan(name, roots).items()
        if any(part.total > part.unavailable for part in _list_offered(result))
    }
    expected = {
        fields['pci']
        for fields in sysfs_tree.expectation(name)['devices']
        if fields.get('total')
    }
    assert addresses == expected
