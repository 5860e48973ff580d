# SPDX-License-Identifier: Apache-2.0
"""Synchronization of a host with a real Placement, and repair of manual damage."""

import copy
import random
from collections.abc import Callable
from typing import Any, Self
from uuid import uuid4

import pytest
import requests

from cyborg_lite.clients.placement import Placement
from cyborg_lite.clients.session import Remote
from cyborg_lite.conductor.providers.sync import PlacementSync, SyncMode, SyncResult
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.providers import PlacementConflict
from cyborg_lite.model.traits import EMPTIED, OWNER_CYBORG, OWNER_NOVA
from tests.builders.provider_rows import add_device, change_deployable, remove_devices
from tests.servers.databases import database_fixture
from tests.servers.placed_host import (
    FULL,
    Host,
    delete,
    host,
    is_right,
    leave_behind,
    make_elsewhere,
    make_stale,
    misplace,
    oversell,
    rename,
    reserve,
    take_name,
    without,
)
from tests.servers.placement import CountedRemote, remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')


def test_sync_card_becomes_child_of_compute_node(host: Host) -> None:
    assert is_right(host)


def test_sync_requests_of_first_and_next_run(
    remote: CountedRemote, database: Database, host: Host
) -> None:
    for number in range(8):
        add_device(database, host.name, f'gpu{number}', num_accelerators=16)
    sync = PlacementSync(database, host.placement)
    sync.sync(host.name)
    # Root, tree, the trait, the card that existed before, and all new inventories.
    assert len(remote.calls) == 2 * 8 + 3 + 2 + 1
    remote.calls.clear()
    sync.sync(host.name)
    assert [request.split('?')[0] for request in remote.calls] == [
        'GET /resource_providers',
        'GET /resource_providers',
    ]


def test_sync_host_without_compute_has_own_root(
    remote: CountedRemote, database: Database
) -> None:
    name = f'edge-{uuid4().hex[:8]}'
    gpu = add_device(database, name, '0000:3b:00.0')
    placement = Placement(remote)
    sync = PlacementSync(database, placement, ['edge-*'])
    expected = sync.rehearse(name)
    assert sync.sync(name) == expected
    root, card = placement.find_provider_by_name(name), placement.find_provider(gpu)
    assert root is not None
    assert card is not None
    assert card.parent_uuid == root.uuid
    assert placement.get_traits(root.uuid).traits == {OWNER_CYBORG}
    assert sync.sync(name, SyncMode(deep=True)) == SyncResult()
    placement.rename_provider(root, f'{uuid4()}')
    sync.sync(name)
    assert placement.find_provider_by_name(name) == root
    remove_devices(database, [gpu])
    sync.sync(name)
    assert placement.find_provider(root.uuid) is None


@pytest.mark.parametrize(
    'damage',
    [
        delete,
        without('traits'),
        without('inventories'),
        reserve,
        oversell,
        make_stale,
        leave_behind,
        rename,
        misplace,
    ],
)
def test_sync_repairs_damage_in_one_run(
    host: Host, damage: Callable[[Host], None]
) -> None:
    damage(host)
    repaired = host.sync()
    assert repaired.changes
    assert repaired.problems == ()
    assert is_right(host)
    assert 'CUSTOM_NVIDIA_20F1' not in host.read(host.gpu).traits
    tree = host.placement.list_tree(host.root.uuid)
    assert len(tree) - len(host.list_emptied()) == 2
    assert host.sync() == SyncResult()


def test_sync_with_cache_detects_damage(host: Host, database: Database) -> None:
    sync = PlacementSync(database, host.placement)
    sync.sync(host.name)
    for damage in (without('traits'), reserve, delete):
        damage(host)
        sync.sync(host.name)
        assert is_right(host)


@pytest.mark.parametrize('damage', [make_elsewhere, take_name])
def test_sync_foreign_damage_is_reported_only(
    host: Host, damage: Callable[[Host], None]
) -> None:
    damage(host)
    before = host.placement.list_tree(host.root.uuid)
    for _ in range(2):
        result = host.sync()
        assert result.changes == ()
        (problem,) = result.problems
        assert problem.uuid == host.gpu
    assert host.placement.list_tree(host.root.uuid) == before


def test_sync_leftover_allocation_keeps_provider_reserved(
    host: Host, database: Database
) -> None:
    server = host.allocate(host.gpu)
    remove_devices(database, [host.gpu])
    for _ in range(2):
        (problem,) = host.sync().problems
        assert problem.uuid == host.gpu
        assert host.read(host.gpu).inventories == {'PGPU': FULL.fully_reserved}
    host.remote.send('DELETE', f'/allocations/{server}')
    assert host.sync().problems == ()
    assert host.read(host.gpu).inventories == {}
    assert host.read(host.gpu).traits == {OWNER_CYBORG, EMPTIED}


def test_sync_class_in_use_is_kept_beside_new_one(
    host: Host, database: Database
) -> None:
    host.allocate(host.gpu)
    change_deployable(database, host.gpu, resource_class='VGPU')
    host.sync()
    assert host.read(host.gpu).inventories == {
        'PGPU': FULL.fully_reserved,
        'VGPU': FULL,
    }


