# SPDX-License-Identifier: Apache-2.0
"""Allocations of instances in Placement, as far as a bind reads them."""

from collections import Counter
from collections.abc import Mapping

from cyborg_lite.clients.placement import Consumer, Placement, ProviderTraits
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.providers.providers import TreeNode


class FakeConsumers(Placement):
    """Instances and their allocations."""

    def __init__(self) -> None:
        self.is_down = False
        self.trait_reads: list[str | None] = []
        """Names of the providers whose trait a bind has read, in order."""
        self.old_hosts: set[str] = set()
        """Compute nodes whose Nova attaches no mdevs."""
        self.traits: dict[str, frozenset[str]] = {}  # by uuid of the provider
        self._consumers: dict[str, Consumer] = {}

    def allocate(
        self,
        instance: str,
        providers: list[str],
        project: str,
        resource_class: str = 'PGPU',
    ) -> None:
        """Allocate one unit for each entry of ``providers``."""
        self._consumers[instance] = Consumer(
            uuid=instance,
            project_id=project,
            user_id='user',
            generation=1,
            allocations={
                uuid: {resource_class: number}
                for uuid, number in Counter(providers).items()
            },
        )

    def forget(self, instance: str) -> None:
        """Delete the allocation of an instance, as Nova's clean-up does."""
        del self._consumers[instance]

    def list_allocations(self, provider: str) -> Mapping[str, Mapping[str, int]]:
        if self.is_down:
            raise ServiceUnavailable(what='Placement')
        return {
            uuid: consumer.allocations[provider]
            for uuid, consumer in self._consumers.items()
            if provider in consumer.providers
        }

    def list_providers(self, trait: str) -> tuple[TreeNode, ...]:
        """Return no provider: the allocations of each one are always read."""
        if self.is_down:
            raise ServiceUnavailable(what='Placement')
        return ()

    def list_hosts_with_trait(self, trait: str) -> frozenset[str]:
        """Return no host: tests of a bind have no compute nodes."""
        return frozenset()

    def get_usages(self, uuid: str) -> Mapping[str, int]:
        if self.is_down:
            raise ServiceUnavailable(what='Placement')
        used: Counter[str] = Counter()
        for consumer in self._consumers.values():
            used.update(consumer.allocations.get(uuid, {}))
        return used

    def list_names_with_trait(
        self, trait: str, name: str | None = None
    ) -> frozenset[str]:
        self.trait_reads.append(name)
        if self.is_down:
            raise ServiceUnavailable(what='Placement')
        return frozenset() if name is None else frozenset({name}) - self.old_hosts

    def find_consumer(self, uuid: str) -> Consumer | None:
        if self.is_down:
            raise ServiceUnavailable(what='Placement')
        return self._consumers.get(uuid)

    def get_traits(self, uuid: str) -> ProviderTraits:
        if self.is_down:
            raise ServiceUnavailable(what='Placement')
        return ProviderTraits(0, self.traits.get(uuid, frozenset()))
