# SPDX-License-Identifier: Apache-2.0
"""Fake Placement with trees, generations, allocations and conflicts.

``tests/functional/test_placement.py`` runs one contract on it and on a real Placement.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

from cyborg_lite.clients.placement import (
    Consumer,
    Placement,
    ProviderInventories,
    ProviderTraits,
)
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.errors.providers import (
    PlacementConflict,
    ProviderExists,
    ProviderInUse,
)
from cyborg_lite.model.providers.providers import Inventories, TreeNode
from cyborg_lite.model.traits import OWNER_CYBORG, OWNER_NOVA

STANDARD = frozenset(
    {OWNER_CYBORG, OWNER_NOVA, 'PGPU', 'VGPU', 'FPGA', 'VCPU', 'HW_GPU_API'}
)
"""Standard traits and resource classes that tests use."""


@dataclass
class Provider:
    """State of a resource provider. A test may change it behind the product's back."""

    node: TreeNode
    inventories: Inventories = field(default_factory=dict)
    traits: frozenset[str] = frozenset()

    def touch(self) -> int:
        """Increment the generation, as after any change, and return it."""
        generation = self.node.generation + 1
        self.node = replace(self.node, generation=generation)
        return generation


class FakePlacement(Placement):
    """Placement without a server."""

    def __init__(self) -> None:
        self.providers: dict[str, Provider] = {}
        self.consumers: dict[str, Consumer] = {}
        self.names = set(STANDARD)
        self.classes: set[str] = set()
        """Custom resource classes; they are in ``names`` as well."""
        self.refuses_reshape = False
        """True: the user lacks the role ``service``."""
        self.is_old = False
        """True: a provider cannot be moved to another parent."""
        self.calls: list[str] = []
        """One entry per request that the real client would send."""
        self.errors: list[CyborgError] = []
        """Errors of the next requests, in order."""

    @property
    def writes(self) -> list[str]:
        return [call for call in self.calls if not call.startswith('GET')]

    def counts(self) -> Counter[str]:
        """Return the number of requests by method."""
        return Counter(call.split()[0] for call in self.calls)

    def allocate(self, provider: str, resources: Mapping[str, int]) -> Consumer:
        """Allocate resources to a new instance of a new project."""
        state = self.providers[provider]
        for name, amount in resources.items():
            inventory = state.inventories[name]
            used = self._sum_usage(provider).get(name, 0)
            assert (
                used + amount
                <= (inventory.total - inventory.reserved) * inventory.allocation_ratio
            )
        state.touch()
        uuid = str(uuid4())
        allocations = {provider: dict(resources)}
        self.consumers[uuid] = Consumer(uuid, 'project', 'user', 1, allocations)
        return self.consumers[uuid]

    # --- interface of the client ---

    def find_provider(self, uuid: str) -> TreeNode | None:
        self._count_call(f'GET /resource_providers/{uuid}')
        state = self.providers.get(uuid)
        return state.node if state else None

    def find_provider_by_name(self, name: str) -> TreeNode | None:
        self._count_call(f'GET /resource_providers?name={name}')
        for provider in self.providers.values():
            if provider.node.name == name:
                return provider.node
        return None

    def list_tree(self, uuid: str, trait: str | None = None) -> tuple[TreeNode, ...]:
        self._count_call(f'GET /resource_providers?in_tree={uuid}&required={trait}')
        if uuid not in self.providers:
            return ()
        root = self.providers[uuid].node.root_uuid
        return tuple(
            provider.node
            for provider in self.providers.values()
            if provider.node.root_uuid == root
            and (trait is None or trait in provider.traits)
        )

    def list_providers(self, trait: str) -> tuple[TreeNode, ...]:
        self._count_call(f'GET /resource_providers?required={trait}')
        return tuple(
            provider.node
            for provider in self.providers.values()
            if trait in provider.traits
        )

    def list_names_with_trait(
        self, trait: str, name: str | None = None
    ) -> frozenset[str]:
        self._count_call(f'GET /resource_providers?name={name}&required={trait}')
        return frozenset(
            provider.node.name
            for provider in self.providers.values()
            if trait in provider.traits and name in (None, provider.node.name)
        )

    def list_hosts_with_trait(self, trait: str) -> frozenset[str]:
        self._count_call(f'GET /resource_providers?required={trait}')
        self._count_call('GET /resource_providers')
        return frozenset(
            self.providers[provider.node.root_uuid].node.name
            for provider in self.providers.values()
            if trait in provider.traits
        )

    def create_provider(
        self, uuid: str, name: str, parent_uuid: str | None
    ) -> TreeNode:
        self._count_call('POST /resource_providers')
        names = {provider.node.name for provider in self.providers.values()}
        if uuid in self.providers or name in names:
            raise ProviderExists(name=name)
        root = uuid
        if parent_uuid is not None:
            if parent_uuid not in self.providers:
                raise _build_refusal(400, f'no parent {parent_uuid}')
            root = self.providers[parent_uuid].node.root_uuid
        node = TreeNode(uuid, name, 0, parent_uuid, root)
        self.providers[uuid] = Provider(node)
        return node

    def rename_provider(self, node: TreeNode, name: str) -> TreeNode:
        return self._build_node(node.uuid, name, node.parent_uuid)

    def move_provider(
        self, node: TreeNode, name: str, parent_uuid: str | None
    ) -> TreeNode:
        if self.is_old:
            raise _build_refusal(406, 'no such microversion')
        return self._build_node(node.uuid, name, parent_uuid)

    def _build_node(self, uuid: str, name: str, parent_uuid: str | None) -> TreeNode:
        self._count_call(f'PUT /resource_providers/{uuid}')
        if uuid not in self.providers:
            raise PlacementConflict(provider=uuid)
        siblings = [
            provider.node
            for provider in self.providers.values()
            if provider.node.uuid != uuid
        ]
        if name in {node.name for node in siblings}:
            raise ProviderExists(name=name)
        root = uuid
        if parent_uuid is not None:
            root = self.providers[parent_uuid].node.root_uuid
        current = self.providers[uuid]
        current.node = replace(
            current.node, name=name, parent_uuid=parent_uuid, root_uuid=root
        )
        return current.node

    def delete_provider(self, uuid: str) -> None:
        self._count_call(f'DELETE /resource_providers/{uuid}')
        parents = {provider.node.parent_uuid for provider in self.providers.values()}
        if uuid in parents or self._sum_usage(uuid):
            raise ProviderInUse(provider=uuid)
        self.providers.pop(uuid, None)

    def get_inventories(self, uuid: str) -> ProviderInventories:
        state = self._check_provider('GET', uuid, 'inventories')
        return ProviderInventories(state.node.generation, state.inventories)

    def set_inventories(
        self, uuid: str, generation: int, inventories: Inventories
    ) -> ProviderInventories:
        state = self._check_provider('PUT', uuid, 'inventories', generation)
        self._check_known(inventories)
        if set(self._sum_usage(uuid)) - set(inventories):
            raise ProviderInUse(provider=uuid)
        for provider in inventories.values():
            if not 0 <= provider.reserved <= provider.total or provider.total < 1:
                raise _build_refusal(400, 'reserved more than there is')
        state.inventories = dict(inventories)
        return ProviderInventories(state.touch(), state.inventories)

    def fill_providers(
        self, targets: Mapping[str, ProviderInventories]
    ) -> Mapping[str, int] | None:
        if self.refuses_reshape:
            return None
        self._count_call('POST /reshaper')
        for uuid, target in targets.items():
            state = self.providers.get(uuid)
            if state is None or not self.names.issuperset(target.inventories):
                return None
            if state.node.generation != target.generation:
                raise PlacementConflict(provider=uuid)
        for uuid, target in targets.items():
            state = self.providers[uuid]
            state.inventories = dict(target.inventories)
            state.touch()
            state.touch()
        return {uuid: self.providers[uuid].node.generation for uuid in targets}

    def get_traits(self, uuid: str) -> ProviderTraits:
        state = self._check_provider('GET', uuid, 'traits')
        return ProviderTraits(state.node.generation, state.traits)

    def set_traits(
        self, uuid: str, generation: int, traits: Collection[str]
    ) -> ProviderTraits:
        state = self._check_provider('PUT', uuid, 'traits', generation)
        self._check_known(traits)
        if frozenset(traits) != state.traits:
            state.traits = frozenset(traits)
            state.touch()
        return ProviderTraits(state.node.generation, state.traits)

    def list_providers_with_traits(
        self, required: Collection[str], forbidden: Collection[str]
    ) -> frozenset[str]:
        self._count_call('GET /resource_providers?required')
        if not self.names.issuperset({*required, *forbidden}):
            return frozenset()
        return frozenset(
            uuid
            for uuid, provider in self.providers.items()
            if provider.traits.issuperset(required)
            and provider.traits.isdisjoint(forbidden)
        )

    def list_candidates(
        self,
        amounts: Mapping[str, int],
        required: Collection[str],
        forbidden: Collection[str],
    ) -> Mapping[str, Mapping[str, int]]:
        self._count_call('GET /allocation_candidates')
        if not self.names.issuperset({*amounts, *required, *forbidden}):
            return {}
        free = {uuid: self._free(uuid) for uuid in self.providers}
        return {
            uuid: free[uuid]
            for uuid, provider in self.providers.items()
            if provider.traits.issuperset(required)
            and provider.traits.isdisjoint(forbidden)
            and all(free[uuid].get(name, 0) >= amounts[name] for name in amounts)
            and all(
                provider.inventories[name].max_unit >= amounts[name] for name in amounts
            )
        }

    def _free(self, uuid: str) -> dict[str, int]:
        used = self._sum_usage(uuid)
        inventories = self.providers[uuid].inventories
        return {
            name: int((entry.total - entry.reserved) * entry.allocation_ratio)
            - used[name]
            for name, entry in inventories.items()
        }

    def get_usages(self, uuid: str) -> Mapping[str, int]:
        state = self._check_provider('GET', uuid, 'usages')
        used = self._sum_usage(uuid)
        return {name: used.get(name, 0) for name in state.inventories}

    def create_custom_names(
        self, classes: Iterable[str], traits: Iterable[str]
    ) -> None:
        self.classes |= {name for name in classes if name.startswith('CUSTOM_')}
        for name in sorted({*classes, *traits} - self.names):
            if name.startswith('CUSTOM_'):
                self._count_call(f'PUT /{name}')
                self.names.add(name)

    def list_unused_traits(self) -> frozenset[str]:
        self._count_call('GET /traits?associated=false')
        custom = {name for name in self.names if name.startswith('CUSTOM_')}
        return frozenset(custom.difference(self.classes, *self._list_trait_sets()))

    def delete_trait(self, name: str) -> bool:
        self._count_call(f'DELETE /traits/{name}')
        if any(name in traits for traits in self._list_trait_sets()):
            return False
        self.names.discard(name)
        return True

    def list_custom_classes(self) -> frozenset[str]:
        self._count_call('GET /resource_classes')
        return frozenset(self.classes)

    def delete_resource_class(self, name: str) -> bool:
        self._count_call(f'DELETE /resource_classes/{name}')
        if any(name in state.inventories for state in self.providers.values()):
            return False
        self.names.discard(name)
        self.classes.discard(name)
        return True

    def _list_trait_sets(self) -> list[frozenset[str]]:
        return [provider.traits for provider in self.providers.values()]

    def invalidate_names(self) -> None:
        """Do nothing; this class caches no names."""

    def find_consumer(self, uuid: str) -> Consumer | None:
        self._count_call(f'GET /allocations/{uuid}')
        return self.consumers.get(uuid)

    def shrink_consumer(self, consumer: Consumer, provider: str) -> bool:
        self._count_call(f'PUT /allocations/{consumer.uuid}')
        if self.consumers.get(consumer.uuid) != consumer:
            return False
        remaining = {k: v for k, v in consumer.allocations.items() if k != provider}
        self.consumers[consumer.uuid] = replace(
            consumer, allocations=remaining, generation=consumer.generation + 1
        )
        if not remaining:
            del self.consumers[consumer.uuid]
        for uuid in consumer.allocations:
            self.providers[uuid].touch()
        return True

    def list_allocations(self, provider: str) -> Mapping[str, Mapping[str, int]]:
        self._count_call(f'GET /resource_providers/{provider}/allocations')
        return {
            uuid: consumer.allocations[provider]
            for uuid, consumer in self.consumers.items()
            if provider in consumer.allocations
        }

    def _count_call(self, call: str) -> None:
        self.calls.append(call)
        if self.errors:
            raise self.errors.pop(0)

    def _check_provider(
        self, method: str, uuid: str, part: str, generation: int | None = None
    ) -> Provider:
        self._count_call(f'{method} /resource_providers/{uuid}/{part}')
        state = self.providers.get(uuid)
        if state is None or generation not in (None, state.node.generation):
            raise PlacementConflict(provider=uuid)
        return state

    def _sum_usage(self, uuid: str) -> Counter[str]:
        used: Counter[str] = Counter()
        for consumer in self.consumers.values():
            used.update(consumer.allocations.get(uuid, {}))
        return used

    def _check_known(self, names: Iterable[str]) -> None:
        unknown = sorted(set(names) - self.names)
        if unknown:
            raise _build_refusal(400, f'unknown: {", ".join(unknown)}')


def _build_refusal(status: int, reason: str) -> RemoteError:
    return RemoteError(service='Placement', status=status, reason=reason)
