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
from cyborg_lite.model.ownership import nova_providers


@dataclass(frozen=True, slots=True)
class SharingFinding:
    """A provider of another service with a resource class of this service."""

    hostname: str
    rp_uuid: str
    provider_name: str
    reason: str
    problem: str = 'shared-class'


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
        own = self.database.read(provider_capacity.list_own_classes, hostname)
        root = self.placement.find_provider_by_name(hostname) if own else None
        if root is None:
            return
        tree = self.placement.list_tree(root.uuid)
        foreign_nodes = [node for node in tree if node.uuid not in own]
        # Other providers, for instance of network interfaces, have other classes.
        for node in nova_providers.map_foreign_addresses(
            root.name, foreign_nodes
        ).values():
            try:
                inventories = self.placement.get_inventories(node.uuid).inventories
            except PlacementConflict:
                continue  # deleted meanwhile
            shared = ' and '.join(sorted({*own.values()} & inventories.keys()))
            if shared:
                reason = (
                    f'The provider of another service also has {shared}. Nova takes '
                    f'each allocation of {shared} on the host for its own. Set '
                    'vgpu_resource_class of the driver or mdev_class in nova.conf to a '
                    'custom class.'
                )
                yield SharingFinding(hostname, node.uuid, node.name, reason)
