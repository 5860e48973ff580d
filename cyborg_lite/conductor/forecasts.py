# SPDX-License-Identifier: Apache-2.0
"""Forecasts of the capacity of device profiles after a change of hardware.

A forecast reads the database and Placement, and writes neither. The agent of a host is
the only one to know what a device offers in another mode, so it is called.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from cyborg_lite.conductor.assumed_changes import (
    AssumedChange,
    add_devices,
    change_mode,
    remove_device,
)
from cyborg_lite.conductor.device_profiles import viewing_project
from cyborg_lite.conductor.group_candidates import CandidateFinder
from cyborg_lite.db import device_owners, present_hardware
from cyborg_lite.db.device_profiles import profiles
from cyborg_lite.db.engine import Database
from cyborg_lite.db.selectors import list_selectors
from cyborg_lite.exceptions import DeviceNotFound, DeviceProfileNotFound, InvalidInput
from cyborg_lite.model.alternatives import list_all_groups
from cyborg_lite.model.device_profiles import DeviceProfile, Group
from cyborg_lite.model.explanations import GroupCandidates, ProviderCapacity
from cyborg_lite.model.forecasting import (
    AssumedHardware,
    AssumedProvider,
    Cloud,
    forecast_profile,
)
from cyborg_lite.model.forecasts import Forecast, ForecastRequest, HardwareChange
from cyborg_lite.model.modes import DevicePlan
from cyborg_lite.model.queries import Query
from cyborg_lite.model.selectors import list_computed_traits
from cyborg_lite.model.services import ServiceState
from cyborg_lite.rpc.context import RequestContext

_MAX_GROUPS: Final = 200  # distinct ones; each costs a request to Placement
_MAX_PROFILES: Final = 100

PlansModes = Callable[[RequestContext, str], DevicePlan]
Keys = Mapping[str, str]  # of a group
_Frozen = tuple[tuple[str, str], ...]  # the items of a group, sorted


class ForecastService:
    """Counts servers before and after changes of hardware.

    It sends one query to Placement per distinct group, one more if there are mdevs, and
    one call to the agent of each device that gets another mode.
    """

    def __init__(
        self, database: Database, finder: CandidateFinder, plan_modes: PlansModes
    ) -> None:
        """Store the arguments.

        :param plan_modes: returns what a change of a device to each mode would do
        """
        self._database = database
        self._finder = finder
        self._plan_modes = plan_modes

    def forecast(self, context: RequestContext, request: ForecastRequest) -> Forecast:
        """Return the effect of changes on device profiles.

        :raises DeviceNotFound: no device has the uuid of a change
        :raises DeviceProfileNotFound: the caller sees no profile with a uuid
        :raises InvalidInput: the request has too many profiles or groups
        :raises ModeRefused: a device has no such mode, or its inventory is changing
        :raises CyborgError: the agent or Placement does not answer
        """
        counted = self._list_profiles(context, request)
        if request.new_profile is not None:
            counted.append(replace(request.new_profile, uuid='', name=''))
        groups = _list_groups(counted)
        stored = self._finder.list_capacities(groups, close=False)
        changes = self._assume_changes(context, request.changes, stored)
        added = [provider for change in changes for provider in change.added]
        present, new = self._close(stored, added)
        candidates = self._find_candidates(groups, present)
        hosts = frozenset(self._database.read(device_owners.list_hosts))
        cloud = Cloud(present, hosts, lambda keys: candidates[_freeze(keys)])
        hardware = AssumedHardware(
            frozenset(uuid for change in changes for uuid in change.removed),
            new,
            frozenset(change.effect.hostname for change in changes),
        )
        return Forecast(
            tuple(change.effect for change in changes),
            tuple(forecast_profile(profile, cloud, hardware) for profile in counted),
        )

    # --- profiles and their candidates ---

    def _list_profiles(
        self, context: RequestContext, request: ForecastRequest
    ) -> list[DeviceProfile]:
        uuids, viewer = request.profiles, viewing_project(context)
        filters = {} if uuids is None else {'uuid': uuids}
        query = Query(filters=filters, limit=_MAX_PROFILES + 1)
        counted = list(self._database.read(profiles.list_profiles, query, viewer))
        if uuids is not None and len(counted) < len(set(uuids)):
            missing = sorted(set(uuids) - {profile.uuid for profile in counted})
            raise DeviceProfileNotFound(name=missing[0])
        if len(counted) > _MAX_PROFILES:
            reason = (
                f'There are more than {_MAX_PROFILES} device profiles. Name at most '
                f'{_MAX_PROFILES} of them in profiles.'
            )
            raise InvalidInput(reason=reason)
        return counted

    def _find_candidates(
        self, groups: Sequence[Keys], present: Sequence[ProviderCapacity]
    ) -> dict[_Frozen, GroupCandidates]:
        """Return the candidates of groups, by their keys.

        Placement may not have the trait of a selector that no profile has yet. So the
        candidates of such a group are selected here.
        """
        stored = {selector.trait for selector in self._database.read(list_selectors)}
        queried = [_remove_traits(keys, stored) for keys in groups]
        queried_groups = self._finder.find(queried, traits=False)
        matching = self._list_matching(present)
        return {
            _freeze(keys): _select_offers(keys, group, matching)
            for keys, group in zip(groups, queried_groups, strict=True)
        }

    def _list_matching(
        self, present: Sequence[ProviderCapacity]
    ) -> dict[str, frozenset[str]]:
        """Return the traits of providers whose agent is up, by uuid."""
        hosts = {provider.hostname for provider in present}
        states = self._database.read(present_hardware.list_agent_states, hosts)
        return {
            provider.rp_uuid: provider.traits
            for provider in present
            if states.get(provider.hostname) == ServiceState.UP
        }

    # --- changes ---

    def _assume_changes(
        self,
        context: RequestContext,
        changes: Sequence[HardwareChange],
        present: Sequence[ProviderCapacity],
    ) -> list[AssumedChange]:
        hosts = self._database.read(device_owners.list_hosts)
        uuids = {change.device_uuid for change in changes if change.device_uuid}
        devices = self._database.read(present_hardware.list_present_devices, uuids)
        missing = sorted(uuids - devices.keys())
        if missing:
            raise DeviceNotFound(uuid=missing[0])
        names = {change.device.hostname for change in changes if change.device}
        states = self._database.read(present_hardware.list_agent_states, names)
        by_uuid = {capacity.rp_uuid: capacity for capacity in present}
        results = []
        for number, change in enumerate(changes):
            if change.device is not None:
                result = add_devices(number, change.device, hosts, states)
            elif change.mode:
                device = devices[change.device_uuid]
                plan = self._plan_modes(context, device.uuid)
                result = change_mode(device, plan, change.mode, by_uuid)
            else:
                result = remove_device(devices[change.device_uuid])
            results.append(result)
        return results

    def _close(
        self, present: Sequence[ProviderCapacity], added: Sequence[AssumedProvider]
    ) -> tuple[tuple[ProviderCapacity, ...], tuple[AssumedProvider, ...]]:
        """Close the providers for guests whose handles Nova cannot attach."""
        new = [provider.capacity for provider in added]
        closed = self._finder.close_capacities((*present, *new))
        pairs = zip(added, closed[len(present) :], strict=True)
        return closed[: len(present)], tuple(
            replace(provider, capacity=capacity) for provider, capacity in pairs
        )


# --- groups ---


def _list_groups(counted: Sequence[DeviceProfile]) -> list[Keys]:
    """Return the different groups of profiles, with their alternatives.

    :raises InvalidInput: they are too many
    """
    groups = {
        _freeze(keys): keys for profile in counted for keys in list_all_groups(profile)
    }
    if len(groups) > _MAX_GROUPS:
        reason = (
            f'The device profiles have {len(groups)} different groups, at most '
            f'{_MAX_GROUPS} are allowed. Name fewer of them in profiles.'
        )
        raise InvalidInput(reason=reason)
    return list(groups.values())


def _freeze(keys: Keys) -> _Frozen:
    return tuple(sorted(keys.items()))


def _remove_traits(keys: Keys, stored: Collection[str]) -> Keys:
    """Return a group without the traits of selectors that no profile has."""
    new = {key for key in list_computed_traits(keys) if _name(key) not in stored}
    return {key: value for key, value in keys.items() if key not in new}


def _name(key: str) -> str:
    return key.removeprefix('trait:')


def _select_offers(
    keys: Keys, group: GroupCandidates, matching: Mapping[str, frozenset[str]]
) -> GroupCandidates:
    """Return the candidates of a group with the offers that match its selector.

    :param group: candidates, for which Placement may have ignored the selector
    :param matching: traits by uuid of the provider
    """
    requirements = Group.parse(keys).requirements
    missing = requirements.required - group.requirements.required
    offers = {
        uuid: amounts
        for uuid, amounts in group.offers.items()
        if not missing or missing <= matching.get(uuid, frozenset())
    }
    return replace(group, requirements=requirements, offers=offers)
