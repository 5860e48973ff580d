# SPDX-License-Identifier: Apache-2.0
"""Placement in memory: trees, generations, allocations and refusals as the real one's.

``tests/functional/test_placement.py`` holds both to the same contract.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

from cyborg_lite.clients.placement import Consumer, Marked, Placement, Stocked
from cyborg_lite.exceptions import (
    CyborgError,
    PlacementConflict,
    ProviderExists,
    ProviderInUse,
    RemoteError,
)
from cyborg_lite.model.providers import OWNER, OWNER_NOVA, Inventories, TreeNode

STANDARD = frozenset({OWNER, OWNER_NOVA, 'PGPU', 'VGPU', 'FPGA', 'VCPU', 'HW_GPU_API'})
"""The few of the standard traits and classes that tests use."""


@dataclass
class Provider:
    """All there is to know of one; a test may change it behind everybody's back."""

    node: TreeNode
    inventories: Inventories = field(default_factory=dict)
    traits: frozenset[str] = frozenset()

    def touch(self) -> int:
        """Another generation, as after any change."""
        generation = self.node.generation + 1
        self.node = replace(self.node, generation=generation)
        return generation


class FakePlacement(Placement):
    """A Placement without a remote."""

    def __init__(self) -> None:
        self.providers: dict[str, Provider] = {}
        self.consumers: dict[str, Consumer] = {}
        self.known = set(STANDARD)
        self.is_old = False
        """It cannot move a provider to another parent."""
        self.calls: list[str] = []
        """One entry for each request that the real one would be sent."""
        self.errors: list[CyborgError] = []
        """The next requests fail with these, first come first served."""

    @property
    def writes(self) -> list[str]:
        return [call for call in self.calls if not call.startswith('GET')]

    def counts(self) -> Counter[str]:
        """Requests by method."""
        return Counter(call.split()[0] for call in self.calls)

    def allocate(self, provider: str, resources: Mapping[str, int]) -> Consumer:
        """As the scheduler does for a new server of a new project."""
        found = self.providers[provider]
        for name, amount in resources.items():
            one = found.inventories[name]
            used = self._used(provider).get(name, 0)
            assert used + amount <= (one.total - one.reserved) * one.allocation_ratio
        found.touch()
        uuid = str(uuid4())
        allocations = {provider: dict(resources)}
        self.consumers[uuid] = Consumer(uuid, 'project', 'user', 1, allocations)
        return self.consumers[uuid]

    # --- as the real one ---

    def provider(self, uuid: str) -> TreeNode | None:
        self._called(f'GET /resource_providers/{uuid}')
        found = self.providers.get(uuid)
        return found.node if found else None

    def provider_named(self, name: str) -> TreeNode | None:
        self._called(f'GET /resource_providers?name={name}')
        for one in self.providers.values():
            if one.node.name == name:
                return one.node
        return None

    def tree(self, uuid: str, trait: str | None = None) -> tuple[TreeNode, ...]:
        self._called(f'GET /resource_providers?in_tree={uuid}&required={trait}')
        if uuid not in self.providers:
            return ()
        root = self.providers[uuid].node.root_uuid
        return tuple(
            one.node
            for one in self.providers.values()
            if one.node.root_uuid == root and (trait is None or trait in one.traits)
        )

    def create_provider(
        self, uuid: str, name: str, parent_uuid: str | None
    ) -> TreeNode:
        self._called('POST /resource_providers')
        names = {one.node.name for one in self.providers.values()}
        if uuid in self.providers or name in names:
            raise ProviderExists(name=name)
        root = uuid
        if parent_uuid is not None:
            if parent_uuid not in self.providers:
                raise _refused(400, f'no parent {parent_uuid}')
            root = self.providers[parent_uuid].node.root_uuid
        node = TreeNode(uuid, name, 0, parent_uuid, root)
        self.providers[uuid] = Provider(node)
        return node

    def rename_provider(self, node: TreeNode, name: str) -> TreeNode:
        return self._placed(node.uuid, name, node.parent_uuid)

    def move_provider(
        self, node: TreeNode, name: str, parent_uuid: str | None
    ) -> TreeNode:
        if self.is_old:
            raise _refused(406, 'no such microversion')
        return self._placed(node.uuid, name, parent_uuid)

    def _placed(self, uuid: str, name: str, parent_uuid: str | None) -> TreeNode:
        self._called(f'PUT /resource_providers/{uuid}')
        if uuid not in self.providers:
            raise PlacementConflict(provider=uuid)
        others = [one.node for one in self.providers.values() if one.node.uuid != uuid]
        if name in {node.name for node in others}:
            raise ProviderExists(name=name)
        root = uuid
        if parent_uuid is not None:
            root = self.providers[parent_uuid].node.root_uuid
        mine = self.providers[uuid]
        mine.node = replace(
            mine.node, name=name, parent_uuid=parent_uuid, root_uuid=root
        )
        return mine.node

    def delete_provider(self, uuid: str) -> None:
        self._called(f'DELETE /resource_providers/{uuid}')
        parents = {one.node.parent_uuid for one in self.providers.values()}
        if uuid in parents or self._used(uuid):
            raise ProviderInUse(provider=uuid)
        self.providers.pop(uuid, None)

    def inventories(self, uuid: str) -> Stocked:
        found = self._found('GET', uuid, 'inventories')
        return Stocked(found.node.generation, found.inventories)

    def set_inventories(
        self, uuid: str, generation: int, inventories: Inventories
    ) -> Stocked:
        found = self._found('PUT', uuid, 'inventories', generation)
        self._check_known(inventories)
        if set(self._used(uuid)) - set(inventories):
            raise ProviderInUse(provider=uuid)
        for one in inventories.values():
            if not 0 <= one.reserved <= one.total or one.total < 1:
                raise _refused(400, 'reserved more than there is')
        found.inventories = dict(inventories)
        return Stocked(found.touch(), found.inventories)

    def traits(self, uuid: str) -> Marked:
        found = self._found('GET', uuid, 'traits')
        return Marked(found.node.generation, found.traits)

    def set_traits(self, uuid: str, generation: int, traits: Collection[str]) -> Marked:
        found = self._found('PUT', uuid, 'traits', generation)
        self._check_known(traits)
        if frozenset(traits) != found.traits:
            found.traits = frozenset(traits)
            found.touch()
        return Marked(found.node.generation, found.traits)

    def marked(
        self, required: Collection[str], forbidden: Collection[str]
    ) -> frozenset[str]:
        self._called('GET /resource_providers?required')
        if not self.known.issuperset({*required, *forbidden}):
            return frozenset()
        return frozenset(
            uuid
            for uuid, one in self.providers.items()
            if one.traits.issuperset(required) and one.traits.isdisjoint(forbidden)
        )

    def candidates(
        self,
        amounts: Mapping[str, int],
        required: Collection[str],
        forbidden: Collection[str],
    ) -> Mapping[str, Mapping[str, int]]:
        self._called('GET /allocation_candidates')
        if not self.known.issuperset({*amounts, *required, *forbidden}):
            return {}
        free = {uuid: self._free(uuid) for uuid in self.providers}
        return {
            uuid: free[uuid]
            for uuid, one in self.providers.items()
            if one.traits.issuperset(required)
            and one.traits.isdisjoint(forbidden)
            and all(free[uuid].get(name, 0) >= amounts[name] for name in amounts)
            and all(one.inventories[name].max_unit >= amounts[name] for name in amounts)
        }

    def _free(self, uuid: str) -> dict[str, int]:
        used = self._used(uuid)
        return {
            name: int((one.total - one.reserved) * one.allocation_ratio) - used[name]
            for name, one in self.providers[uuid].inventories.items()
        }

    def usages(self, uuid: str) -> Mapping[str, int]:
        found = self._found('GET', uuid, 'usages')
        used = self._used(uuid)
        return {name: used.get(name, 0) for name in found.inventories}

    def ensure(self, classes: Iterable[str], traits: Iterable[str]) -> None:
        for name in sorted({*classes, *traits} - self.known):
            if name.startswith('CUSTOM_'):
                self._called(f'PUT /{name}')
                self.known.add(name)

    def forget(self) -> None:
        """Nothing is remembered that is not so."""

    def consumer(self, uuid: str) -> Consumer | None:
        self._called(f'GET /allocations/{uuid}')
        return self.consumers.get(uuid)

    def consumers_of(self, provider: str) -> frozenset[str]:
        self._called(f'GET /resource_providers/{provider}/allocations')
        return frozenset(
            uuid
            for uuid, consumer in self.consumers.items()
            if provider in consumer.allocations
        )

    def _called(self, call: str) -> None:
        self.calls.append(call)
        if self.errors:
            raise self.errors.pop(0)

    def _found(
        self, method: str, uuid: str, part: str, generation: int | None = None
    ) -> Provider:
        self._called(f'{method} /resource_providers/{uuid}/{part}')
        found = self.providers.get(uuid)
        if found is None or generation not in (None, found.node.generation):
            raise PlacementConflict(provider=uuid)
        return found

    def _used(self, uuid: str) -> Counter[str]:
        used: Counter[str] = Counter()
        for consumer in self.consumers.values():
            used.update(consumer.allocations.get(uuid, {}))
        return used

    def _check_known(self, names: Iterable[str]) -> None:
        unknown = sorted(set(names) - self.known)
        if unknown:
            raise _refused(400, f'unknown: {", ".join(unknown)}')


def _refused(status: int, reason: str) -> RemoteError:
    return RemoteError(service='Placement', status=status, reason=reason)
