# SPDX-License-Identifier: Apache-2.0
"""Compute node with one card in a real Placement, and functions that damage it."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.providers.sync import PlacementSync, SyncResult
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.model.providers.providers import (
    ActualProvider,
    ProviderInventory,
    TreeNode,
)
from cyborg_lite.model.traits import EMPTIED, OWNER_CYBORG
from tests.builders.provider_rows import add_device, change_device
from tests.servers.placement import CountedRemote

FULL = ProviderInventory(4, max_unit=4)


@dataclass
class Host:
    """Compute node with one card, synchronized once."""

    remote: CountedRemote
    database: Database
    name: str
    root: TreeNode
    gpu: str
    """Provider of the card."""

    @property
    def placement(self) -> Placement:
        return Placement(self.remote)

    def sync(self) -> SyncResult:
        """Synchronize with a conductor that has an empty cache."""
        return PlacementSync(self.database, self.placement).sync(self.name)

    def read(self, uuid: str) -> ActualProvider:
        node = self.placement.find_provider(uuid)
        assert node is not None
        stocked, marked = (
            self.placement.get_inventories(uuid),
            self.placement.get_traits(uuid),
        )
        return ActualProvider(node, stocked.inventories, marked.traits)

    def list_emptied(self) -> set[str]:
        """Return the uuids of the providers that are kept without inventory."""
        nodes = self.placement.list_tree(self.root.uuid)
        return {
            node.uuid
            for node in nodes
            if EMPTIED in self.placement.get_traits(node.uuid).traits
            and not self.placement.get_inventories(node.uuid).inventories
        }

    def generation(self, uuid: str) -> int:
        return self.placement.get_inventories(uuid).generation

    def try_allocate(self, provider: str) -> bool:
        """Allocate a unit, unless another consumer has got the last one."""
        try:
            self.allocate(provider)
        except RemoteError as error:
            if '409' not in error.text:
                raise
            return False
        return True

    def allocate(self, provider: str, units: int = 1) -> str:
        server = str(uuid4())
        body = {
            'allocations': {provider: {'resources': {'PGPU': units}}},
            'project_id': 'project',
            'user_id': 'user',
            'consumer_generation': None,
        }
        self.remote.send('PUT', f'/allocations/{server}', body)
        return server


@pytest.fixture
def host(remote: CountedRemote, database: Database) -> Host:
    name = f'compute-{uuid4().hex[:8]}'
    root = Placement(remote).create_provider(str(uuid4()), name, None)
    gpu = add_device(database, name, '0000:3b:00.0', num_accelerators=4)
    change_device(database, gpu, control_address='0000:3b:00.0')
    host = Host(remote, database, name, root, gpu)
    host.sync()
    remote.calls.clear()
    return host


def is_right(host: Host) -> bool:
    gpu = host.read(host.gpu)
    return (
        gpu.node.name == f'{host.name}_0000:3b:00.0'
        and gpu.node.parent_uuid == host.root.uuid
        and gpu.inventories == {'PGPU': FULL}
        and gpu.traits >= {OWNER_CYBORG, 'CUSTOM_NVIDIA_1EB8'}
    )


# --- damage: ------------------------------------------------------------------------


def without(part: str) -> Callable[[Host], None]:
    def damage(host: Host) -> None:
        generation = host.generation(host.gpu)
        if part == 'traits':
            host.placement.set_traits(host.gpu, generation, ())
        else:
            host.placement.set_inventories(host.gpu, generation, {})

    return damage


def delete(host: Host) -> None:
    host.placement.delete_provider(host.gpu)


def reserve(host: Host) -> None:
    closed = {'PGPU': FULL.fully_reserved}
    host.placement.set_inventories(host.gpu, host.generation(host.gpu), closed)


def oversell(host: Host) -> None:
    greedy = {'PGPU': ProviderInventory(4, max_unit=4, allocation_ratio=16.0)}
    host.placement.set_inventories(host.gpu, host.generation(host.gpu), greedy)


def make_stale(host: Host) -> None:
    host.placement.create_custom_names((), ['CUSTOM_NVIDIA_20F1'])
    traits = host.read(host.gpu).traits | {'CUSTOM_NVIDIA_20F1'}
    host.placement.set_traits(host.gpu, host.generation(host.gpu), traits)


def rename(host: Host) -> None:
    body = {'name': f'{uuid4()}', 'parent_provider_uuid': host.root.uuid}
    host.remote.send('PUT', f'/resource_providers/{host.gpu}', body)


def misplace(host: Host) -> None:
    """Move the provider with its inventory to another compute node."""
    other_root = host.placement.create_provider(str(uuid4()), f'{uuid4()}', None)
    node = host.read(host.gpu).node
    host.placement.move_provider(node, node.name, other_root.uuid)


# --- foreign providers ---


def add_foreign(host: Host, name: str, parent: str, trait: str) -> str:
    """Create a foreign provider and return its uuid."""
    node = host.placement.create_provider(str(uuid4()), name, parent)
    host.placement.create_custom_names((), [trait])
    marked = host.placement.set_traits(node.uuid, node.generation, {trait})
    host.placement.set_inventories(node.uuid, marked.generation, {'VGPU': FULL})
    return node.uuid
