# SPDX-License-Identifier: Apache-2.0
"""A Placement that is read and never written, to find out what would be done."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from cyborg_lite.clients.placement import Consumer, Marked, Placement, Stocked
from cyborg_lite.exceptions import ProviderExists, ProviderInUse
from cyborg_lite.model.providers import Inventories, TreeNode


class PlacementRehearsal(Placement):
    """Writes are answered as if they were done; who asks reads what is really there.

    It refuses what Placement would refuse for its allocations. Whether a name is
    taken or unknown shows only when it is done.
    """

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._deleted: set[str] = set()

    def provider(self, uuid: str) -> TreeNode | None:
        return self._placement.provider(uuid)

    def provider_named(self, name: str) -> TreeNode | None:
        return self._placement.provider_named(name)

    def tree(self, uuid: str, trait: str | None = None) -> tuple[TreeNode, ...]:
        return self._placement.tree(uuid, trait)

    def inventories(self, uuid: str) -> Stocked:
        return self._placement.inventories(uuid)

    def traits(self, uuid: str) -> Marked:
        return self._placement.traits(uuid)

    def usages(self, uuid: str) -> Mapping[str, int]:
        return self._placement.usages(uuid)

    def consumer(self, uuid: str) -> Consumer | None:
        return self._placement.consumer(uuid)

    def create_provider(
        self, uuid: str, name: str, parent_uuid: str | None
    ) -> TreeNode:
        if self._placement.provider(uuid) or self._placement.provider_named(name):
            raise ProviderExists(name=name)
        return TreeNode(uuid, name, 0, parent_uuid, parent_uuid or uuid)

    def rename_provider(self, node: TreeNode, name: str) -> TreeNode:
        return replace(node, name=name)

    def move_provider(
        self, node: TreeNode, name: str, parent_uuid: str | None
    ) -> TreeNode:
        return replace(node, name=name, parent_uuid=parent_uuid)

    def delete_provider(self, uuid: str) -> None:
        left = [n for n in self._placement.tree(uuid) if n.uuid not in self._deleted]
        below = {node.parent_uuid for node in left}
        if uuid in below or any(self._placement.usages(uuid).values()):
            raise ProviderInUse(provider=uuid)
        self._deleted.add(uuid)

    def set_inventories(
        self, uuid: str, generation: int, inventories: Inventories
    ) -> Stocked:
        lost = self._lost(uuid, inventories)
        if any(lost.values()):
            raise ProviderInUse(provider=uuid)
        return Stocked(generation, inventories)

    def _lost(self, uuid: str, inventories: Inventories) -> Mapping[str, int]:
        """Units in use of classes that it would not have any more."""
        if self._placement.provider(uuid) is None:
            return {}
        used = self._placement.usages(uuid)
        return {name: count for name, count in used.items() if name not in inventories}

    def set_traits(self, uuid: str, generation: int, traits: Collection[str]) -> Marked:
        return Marked(generation, frozenset(traits))

    def ensure(self, classes: Iterable[str], traits: Iterable[str]) -> None:
        """They will be made."""

    def forget(self) -> None:
        """Nothing is remembered here."""
