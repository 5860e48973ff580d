# SPDX-License-Identifier: Apache-2.0
"""Capacities of device profiles: how many further servers fit."""

from dataclasses import dataclass, replace

from cyborg_lite.conductor.capacity.group_candidates import (
    CandidateFinder,
    Groups,
    has_guest_group,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.model.capacity.fitting import list_foreign_providers
from cyborg_lite.model.capacity.server_capacity import ProfileCapacity, count_capacity


@dataclass(frozen=True, slots=True)
class CapacityService:
    """Counts further servers.

    It sends one query to Placement per distinct group, and one more if the cloud has
    mdevs.
    """

    database: Database
    finder: CandidateFinder

    def count(self, groups: Groups, hostname: str | None = None) -> ProfileCapacity:
        """Return how many further servers with the groups fit on each host.

        :param hostname: the only host to count; None: all hosts
        :raises ServiceUnavailable: Placement or Glance does not answer
        """
        regions = self.finder.read_regions(groups)
        candidates = self.finder.find(groups, regions, traits=False)
        providers = self.finder.list_capacities(
            groups, regions, close=has_guest_group(candidates)
        )
        hosts = frozenset(self.database.read(device_owners.list_hosts))
        if hostname is not None:
            hosts &= {hostname}
        capacity = count_capacity(candidates, providers, hosts)
        foreign = tuple(list_foreign_providers(candidates, providers))
        return replace(capacity, warnings=foreign)
