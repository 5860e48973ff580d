# SPDX-License-Identifier: Apache-2.0
"""Explanations of the hosts on which a device profile fits.

Placement is authoritative for free capacity. The database explains why capacity is
missing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.arqs.nova_support import NovaRules
from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.conductor.capacity.group_candidates import (
    CandidateFinder,
    Groups,
    has_guest_group,
)
from cyborg_lite.conductor.capacity.server_capacity import CapacityService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.profiles import DeviceProfileNotFound, ImpossibleDeviceProfile
from cyborg_lite.model.capacity import fitting
from cyborg_lite.model.capacity.explanations import Explanation, FitResult
from cyborg_lite.model.capacity.server_capacity import ProfileCapacity
from cyborg_lite.model.profiles.alternatives import Choice, apply_choice, list_choices
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from cyborg_lite.model.queries import Query

# From the best result to the worst one.
_RANKS: Final = {result: rank for rank, result in enumerate(FitResult)}


class ExplanationService:
    """Explains fits.

    An explanation sends at most two queries to Placement per distinct group, and one
    more if the cloud has mdevs.
    """

    def __init__(
        self,
        database: Database,
        placement: Placement,
        nova_rules: NovaRules | None = None,
        catalog: BitstreamCatalog | None = None,
    ) -> None:
        self._database = database
        self._finder = CandidateFinder(database, placement, nova_rules, catalog)
        self._capacities = CapacityService(database, self._finder)

    def explain(
        self, project_id: str | None, uuid: str, hostname: str | None
    ) -> Explanation:
        """Explain for each host whether the profile fits there now, and why not.

        :param project_id: the project of the caller; None: an admin
        :param hostname: the only host to explain; None: all hosts
        :raises DeviceProfileNotFound: the caller sees no profile with the uuid
        :raises ServiceUnavailable: Placement or Glance does not answer
        """
        profile = self._find_profile(project_id, uuid)
        hosts = frozenset(self._database.read(device_owners.list_hosts))
        if hostname is not None:
            hosts &= {hostname}
        explanation = self._explain_choices(profile, hosts)
        warnings = (*fitting.list_profile_warnings(profile), *explanation.warnings)
        return replace(explanation, warnings=warnings)

    def _explain_choices(
        self, profile: DeviceProfile, hosts: frozenset[str]
    ) -> Explanation:
        """Explain the most preferred choice of alternatives that fits best."""
        explanations = []
        for choice, groups in _list_group_choices(profile):
            explanation = self._explain_groups(groups, hosts)
            explanation = replace(explanation, choice=choice)
            if explanation.result is FitResult.FITS:
                return explanation
            explanations.append(explanation)
        return min(explanations, key=lambda item: _RANKS[item.result])

    def _explain_groups(self, groups: Groups, hosts: frozenset[str]) -> Explanation:
        regions = self._finder.read_regions(groups)
        candidates = self._finder.find(groups, regions)
        capacities = self._finder.list_capacities(
            groups, regions, close=has_guest_group(candidates)
        )
        return fitting.explain_fit(candidates, capacities, hosts)

    def count_capacity(
        self, project_id: str | None, uuid: str, hostname: str | None
    ) -> ProfileCapacity:
        """Return how many further servers with the profile fit on each host.

        :param project_id: the project of the caller; None: an admin
        :param hostname: the only host to count; None: all hosts
        :raises DeviceProfileNotFound: the caller sees no profile with the uuid
        :raises ServiceUnavailable: Placement or Glance does not answer
        """
        profile = self._find_profile(project_id, uuid)
        capacity = self._count_choices(profile, hostname)
        warnings = (*fitting.list_profile_warnings(profile), *capacity.warnings)
        return replace(capacity, warnings=warnings)

    def _count_choices(
        self, profile: DeviceProfile, hostname: str | None
    ) -> ProfileCapacity:
        """Count with the most preferred choice that fits, or else with the first."""
        capacities = []
        for choice, groups in _list_group_choices(profile):
            capacity = replace(self._capacities.count(groups, hostname), choice=choice)
            if capacity.servers:
                return capacity
            capacities.append(capacity)
        return capacities[0]

    def check(
        self, name: str, groups: Groups, alternatives: Sequence[Groups] = ()
    ) -> None:
        """Check that a provider could serve each group if it were free.

        A group is impossible if all of its alternatives are impossible, too.

        :param alternatives: of each group; empty: none
        :raises ImpossibleDeviceProfile: no provider can ever serve one of the groups
        :raises ServiceUnavailable: Placement or Glance does not answer
        """
        further = [group for choices in alternatives for group in choices]
        options = [*groups, *further]
        regions = self._finder.read_regions(options)
        candidates = self._finder.find(options, regions, free=False)
        capacities = self._finder.list_capacities(options, regions, close=False)
        reasons_by_option = {
            reason.group: reason
            for reason in fitting.list_impossible_groups(candidates, capacities)
        }
        impossible = [
            reasons_by_option[index]
            for index, numbers in enumerate(_number_options(groups, alternatives))
            if reasons_by_option.keys() >= set(numbers)
        ]
        if impossible:
            reasons = ' '.join(
                f'groups[{reason.group}]: {reason.text}' for reason in impossible
            )
            raise ImpossibleDeviceProfile(name=name, reason=reasons)

    def _find_profile(self, project_id: str | None, uuid: str) -> DeviceProfile:
        query = Query(filters={'uuid': (uuid,)})
        for profile in self._database.read(profiles.list_profiles, query, project_id):
            return profile
        raise DeviceProfileNotFound(name=uuid)


def _list_group_choices(profile: DeviceProfile) -> Iterator[tuple[Choice, Groups]]:
    """Yield the choices of alternatives with their groups, the most preferred first.

    The choice is empty if the profile has no alternatives.
    """
    for choice in list_choices(profile):
        groups = apply_choice(profile, choice).groups
        yield choice if profile.alternatives else (), groups


def _number_options(
    groups: Groups, alternatives: Sequence[Groups]
) -> Iterator[tuple[int, ...]]:
    """Yield for each group the indexes of its options in the list of all options."""
    number = len(groups)
    for index in range(len(groups)):
        count = len(alternatives[index]) if alternatives else 0
        yield index, *range(number, number + count)
        number += count