def test_sync_foreign_providers_are_unchanged(host: Host, database: Database) -> None:
    placement = host.placement
    placement.create_custom_names((), ['CUSTOM_RACK_7'])
    foreign = [host.root.uuid]
    for name, trait in (
        (f'{host.name}_0000:81:00.0', OWNER_NOVA),
        (f'{host.name}_numa0', 'CUSTOM_RACK_7'),
        (f'other_{uuid4()}', OWNER_CYBORG),
    ):
        node = placement.create_provider(str(uuid4()), name, host.root.uuid)
        marked = placement.set_traits(node.uuid, node.generation, {trait})
        placement.set_inventories(node.uuid, marked.generation, {'VGPU': FULL})
        foreign.append(node.uuid)
    before = [host.read(uuid) for uuid in foreign]
    add_device(database, host.name, '0000:81:00.0')
    add_device(database, host.name, '0000:82:00.0')
    remove_devices(database, [host.gpu])
    host.sync()
    assert [host.read(uuid) for uuid in foreign] == before


def test_sync_foreign_trait_survives_absence_of_card(
    host: Host, database: Database
) -> None:
    placement, rack = host.placement, 'CUSTOM_RACK_7'
    placement.create_custom_names((), [rack])
    before = host.read(host.gpu).traits
    placement.set_traits(host.gpu, host.generation(host.gpu), before | {rack})
    remove_devices(database, [host.gpu])
    host.sync()
    assert host.list_emptied() == {host.gpu}
    assert rack in host.read(host.gpu).traits
    add_device(database, host.name, '0000:3b:00.0', num_accelerators=4)
    host.sync()
    assert host.read(host.gpu).traits == before | {rack}
    assert host.read(host.gpu).inventories == {'PGPU': FULL}


def test_sync_foreign_trait_on_own_provider_is_kept(
    host: Host, database: Database
) -> None:
    placement = host.placement
    placement.create_custom_names((), ['CUSTOM_RACK_7'])
    traits = host.read(host.gpu).traits | {'CUSTOM_RACK_7'}
    placement.set_traits(host.gpu, host.generation(host.gpu), traits)
    assert host.sync() == SyncResult()
    change_deployable(database, host.gpu, traits=['CUSTOM_NVIDIA_20F1'])
    host.sync()
    assert host.read(host.gpu).traits == {
        OWNER_CYBORG,
        'CUSTOM_NVIDIA_20F1',
        'CUSTOM_RACK_7',
    }


def test_sync_deleted_trait_is_created_again(host: Host, database: Database) -> None:
    """The attempt after the failed one creates it."""
    trait = f'CUSTOM_{uuid4().hex.upper()}'
    sync = PlacementSync(database, host.placement)
    change_deployable(database, host.gpu, traits=[trait])
    sync.sync(host.name)
    host.placement.delete_provider(host.gpu)
    host.remote.send('DELETE', f'/traits/{trait}')
    with pytest.raises(CyborgError):
        sync.sync(host.name)
    sync.sync(host.name)
    assert trait in host.read(host.gpu).traits


class UnsteadyRemote(Remote):
    """Remote that fails half of all requests, before or after their execution."""

    def __init__(self, steady: Remote, chance: random.Random) -> None:
        self.failures = 0
        self._steady = steady
        self._chance = chance

    def send(
        self, method: str, path: str, *args: Any, **options: Any
    ) -> requests.Response:
        """Fail or forward a request."""
        fate = self._chance.choice(['lost', 'obeyed', 'stale', 'good', 'good', 'good'])
        if fate == 'good':
            return self._steady.send(method, path, *args, **options)
        self.failures += 1
        if fate == 'stale':
            raise PlacementConflict(provider='some')
        if fate == 'obeyed':
            self._steady.send(method, path, *args, **options)
        raise ServiceUnavailable(what='Placement')

    def with_microversion(self, microversion: str) -> Self:
        """Return a copy that fails as often."""
        remote = copy.copy(self)
        remote._steady = self._steady.with_microversion(microversion)
        return remote


@pytest.mark.parametrize('seed', range(3))
def test_sync_with_random_failures_reaches_desired_state(
    host: Host, database: Database, seed: int
) -> None:
    for number in range(4):
        add_device(database, host.name, f'gpu{number}', num_accelerators=4)
    unsteady = UnsteadyRemote(host.remote, random.Random(seed))
    sync = PlacementSync(database, Placement(unsteady))
    attempts = 0
    while True:
        attempts += 1
        try:
            sync.sync(host.name)
            break
        except (ServiceUnavailable, PlacementConflict):
            assert attempts < 200
    assert unsteady.failures > 0
    assert host.sync() == SyncResult()
    assert len(host.placement.list_tree(host.root.uuid)) == 1 + 5


class PausedRemote(Remote):
    """Remote of a conductor that is paused before its first request of one kind."""

    def __init__(
        self, remote: Remote, request: str, during_pause: Callable[[], object]
    ) -> None:
        self._remote = remote
        self._request = request
        self._during_pause: Callable[[], object] | None = during_pause

    def send(
        self, method: str, path: str, *args: Any, **options: Any
    ) -> requests.Response:
        during_pause = self._during_pause
        if during_pause is not None and f'{method} {path}' == self._request:
            self._during_pause = None
            during_pause()
        return self._remote.send(method, path, *args, **options)

    @property
    def is_continued(self) -> bool:
        return self._during_pause is None


@pytest.mark.parametrize('method', ['GET', 'PUT'])
def test_sync_paused_conductor_keeps_newer_inventory(
    host: Host, database: Database, method: str
) -> None:
    """Another conductor finishes a newer sync after this one has read the rows."""
    change_deployable(database, host.gpu, num_accelerators=2)

    def finish_newer_sync() -> None:
        change_deployable(database, host.gpu, num_accelerators=3)
        host.sync()

    request = f'{method} /resource_providers/{host.gpu}/inventories'
    paused = PausedRemote(host.remote, request, finish_newer_sync)
    PlacementSync(database, Placement(paused)).sync(host.name)
    assert paused.is_continued
    assert host.read(host.gpu).inventories['PGPU'].total == 3
