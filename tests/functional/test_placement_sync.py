# SPDX-License-Identifier: Apache-2.0
"""Synchronization of a host with a real Placement, and repair of manual damage."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.providers.sync import PlacementSync, SyncMode, SyncResult
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.traits import OWNER_CYBORG
from tests.builders.provider_rows import add_device, change_deployable, remove_devices
from tests.servers.databases import database_fixture
from tests.servers.placed_host import (
    Host,
    delete,
    host,
    is_right,
    leave_behind,
    make_stale,
    misplace,
    oversell,
    rename,
    reserve,
    without,
)
from tests.servers.placement import CountedRemote, remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')


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
