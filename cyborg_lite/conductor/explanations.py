# SPDX-License-Identifier: Apache-2.0
"""Explanations of the hosts on which a device profile fits.

Placement is authoritative for free capacity. The database explains why capacity is
missing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from cyborg_lite.conductor.nova_support import (
    FindsNamesWithTrait,
    NovaRules,
    NovaSupport,
)
from cyborg_lite.db import device_owners, provider_capacity
from cyborg_lite.db.device_profiles import profiles
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import DeviceProfileNotFound, ImpossibleDeviceProfile
from cyborg_lite.model import fitting
from cyborg_lite.model.device_profiles import (
    AttachTarget,
    DeviceProfile,
    Group,
    GroupRequirements,
)
from cyborg_lite.model.explanations import (
    Explanation,
    GroupCandidates,
    Reason,
    ReasonCode,
)
from cyborg_lite.model.queries import Query

Groups = Sequence[Mapping[str, str]]  # of a device profile


class FindsProviders(FindsNamesWithTrait, Protocol):
    """The part of the Placement client that an explanation needs."""

    def list_candidates(
        self,
        amounts: Mapping[str, int],
        required: Collection[str],
        forbidden: Collection[str],
    ) -> Mapping[str, Mapping[str, int]]:
        """Return the free amounts of each provider that satisfies the query now."""
        ...

    def list_providers_with_traits(
        self, required: Collection[str], forbidden: Collection[str]
    ) -> frozenset[str]:
        """Return the providers with the traits, whatever their free capacity."""
        ...


class ExplanationService:
    """Explains fits.

    It sends at most two queries to Placement per distinct group, and one more if the
    cloud has mdevs.
    """

    def __init__(
        self,
        database: Database,
        placement: FindsProviders,
        nova_rules: NovaRules | None = None,
    ) -> None:
        self._database = database
        self._placement = placement
        self._nova = NovaSupport(placement, nova_rules or NovaRules())

    def explain(
        self, project_id: str | None, uuid: str, hostname: str | None
    ) -> Explanation:
        """Explain for each host whether the profile fits there now, and why not.

        :param project_id: the project of the caller; None: an admin
        :param hostname: the only host to explain; None: all hosts
        :raises DeviceProfileNotFound: the caller sees no profile with the uuid
        :raises ServiceUnavailable: Placement does not answer
        """
        profile = self._find_profile(project_id, uuid)
        candidates = self._find_candidates(profile.groups, only_traits=False)
        capacities = self._database.read(provider_capacity.list_provider_capacities)
        if any(candidate.for_guest for candidate in candidates):
            capacities = self._nova.close_capacities(capacities)
        hosts = frozenset(self._database.read(device_owners.list_hosts))
        if hostname is not None:
            hosts &= {hostname}
        explanation = fitting.explain_fit(candidates, capacities, hosts)
        if profile.enabled:
            return explanation
        text = 'The profile is disabled. New instances cannot use it.'
        warnings = (Reason(ReasonCode.DISABLED, text), *explanation.warnings)
        return replace(explanation, warnings=warnings)

    def check(self, name: str, groups: Groups) -> None:
        """Check that a provider could serve each group if it were free.

        :raises ImpossibleDeviceProfile: no provider can ever serve one of the groups
        :raises ServiceUnavailable: Placement does not answer
        """
        candidates = self._find_candidates(groups, only_traits=True)
        capacities = self._database.read(provider_capacity.list_provider_capacities)
        impossible = fitting.list_impossible_groups(candidates, capacities)
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

    def _find_candidates(
        self, groups: Groups, *, only_traits: bool
    ) -> list[GroupCandidates]:
        """Return the candidates of each group. Equal groups are queried once.

        :param only_traits: True: do not query the providers with free capacity
        """
        parsed = [Group.parse(group) for group in groups]
        candidates = {
            requirements: self._query_placement(requirements, only_traits=only_traits)
            for requirements in {group.requirements for group in parsed}
        }
        return [
            replace(
                candidates[group.requirements],
                for_guest=group.attach_target is AttachTarget.VM,
            )
            for group in parsed
        ]

    def _query_placement(
        self, group: GroupRequirements, *, only_traits: bool
    ) -> GroupCandidates:
        traits = group.required, group.forbidden
        free: Mapping[str, Mapping[str, int]] = {}
        if not only_traits:
            free = self._placement.list_candidates(dict(group.amounts), *traits)
        with_traits: frozenset[str] = frozenset()
        if any(traits):
            with_traits = self._placement.list_providers_with_traits(*traits)
        return GroupCandidates(group, free, with_traits)
