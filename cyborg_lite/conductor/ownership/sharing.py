# SPDX-License-Identifier: Apache-2.0
"""Detection of another service, such as Nova, that uses classes of this service.

Nova can create vGPUs itself. On a host where this service has vGPUs as well, Nova takes
the allocations of this service for its own. A flavor that requests the class may get a
provider of this service, and the instance has no device.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cyborg_lite.clients.placement import Placement
from cyborg_lite.db.capacity import provider_capacity
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.providers import PlacementConflict
from cyborg_lite.model.ownership import nova_providers, sharing
from cyborg_lite.model.ownership.sharing import SharingFinding


@dataclass(frozen=True, slots=True)
class SharingCheck:
    """Compares the resource classes of this service on a host with those of others."""

    database: Database
    placement: Placement

    def check_host(self, hostname: str) -> Iterator[SharingFinding]:
        """Yield the findings of a host.

        The check sends two requests, and one for each foreign provider of a card.

        :raises CyborgError: the database or Placement does not answer
        """
        own = self.database.read(provider_capacity.list_own_providers, hostname)
        if not own:
            return
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
