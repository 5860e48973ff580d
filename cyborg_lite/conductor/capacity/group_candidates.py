# SPDX-License-Identifier: Apache-2.0
"""Groups of device profiles with the providers that Placement has for them.

Placement is authoritative for free units: it has the allocations of instances that
have no ARQ yet, and what an operator has reserved there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.arqs.nova_support import NovaRules, NovaSupport
from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.db.bitstreams import programming
from cyborg_lite.db.capacity import provider_capacity
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.bitstreams import choice
from cyborg_lite.model.bitstreams.choice import RegionProperties
from cyborg_lite.model.capacity.explanations import GroupCandidates, ProviderCapacity
from cyborg_lite.model.profiles.device_profiles import (
    AttachTarget,
    Group,
    GroupRequirements,
)
from cyborg_lite.model.profiles.selector_keys import (
    find_selector,
    name_bitstream_attribute,
)

Groups = Sequence[Mapping[str, str]]  # of a device profile
Regions = Mapping[str, RegionProperties]  # by uuid of the provider


class CandidateFinder:
    """Finds the providers for groups, and what the database has about providers."""

    def __init__(
        self,
        database: Database,
        placement: Placement,
        nova_rules: NovaRules | None = None,
        catalog: BitstreamCatalog | None = None,
    ) -> None:
        self._database = database
        self._placement = placement
        self._catalog = catalog or BitstreamCatalog(None, 0)
        self._nova = NovaSupport(placement, nova_rules or NovaRules())

    def find(
        self, groups: Groups, *, free: bool = True, traits: bool = True
    ) -> tuple[list[GroupCandidates], tuple[ProviderCapacity, ...]]:
        """Return the candidates of each group, and the capacities of all providers.

        Equal groups are queried once: one request to Placement per distinct group for
        free units, and one per distinct group with traits. The capacities have the
        traits of the selectors of the groups, which Placement may lack yet. If Nova
        attaches an accelerator of a group, those are closed whose handles it cannot
        attach, with at most one more request.

        :param free: query the providers with free units; False: close no capacity
        :param traits: query the providers with the traits, whether free or not
        :raises BitstreamRefused: a group names an image and a function
        :raises ServiceUnavailable: Placement or Glance does not answer
        """
        regions = self._read_regions(groups)
        candidates = self._list_candidates(groups, regions, free, traits)
        selectors = tuple(filter(None, map(find_selector, groups)))
        loadable = self._catalog.list_loadable(groups, regions)
        capacities = self._database.read(
            provider_capacity.list_provider_capacities, selectors, loadable
        )
        if free and any(candidate.for_guest for candidate in candidates):
            capacities = self._nova.close_capacities(capacities)
        return candidates, capacities

    def _read_regions(self, groups: Groups) -> Regions:
        """Return the regions; empty if no group requests a bitstream."""
        if not any(map(name_bitstream_attribute, groups)):
            return {}
        return self._database.read(programming.list_region_properties)

    def _list_candidates(
        self, groups: Groups, regions: Regions, free: bool, traits: bool
    ) -> list[GroupCandidates]:
        parsed = [Group.parse(group) for group in groups]
        candidates = {
            requirements: self._query_placement(requirements, free, traits)
            for requirements in dict.fromkeys(group.requirements for group in parsed)
        }
        queries = dict.fromkeys(map(choice.parse_query, parsed))
        refusals = {
            query: self._catalog.list_refusals(query, regions) if query else {}
            for query in queries
        }
        return [
            replace(
                candidates[group.requirements],
                for_guest=group.attach_target is AttachTarget.VM,
                refusals=refusals[choice.parse_query(group)],
            )
            for group in parsed
        ]

    def _query_placement(
        self, group: GroupRequirements, free: bool, traits: bool
    ) -> GroupCandidates:
        filters = group.required, group.forbidden
        offers: Mapping[str, Mapping[str, int]] = {}
        if free:
            offers = self._placement.list_candidates(dict(group.amounts), *filters)
        with_traits: frozenset[str] = frozenset()
        if traits and any(filters):
            with_traits = self._placement.list_providers_with_traits(*filters)
        return GroupCandidates(group, offers, with_traits)
