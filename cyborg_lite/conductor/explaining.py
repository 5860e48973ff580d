# SPDX-License-Identifier: Apache-2.0
"""Why a device profile fits or does not, asked of Placement and of our own books."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from cyborg_lite.db import device_profiles, supplies
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import DeviceProfileNotFound, ImpossibleDeviceProfile
from cyborg_lite.model import fitting
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.explanations import Asked, Demand, Explanation, Reason, Why
from cyborg_lite.model.queries import Query

Groups = Sequence[Mapping[str, str]]  # of a device profile


class Candidates(Protocol):
    """Placement, as far as an explanation needs it."""

    def candidates(
        self,
        amounts: Mapping[str, int],
        required: Collection[str],
        forbidden: Collection[str],
    ) -> Mapping[str, Mapping[str, int]]: ...

    def marked(
        self, required: Collection[str], forbidden: Collection[str]
    ) -> frozenset[str]: ...


class Explaining:
    """Changes nothing. Placement is asked twice at most for each different group."""

    def __init__(self, database: Database, placement: Candidates) -> None:
        self._database = database
        self._placement = placement

    def explain(
        self, viewer: str | None, uuid: str, hostname: str | None
    ) -> Explanation:
        """:param hostname: the only host to tell of; None: all
        :raises DeviceProfileNotFound: there is none that the viewer sees
        :raises ServiceUnavailable: Placement does not answer
        """
        profile = self._profile(viewer, uuid)
        demands = [Demand.of(group) for group in profile.groups]
        asked = {one: self._asked(one, offers=True) for one in set(demands)}
        stock = self._database.read(supplies.supplies)
        hosts = self._database.read(supplies.hosts)
        if hostname is not None:
            hosts &= {hostname}
        found = fitting.explain([asked[one] for one in demands], stock, hosts)
        if profile.enabled:
            return found
        text = 'The profile is disabled: no new server can be made of it.'
        warnings = (Reason(Why.DISABLED, text), *found.warnings)
        return replace(found, warnings=warnings)

    def check(self, name: str, groups: Groups) -> None:
        """:raises ImpossibleDeviceProfile: no provider could ever serve one of them
        :raises ServiceUnavailable: Placement does not answer
        """
        demands = [Demand.of(group) for group in groups]
        asked = {one: self._asked(one, offers=False) for one in set(demands)}
        stock = self._database.read(supplies.supplies)
        never = fitting.impossible([asked[one] for one in demands], stock)
        if never:
            reasons = ' '.join(f'groups[{one.group}]: {one.text}' for one in never)
            raise ImpossibleDeviceProfile(name=name, reason=reasons)

    def _profile(self, viewer: str | None, uuid: str) -> DeviceProfile:
        query = Query(filters={'uuid': (uuid,)})
        for profile in self._database.read(device_profiles.listed, query, viewer):
            return profile
        raise DeviceProfileNotFound(name=uuid)

    def _asked(self, demand: Demand, *, offers: bool) -> Asked:
        traits = demand.required, demand.forbidden
        placement = self._placement
        return Asked(
            demand,
            placement.candidates(dict(demand.amounts), *traits) if offers else {},
            placement.marked(*traits) if any(traits) else frozenset(),
        )
