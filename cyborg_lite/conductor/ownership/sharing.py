# SPDX-License-Identifier: Apache-2.0
"""Detection of another service, such as Nova, that uses classes of this service.

Nova can create vGPUs itself. On a host where this service has vGPUs as well, Nova takes
the allocations of this service for its own. A flavor that requests the class may get a
provider of this service, and the instance has no device.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.db.capacity import provider_capacity
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.providers import PlacementConflict
from cyborg_lite.model.ownership import nova_providers, sharing
from cyborg_lite.model.ownership.sharing import OwnProvider, SharingFinding


@dataclass(frozen=True, slots=True)
class SharingCheck:
    """Compares the tree and the allocations of a host with its ARQs."""

    database: Database
    placement: Placement
    nova: Nova

    def check_host(self, hostname: str) -> tuple[SharingFinding, ...]:
        """Return the findings of a host.

        The check sends two requests, and one for each provider of this service.

        :raises CyborgError: the database, Placement or Nova does not answer, or Nova
            hides the instances of other projects
        """
        own = self.database.read(provider_capacity.list_own_providers, hostname)
        if not own:
            return ()
        return (
            *self._check_classes(hostname, own),
            *self._check_consumers(hostname, own),
        )

    def find_unowned_allocations(self, hostname: str) -> tuple[SharingFinding, ...]:
        """Return the allocations of instances on a host that have no ARQ.

        :raises CyborgError: as ``check_host``
        """
        own = self.database.read(provider_capacity.list_own_providers, hostname)
        return tuple(self._check_consumers(hostname, own))

    def _check_classes(
        self, hostname: str, own: Sequence[OwnProvider]
    ) -> Iterator[SharingFinding]:
        root = self.placement.find_provider_by_name(hostname)
        if root is None:
            return
        uuids = {provider.uuid for provider in own}
        classes = {provider.resource_class for provider in own}
        foreign_nodes = [
            node
            for node in self.placement.list_tree(root.uuid)
            if node.uuid not in uuids
        ]
        # Other providers, for instance of network interfaces, have other classes.
        for node in nova_providers.map_foreign_addresses(
            root.name, foreign_nodes
        ).values():
            try:
                inventories = self.placement.get_inventories(node.uuid).inventories
            except PlacementConflict:
                continue  # deleted meanwhile
            finding = sharing.find_shared_class(
                hostname, node, inventories.keys(), classes
            )
            if finding is not None:
                yield finding

    def _check_consumers(
        self, hostname: str, own: Sequence[OwnProvider]
    ) -> Iterator[SharingFinding]:
        for provider in own:
            consumers = self.placement.list_consumers(provider.uuid)
            unknown = sharing.list_unknown_consumers(provider, consumers)
            # Without an admin role, Nova returns 404 for the instances of other
            # projects.
            if unknown and self.nova.find_missing_instances(()) is not None:
                nodes = {uuid: self.nova.find_settled_node(uuid) for uuid in unknown}
                yield from sharing.find_foreign_instances(hostname, provider, nodes)
