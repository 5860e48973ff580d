# SPDX-License-Identifier: Apache-2.0
"""PCI functions that instances get together: real daemons and a real Placement."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.faulty_cloud import FaultyCloud
from tests.hosts import fixture_drivers, sysfs_tree
from tests.servers.stack import expect
from tests.servers.vgpu_fixtures import cloud
from tests.servers.vgpu_machine import Generation, VgpuHost

__all__ = ['cloud']

_FIXTURE: Final = 'function-groups'
# Address of the device, resource class, and the addresses that a guest gets.
_GROUPS: Final = (
    ('0000:3b:00.0', 'PGPU', {'3b.0', '3b.1'}),
    ('0000:18:00.0', 'CUSTOM_NIC', {'18.0', '18.1'}),
    ('0000:1b:00.0', 'PGPU', {'1b.0', '43.0'}),
)


class GroupHost(VgpuHost):
    """Host whose operator has declared groups of functions."""

    def __init__(self, cloud: FaultyCloud, directory: Path) -> None:
        super().__init__(cloud, directory, Generation(_FIXTURE, (), ('', ''), (1, 1)))
        config = sysfs_tree.expectation(_FIXTURE)['config']
        drivers = {
            section: {name: ','.join(texts) for name, texts in options.items()}
            for section, options in fixture_drivers.read_options(config).items()
            if section in config['groups']
        }
        cloud.configure(drivers)
        self.settings = {'enabled_drivers': ','.join(drivers)}


@pytest.fixture
def host(cloud: FaultyCloud, tmp_path: Path) -> Iterator[GroupHost]:
    with GroupHost(cloud, tmp_path) as group_host:
        group_host.start_agent()
        yield group_host


def test_groups_are_bound_whole_and_released(host: GroupHost) -> None:
    cloud = host.cloud
    for address, resource_class, _ in _GROUPS:
        inventory = cloud.inventory(host.find_provider(address))[resource_class]
        sizes = inventory['total'], inventory['min_unit'], inventory['step_size']
        assert sizes == (2, 2, 2)
    guests = [host.request(address, name, 2) for address, name, _ in _GROUPS]
    for guest in guests:
        expect(guest.bind(), 202)
    for guest, (_, _, functions) in zip(guests, _GROUPS, strict=True):
        cloud.until(guest.is_resolved, 'Nova receives an event per ARQ')
        infos = [arq['attach_handle_info'] for arq in guest.list_arqs()]
        assert guest.states() == {'Bound'}
        assert {f'{info["bus"]}.{info["function"]}' for info in infos} == functions
    assert host.kernel.fabric.list_active() == [1]

    host.power_cycle()
    assert host.kernel.fabric.list_active() == []
    host.start_agent()
    assert host.kernel.fabric.list_active() == [1]

    for guest in guests:
        host.end(guest)
    assert host.kernel.fabric.list_active() == []


def test_failed_activation_fails_bind_whole(host: GroupHost) -> None:
    address, resource_class, _ = _GROUPS[2]
    guest = host.request(address, resource_class, 2)
    host.kernel.break_off('fmpm')
    expect(guest.bind(), 202)
    host.cloud.until(guest.is_resolved, 'Nova receives an event per ARQ')
    assert guest.states() == {'BindFailed'}
    host.kernel.repair()
    host.end(guest)
    assert host.kernel.fabric.list_active() == []
