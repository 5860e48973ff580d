# SPDX-License-Identifier: Apache-2.0
"""Explanations of the hosts on which a device profile fits.

Placement is authoritative for free capacity. The database explains why capacity is
missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.arqs.nova_support import NovaRules, NovaSupport
from cyborg_lite.conductor.bitstreams.bitstreams import (
    NO_BITSTREAMS,
    BitstreamCatalog,
)
from cyborg_lite.db.bitstreams import programming
from cyborg_lite.db.capacity import provider_capacity
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.profiles import DeviceProfileNotFound, ImpossibleDeviceProfile
from cyborg_lite.model.bitstreams.choice import RegionProperties, parse_query
from cyborg_lite.model.capacity import fitting
from cyborg_lite.model.capacity.device_types import DeviceType, summarize_types
from cyborg_lite.model.capacity.explanations import (
    Explanation,
    FitResult,
    GroupCandidates,
    ProviderCapacity,
)
from cyborg_lite.model.capacity.server_capacity import ProfileCapacity, count_capacity
from cyborg_lite.model.profiles.alternatives import (
    apply_choice,
    list_all_groups,
    list_choices,
    list_options,
)
from cyborg_lite.model.profiles.device_profiles import (
    AttachTarget,
    DeviceProfile,
    Group,
    GroupRequirements,
)
from cyborg_lite.model.profiles.selector_keys import (
    find_selector,
    name_bitstream_attribute,
)
from cyborg_lite.model.queries import Query

# --- groups with the providers that Placement has for them ---
#
# Placement is authoritative for free units: it has the allocations of instances that
# have no ARQ yet, and what an operator has reserved there.


Groups = Sequence[Mapping[str, str]]  # of a device profile
Regions = Mapping[str, RegionProperties]  # by uuid of the provider


# From the best result to the worst one.
_RANKS: Final = {result: rank for rank, result in enumerate(FitResult)}


class ExplanationService:
    """Explains fits, and counts how many further servers fit.

    An explanation sends at most two queries to Placement per distinct group, a count
    sends one. Both send one more if the cloud has mdevs.
    """

    def __init__(
        self,
        database: Database,
        placement: Placement,
        nova_rules: NovaRules | None = None,
        catalog: BitstreamCatalog = NO_BITSTREAMS,
    ) -> None:
        self._database = database
        self._placement = placement
        self._catalog = catalog
        self._nova = NovaSupport(placement, nova_rules or NovaRules())

    def _find(
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
        """
        regions: Regions = {}
        if any(map(name_bitstream_attribute, groups)):
            regions = self._database.read(programming.list_region_properties)
        candidates = self._list_candidates(groups, regions, free, traits)
        selectors = tuple(filter(None, map(find_selector, groups)))
        loadable = self._catalog.list_loadable(groups, regions)
        capacities = self._database.read(
            provider_capacity.list_provider_capacities, selectors, loadable
        )
        if free and any(candidate.for_guest for candidate in candidates):
            capacities = self._nova.close_capacities(capacities)
        return candidates, capacities

    def _list_candidates(
        self, groups: Groups, regions: Regions, free: bool, traits: bool
    ) -> list[GroupCandidates]:
        parsed = [Group.parse(group) for group in groups]
        candidates = {
            requirements: self._query_placement(requirements, free, traits)
            for requirements in dict.fromkeys(group.requirements for group in parsed)
        }
        queries = dict.fromkeys(map(parse_query, parsed))
        refusals = {
            query: self._catalog.list_refusals(query, regions) if query else {}
            for query in queries
        }
        return [
            replace(
                candidates[group.requirements],
                for_guest=group.attach_target is AttachTarget.VM,
                refusals=refusals[parse_query(group)],
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

    def explain(
        self, project_id: str | None, uuid: str, hostname: str | None
    ) -> Explanation:
        """Explain for each host whether the profile fits there now, and why not.

        The result is that of the most preferred choice of alternatives that fits best.

        :param project_id: the project of the caller; None: an admin
        :param hostname: the only host to explain; None: all hosts
        :raises DeviceProfileNotFound: the caller sees no profile with the uuid
        :raises ServiceUnavailable: Placement or Glance does not answer
        """
        profile = find_profile(self._database, project_id, uuid)
        hosts = self._list_hosts(hostname)
        best: Explanation | None = None
        for choice in list_choices(profile):
            groups = apply_choice(profile, choice).groups
            explanation = fitting.explain_fit(*self._find(groups), hosts)
            if best is None or _RANKS[explanation.result] < _RANKS[best.result]:
                has_choice = bool(profile.alternatives)
                best = replace(explanation, choice=choice if has_choice else ())
            if best.result is FitResult.FITS:
                break
        assert best is not None  # a profile has at least one choice
        warnings = (*fitting.list_profile_warnings(profile), *best.warnings)
        return replace(best, warnings=warnings)

    def count_capacity(
        self, project_id: str | None, uuid: str, hostname: str | None
    ) -> ProfileCapacity:
        """Return how many further servers with the profile fit on each host.

        Each server may have any of the alternatives. The choice is the most preferred
        one of which a server fits, or else the first one.

        :param project_id: the project of the caller; None: an admin
        :param hostname: the only host to count; None: all hosts
        :raises DeviceProfileNotFound: the caller sees no profile with the uuid
        :raises ServiceUnavailable: Placement or Glance does not answer
        """
        profile = find_profile(self._database, project_id, uuid)
        hosts = self._list_hosts(hostname)
        options = [list_options(profile, i) for i in range(len(profile.groups))]
        groups = [*chain.from_iterable(options)]
        candidates, providers = self._find(groups, traits=False)
        remaining = iter(candidates)
        by_group = [[next(remaining) for _ in members] for members in options]

        def count(members: Sequence[Sequence[GroupCandidates]]) -> ProfileCapacity:
            first = [group[0] for group in members]
            further = [group[1:] for group in members]
            foreign = tuple(fitting.list_foreign_providers(first, providers))
            capacity = count_capacity(first, providers, hosts, further)
            return replace(capacity, warnings=foreign)

        capacity = count(by_group)
        if profile.alternatives:
            counts = (
                (choice, count([[by_group[i][n]] for i, n in enumerate(choice)]))
                for choice in list_choices(profile)
            )
            first = next(counts)
            fits = (item for item in chain((first,), counts) if item[1].servers)
            choice, preferred = next(fits, first)
            warnings = preferred.warnings
            capacity = replace(capacity, choice=choice, warnings=warnings)
        warnings = (*fitting.list_profile_warnings(profile), *capacity.warnings)
        return replace(capacity, warnings=warnings)

    def list_device_types(self, project_id: str | None) -> tuple[DeviceType, ...]:
        """Return the types of devices that the profiles of a project name.

        :param project_id: the project of the caller; None: an admin, who also sees the
            types that no profile names
        :raises ServiceUnavailable: Glance does not answer
        """
        read, query = self._database.read, Query(filters={'enabled': ('true',)})
        named_groups = [
            (profile.name, group)
            for profile in read(profiles.list_profiles, query, project_id)
            for group in list_all_groups(profile)
        ]
        groups = [group for _, group in named_groups]
        _, capacities = self._find(groups, free=False, traits=False)
        types = read(provider_capacity.list_device_types)
        summary = summarize_types(types, capacities, named_groups)
        return tuple(
            item for item in summary if item.device_profiles or project_id is None
        )

    def check(self, profile: DeviceProfile) -> None:
        """Check that a provider could serve each group if it were free.

        A group is impossible if all of its alternatives are impossible, too.

        :raises ImpossibleDeviceProfile: no provider can ever serve one of the groups
        :raises ServiceUnavailable: Placement or Glance does not answer
        """
        options = [list_options(profile, i) for i in range(len(profile.groups))]
        providers = self._find([*chain.from_iterable(options)], free=False)
        reasons = {
            reason.group: reason.text
            for reason in fitting.list_impossible_groups(*providers)
        }
        impossible, number = [], 0  # of the first option of a group
        for index, group in enumerate(options):
            if all(i in reasons for i in range(number, number + len(group))):
                impossible.append(f'groups[{index}]: {reasons[number]}')
            number += len(group)
        if impossible:
            reason = ' '.join(impossible)
            raise ImpossibleDeviceProfile(name=profile.name, reason=reason)

    def _list_hosts(self, hostname: str | None) -> frozenset[str]:
        hosts = frozenset(self._database.read(device_owners.list_hosts))
        return hosts if hostname is None else hosts & {hostname}


def find_profile(database: Database, project: str | None, uuid: str) -> DeviceProfile:
    """Return the profile with a uuid.

    :param project: that must be able to see the profile; None: any
    :raises DeviceProfileNotFound: the project sees no such profile
    """
    query = Query(filters={'uuid': (uuid,)})
    for profile in database.read(profiles.list_profiles, query, project):
        return profile
    raise DeviceProfileNotFound(name=uuid)
