# SPDX-License-Identifier: Apache-2.0
"""Reading of what a Placement sync compares: providers first, then rows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.providers.writing import ProviderCache, SyncProgress
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.providers import ComputeNodeAbsent, PlacementConflict
from cyborg_lite.model.ownership import nova_providers
from cyborg_lite.model.providers.changes import (
    HostFacts,
    HostTree,
    build_host_tree,
    is_emptied,
)
from cyborg_lite.model.providers.providers import (
    ActualProvider,
    ProviderRow,
    TreeNode,
    build_root,
)
from cyborg_lite.model.traits import OWNER_CYBORG


@dataclass(frozen=True, slots=True)
class HostReader:
    """Reads the providers of a host from Placement and its rows from the database.

    The rows are read after the tree. If another sync applies newer rows meanwhile, the
    generations of the tree are outdated, and Placement rejects the changes of the sync.
    """

    placement: Placement
    cache: ProviderCache
    database: Database
    progress: SyncProgress

    def read_tree(
        self, hostname: str, *, has_compute: bool, deep: bool
    ) -> HostTree | None:
        """Return the tree of the host; None: it has neither root nor rows.

        :param deep: drop the cached providers
        :raises ComputeNodeAbsent: the host has rows, and no root
        """
        root = self.placement.find_provider_by_name(hostname)
        if root is None:
            if not self.list_rows(hostname):
                return None
            if has_compute:
                raise ComputeNodeAbsent(host=hostname)
            # Somebody may have renamed it.
            root = self.placement.find_provider(build_root(hostname).uuid)
        root_uuid = build_root(hostname).uuid if root is None else root.uuid
        tree = () if root is None else self.placement.list_tree(root_uuid)
        outside = map(self.placement.find_provider, sorted(self.progress.outside))
        nodes = (*tree, *(node for node in outside if node is not None))
        rows = self.list_rows(hostname)
        if deep:
            self.cache.invalidate(nodes)
        owned = self._find_owned(hostname, root_uuid, tree, rows)
        return build_host_tree(hostname, root_uuid, nodes, rows, owned)

    def read_facts(
        self, tree: HostTree, *, has_compute: bool, prune: bool
    ) -> HostFacts:
        """Return what the plan needs of the providers in the tree.

        :raises PlacementConflict: a provider changed since the tree was read
        """
        owns_root = not has_compute and tree.root_uuid == build_root(tree.hostname).uuid
        conflicts = self._find_conflicts(tree)
        uuids = [provider.uuid for provider in tree.desired]
        uuids += [node.uuid for node in tree.leftovers]
        uuids += [tree.root_uuid] if owns_root else []
        actual = {
            uuid: self._read(tree.nodes[uuid]) for uuid in uuids if uuid in tree.nodes
        }
        deletes_leftovers = prune or not has_compute
        emptied_nodes = () if deletes_leftovers else tree.leftovers
        return HostFacts(
            actual,
            conflicts,
            obstacles={
                provider.uuid: self._find_obstacle(tree.nodes[provider.uuid])
                for provider in tree.desired
                if provider.uuid in actual
                and tree.nodes[provider.uuid].parent_uuid != provider.parent_uuid
            },
            published={
                node.uuid: self.database.read(
                    providers.list_published_traits, [node.uuid]
                )
                for node in emptied_nodes
                if not is_emptied(actual[node.uuid])
            },
            deletes_leftovers=deletes_leftovers,
            detaches_leftovers=bool(emptied_nodes)
            and not self.database.read(device_owners.is_known_host, tree.hostname),
            owns_root=owns_root,
        )

    def list_rows(self, hostname: str) -> tuple[ProviderRow, ...]:
        """Return the rows of the host from which its providers are computed."""
        return self.database.read(providers.list_providers_of_host, hostname)

    def _find_owned(
        self,
        hostname: str,
        root_uuid: str,
        tree: Collection[TreeNode],
        rows: Collection[ProviderRow],
    ) -> frozenset[str]:
        """Return the uuids of providers in the tree that Cyborg has created.

        Placement is queried only if the name of a node starts with the prefix of this
        host, and the node is not cached.
        """
        created = frozenset(self.progress.created)  # the owner trait may be missing
        other_uuids = {root_uuid, *created, *(row.rp_uuid for row in rows)}
        candidates = [
            node
            for node in tree
            if node.name.startswith(f'{hostname}_') and node.uuid not in other_uuids
        ]
        cached = [self.cache.find(node) for node in candidates]
        hits = [provider for provider in cached if provider is not None]
        if len(hits) < len(candidates):
            owned = self.placement.list_tree(root_uuid, OWNER_CYBORG)
            return created.union(node.uuid for node in owned)
        return created.union(
            provider.node.uuid for provider in hits if OWNER_CYBORG in provider.traits
        )

    def _find_conflicts(self, tree: HostTree) -> Mapping[str, str]:
        """Return the devices that another service manages as well.

        :returns: by uuid of the device, a sentence that names the other service and its
            provider
        """
        by_address = nova_providers.map_foreign_addresses(tree.hostname, tree.foreign)
        if not by_address:
            return {}
        reasons: dict[str, str] = {}
        functions = self.database.read(
            device_owners.list_device_functions, tree.hostname
        )
        for row in tree.rows:
            addresses = functions.get(row.device_uuid, frozenset())
            node = nova_providers.find_foreign_provider(addresses, by_address)
            if node is not None:
                reasons[row.device_uuid] = nova_providers.describe_conflict(
                    self._read(node), row.driver
                )
        return reasons

    def _find_obstacle(self, node: TreeNode) -> str:
        """Return why the provider cannot be moved safely; empty: it can."""
        if any(self.placement.get_usages(node.uuid).values()):
            return 'it has allocations'
        tree = self.placement.list_tree(node.uuid)
        if any(child.parent_uuid == node.uuid for child in tree):
            return 'it has child providers'
        return ''

    def _read(self, node: TreeNode) -> ActualProvider:
        """Return a provider, its inventories and traits, from the cache if valid."""
        cached = self.cache.find(node)
        if cached is not None:
            return cached
        inventories = self.placement.get_inventories(node.uuid)
        traits = self.placement.get_traits(node.uuid)
        if inventories.generation != traits.generation:
            raise PlacementConflict(provider=node.uuid)
        actual = ActualProvider(
            replace(node, generation=traits.generation),
            inventories.inventories,
            traits.traits,
        )
        # The next attempt finds a newer generation in the cache.
        self.cache.store(actual)
        if traits.generation != node.generation:
            # The rows are older than this generation. A write that demands it could
            # replace the result of a newer sync.
            raise PlacementConflict(provider=node.uuid)
        return actual
