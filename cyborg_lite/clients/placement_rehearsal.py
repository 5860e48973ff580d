# SPDX-License-Identifier: Apache-2.0
"""Dry run of changes to Placement: reads are real, writes are simulated."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from cyborg_lite.clients.placement import (
    Consumer,
    Placement,
    ProviderInventories,
    ProviderTraits,
)
from cyborg_lite.errors.providers import ProviderExists, ProviderInUse
from cyborg_lite.model.providers.providers import Inventories, TreeNode


class PlacementRehearsal(Placement):
    """Placement without writes: each write returns the result of a successful write.

    Later reads do not see simulated writes. Writes that Placement would reject because
    of allocations are rejected. Name conflicts at a rename or move, and unknown names,
    are not detected.
    """

    is_simulated = True

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._deleted: set[str] = set()

    def find_provider(self, uuid: str) -> TreeNode | None:
        """Return the stored provider, or None if it does not exist."""
        return self._placement.find_provider(uuid)

    def find_provider_by_name(self, name: str) -> TreeNode | None:
        """Return the stored provider with the name, or None."""
        return self._placement.find_provider_by_name(name)

    def list_tree(self, uuid: str, trait: str | None = None) -> tuple[TreeNode, ...]:
        """Return the stored providers in the tree of a provider."""
        return self._placement.list_tree(uuid, trait)

    def get_inventories(self, uuid: str) -> ProviderInventories:
        """Return the stored inventories of a provider."""
        return self._placement.get_inventories(uuid)

    def get_traits(self, uuid: str) -> ProviderTraits:
        """Return the stored traits of a provider."""
        return self._placement.get_traits(uuid)

    def get_usages(self, uuid: str) -> Mapping[str, int]:
        """Return the allocated amounts of a provider."""
        return self._placement.get_usages(uuid)

    def find_consumer(self, uuid: str) -> Consumer | None:
        """Return the allocations of a consumer, or None."""
        return self._placement.find_consumer(uuid)

    def create_provider(
        self, uuid: str, name: str, parent_uuid: str | None
    ) -> TreeNode:
        """Return the provider that would be created.

        :raises ProviderExists: the name or uuid is in use
        """
        if self._placement.find_provider(uuid) or self._placement.find_provider_by_name(
            name
        ):
            raise ProviderExists(name=name)
        return TreeNode(uuid, name, 0, parent_uuid, parent_uuid or uuid)

    def rename_provider(self, node: TreeNode, name: str) -> TreeNode:
        """Return the provider with the new name."""
        return replace(node, name=name)

    def move_provider(
        self, node: TreeNode, name: str, parent_uuid: str | None
    ) -> TreeNode:
        """Return the provider with the new parent and name."""
        return replace(node, name=name, parent_uuid=parent_uuid)

    def delete_provider(self, uuid: str) -> None:
        """Mark a provider as deleted.

        :raises ProviderInUse: the provider has allocations or children
        """
        tree = self._placement.list_tree(uuid)
        parents = {node.parent_uuid for node in tree if node.uuid not in self._deleted}
        if uuid in parents or any(self._placement.get_usages(uuid).values()):
            raise ProviderInUse(provider=uuid)
        self._deleted.add(uuid)

    def set_inventories(
        self, uuid: str, generation: int, inventories: Inventories
    ) -> ProviderInventories:
        """Return the new inventories with the unchanged generation.

        :raises ProviderInUse: a resource class with allocations would be removed
        """
        if any(self._removed_usages(uuid, inventories).values()):
            raise ProviderInUse(provider=uuid)
        return ProviderInventories(generation, inventories)

    def fill_providers(
        self, targets: Mapping[str, ProviderInventories]
    ) -> Mapping[str, int]:
        """Return the unchanged generations."""
        return {uuid: target.generation for uuid, target in targets.items()}

    def _removed_usages(self, uuid: str, inventories: Inventories) -> Mapping[str, int]:
        """Return allocated amounts of the resource classes that would be removed."""
        if self._placement.find_provider(uuid) is None:
            return {}
        usages = self._placement.get_usages(uuid)
        return {
            name: amount for name, amount in usages.items() if name not in inventories
        }

    def set_traits(
        self, uuid: str, generation: int, traits: Collection[str]
    ) -> ProviderTraits:
        """Return the new traits with the unchanged generation."""
        return ProviderTraits(generation, frozenset(traits))

    def create_custom_names(
        self, classes: Iterable[str], traits: Iterable[str]
    ) -> None:
        """Create nothing."""

    def invalidate_names(self) -> None:
        """Do nothing: no names are cached."""
