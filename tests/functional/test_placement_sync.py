# SPDX-License-Identifier: Apache-2.0
"""A host in a real Placement: made, damaged by hand, and right again."""

import random
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
import requests

from cyborg_lite.clients.placement import Placement
from cyborg_lite.clients.session import Remote
from cyborg_lite.conductor.placement_sync import PlacementSync, SyncResult
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError, PlacementConflict, ServiceUnavailable
from cyborg_lite.model.providers import OWNER, OWNER_NOVA
from tests.fakes.databases import database_fixture
from tests.fakes.placed_host import (
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
from tests.fakes.provider_rows import add_device, change_deployable, remove_devices
from tests.fakes.real_placement import CountedRemote, remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')


def test_a_card_is_a_provider_under_its_compute_node(host: Host) -> None:
    assert is_right(host)


def test_requests_of_a_first_sync_and_of_the_next(
    remote: CountedRemote, database: Database, host: Host
) -> None:
    for number in range(8):
        add_device(database, host.name, f'gpu{number}', num_accelerators=16)
    sync = PlacementSync(database, host.placement)
    sync.sync(host.name)
    # Root, tree, the trait, and the card that was there before.
    assert len(remote.sent) == 3 * 8 + 3 + 2
    remote.sent.clear()
    sync.sync(host.name)
    assert [sent.split('?')[0] for sent in remote.sent] == [
        'GET /resource_providers',
        'GET /resource_providers',
    ]


def test_a_host_without_compute_has_a_root_while_it_has_a_device(
    remote: CountedRemote, database: Database
) -> None:
    name = f'edge-{uuid4().hex[:8]}'
    gpu = add_device(database, name, '0000:3b:00.0')
    placement = Placement(remote)
    sync = PlacementSync(database, placement, ['edge-*'])
    expected = sync.rehearse(name)
    assert sync.sync(name) == expected
    root, card = placement.provider_named(name), placement.provider(gpu)
    assert root is not None
    assert card is not None
    assert card.parent_uuid == root.uuid
    assert placement.traits(root.uuid).traits == {OWNER}
    assert sync.sync(name, deep=True) == SyncResult()
    placement.rename_provider(root, f'{uuid4()}')
    sync.sync(name)
    assert placement.provider_named(name) == root
    remove_devices(database, [gpu])
    sync.sync(name)
    assert placement.provider(root.uuid) is None


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
def test_damage_to_what_is_ours_is_repaired_in_one_go(
    host: Host, damage: Callable[[Host], None]
) -> None:
    damage(host)
    repaired = host.sync()
    assert repaired.changes
    assert repaired.problems == ()
    assert is_right(host)
    assert 'CUSTOM_NVIDIA_20F1' not in host.read(host.gpu).traits
    assert len(host.placement.tree(host.root.uuid)) == 2
    assert host.sync() == SyncResult()


def test_a_conductor_that_remembers_sees_damage_too(
    host: Host, database: Database
) -> None:
    sync = PlacementSync(database, host.placement)
    sync.sync(host.name)
    for damage in (without('traits'), reserve, delete):
        damage(host)
        sync.sync(host.name)
        assert is_right(host)


@pytest.mark.parametrize('damage', [make_elsewhere, take_name])
def test_what_may_not_be_ours_to_repair_is_reported_and_left(
    host: Host, damage: Callable[[Host], None]
) -> None:
    damage(host)
    before = host.placement.tree(host.root.uuid)
    for _ in range(2):
        result = host.sync()
        assert result.changes == ()
        (problem,) = result.problems
        assert problem.uuid == host.gpu
    assert host.placement.tree(host.root.uuid) == before


def test_an_allocation_left_behind_keeps_its_provider_closed(
    host: Host, database: Database
) -> None:
    server = host.allocate(host.gpu)
    remove_devices(database, [host.gpu])
    for _ in range(2):
        (problem,) = host.sync().problems
        assert problem.uuid == host.gpu
        assert host.read(host.gpu).inventories == {'PGPU': FULL.closed}
    host.remote.send('DELETE', f'/allocations/{server}')
    assert host.sync().problems == ()
    assert host.placement.provider(host.gpu) is None


def test_a_class_in_use_is_closed_beside_the_new_one(
    host: Host, database: Database
) -> None:
    host.allocate(host.gpu)
    change_deployable(database, host.gpu, resource_class='VGPU')
    host.sync()
    assert host.read(host.gpu).inventories == {'PGPU': FULL.closed, 'VGPU': FULL}


def test_every_foreign_provider_is_equal_before_and_after(
    host: Host, database: Database
) -> None:
    placement = host.placement
    placement.ensure((), ['CUSTOM_RACK_7'])
    foreign = [host.root.uuid]
    for name, trait in (
        (f'{host.name}_0000:81:00.0', OWNER_NOVA),
        (f'{host.name}_numa0', 'CUSTOM_RACK_7'),
        (f'other_{uuid4()}', OWNER),
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


def test_a_trait_of_others_on_our_provider_is_kept(
    host: Host, database: Database
) -> None:
    placement = host.placement
    placement.ensure((), ['CUSTOM_RACK_7'])
    traits = host.read(host.gpu).traits | {'CUSTOM_RACK_7'}
    placement.set_traits(host.gpu, host.generation(host.gpu), traits)
    assert host.sync() == SyncResult()
    change_deployable(database, host.gpu, traits=['CUSTOM_NVIDIA_20F1'])
    host.sync()
    assert host.read(host.gpu).traits == {OWNER, 'CUSTOM_NVIDIA_20F1', 'CUSTOM_RACK_7'}


def test_a_deleted_trait_is_made_again(host: Host, database: Database) -> None:
    """By the attempt after the one that finds it gone."""
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
    """Half of all requests fail, before they are sent or after they were obeyed."""

    def __init__(self, steady: Remote, chance: random.Random) -> None:
        self.failures = 0
        self._steady = steady
        self._chance = chance

    def send(
        self, method: str, path: str, *args: Any, **options: Any
    ) -> requests.Response:
        """What follows is handed on unseen, whatever its types."""
        fate = self._chance.choice(['lost', 'obeyed', 'stale', 'good', 'good', 'good'])
        if fate == 'good':
            return self._steady.send(method, path, *args, **options)
        self.failures += 1
        if fate == 'stale':
            raise PlacementConflict(provider='some')
        if fate == 'obeyed':
            self._steady.send(method, path, *args, **options)
        raise ServiceUnavailable(what='Placement')


@pytest.mark.parametrize('seed', range(3))
def test_a_placement_that_fails_at_random_is_right_in_the_end(
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
    assert len(host.placement.tree(host.root.uuid)) == 1 + 5
