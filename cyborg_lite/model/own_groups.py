# SPDX-License-Identifier: Apache-2.0
"""Groups of a device profile that extends another one, its parent.

The own group with index N changes the group N of the parent: its keys replace those of
the parent, and the value null removes a key. Further own groups are appended. The
result is stored as the groups of the profile, so that only a change of the profile or
of its parent needs the own groups. They are stored and sent as JSON.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cyborg_lite.exceptions import InvalidDeviceProfile
from cyborg_lite.model import group_keys, selector_keys
from cyborg_lite.model.alternatives import KEY
from cyborg_lite.model.device_profiles import DeviceProfile, Limits
from cyborg_lite.model.profile_groups import parse_group, parse_groups
from cyborg_lite.model.profile_renames import rename_key
from cyborg_lite.model.selectors import list_computed_traits

MAX_CHAIN: Final = 4
"""Most profiles of a chain in which each one extends the next one."""

_TRAIT: Final = 'trait:'
_MAX_ALTERNATIVES: Final = 8  # with the group itself
_UNLIMITED: Final = 1_000_000  # length of a value that has been accepted before

Keys = Mapping[str, str]  # of a group
# Any: a text, null, or the list of alternatives.
OwnGroup = Mapping[str, Any]
Groups = tuple[Keys, ...]


@dataclass(frozen=True, slots=True)
class FlatGroups:
    """The groups of a profile, and for each group its alternatives."""

    groups: Groups
    alternatives: tuple[Groups, ...]  # empty: no group has any


def parse_own_groups(value: object, limits: Limits) -> str:
    """Return validated own groups as JSON.

    :param limits: with the attributes that selectors may use
    :raises InvalidDeviceProfile: a key or a value is invalid
    """
    if not isinstance(value, list) or len(value) > limits.groups:
        raise InvalidDeviceProfile(
            reason=f'own_groups must be a list of at most {limits.groups} objects'
        )
    groups = [
        _parse_own_group(f'own_groups[{index}]', group, limits)
        for index, group in enumerate(value)
    ]
    return json.dumps(groups)


def _parse_own_group(name: str, value: object, limits: Limits) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidDeviceProfile(reason=f'{name} must be an object')
    group: dict[str, Any] = {}
    for key, item in value.items():
        if key == KEY:
            group[KEY] = _parse_alternatives(f'{name}.{KEY}', item, limits)
            continue
        if item is None:
            entry: tuple[str, Any] = group_keys.parse_removal(name, key), None
        else:
            # None: only for a null value of an `accel:` key.
            entry = group_keys.parse_entry(name, key, item, limits) or (key, None)
        if entry[0] in group:
            raise InvalidDeviceProfile(reason=f'{name} has {entry[0]} twice')
        group[entry[0]] = entry[1]
    return _check_selector(name, group, limits)


def _parse_alternatives(
    name: str, value: object, limits: Limits
) -> list[dict[str, str]] | None:
    """Return alternatives that replace those of the parent; None: remove them."""
    if value is None:
        return None
    limit = limits.alternatives - 1
    if not isinstance(value, list) or len(value) > limit:
        raise InvalidDeviceProfile(
            reason=f'{name} must be a list of at most {limit} objects, or null'
        )
    return [
        parse_group(f'{name}[{index}]', group, limits)
        for index, group in enumerate(value)
    ]


def _check_selector(name: str, group: OwnGroup, limits: Limits) -> dict[str, Any]:
    """Return a group with normalized quantities and without computed traits.

    :raises InvalidDeviceProfile: the selector or a quantity is invalid
    """
    texts = {key: item for key, item in group.items() if isinstance(item, str)}
    if limits.attributes is None:
        return dict(group)
    compiled = selector_keys.compile_group(name, texts, limits.attributes, sets=True)
    computed = list_computed_traits(compiled)
    return {
        key: compiled.get(key, item)
        for key, item in group.items()
        if key not in computed and key not in list_computed_traits(texts)
    }


def load_own_groups(text: str) -> list[dict[str, Any]]:
    """Return own groups from their JSON."""
    groups: list[dict[str, Any]] = json.loads(text)
    return groups


def flatten_groups(
    parent: DeviceProfile, own_groups: Sequence[OwnGroup], limits: Limits
) -> FlatGroups:
    """Return the groups of a profile that extends another one.

    Without own groups they are those of the parent, also if the parent has a form that
    later microversions refuse.

    :param limits: numbers of groups and accelerators
    :raises InvalidDeviceProfile: the groups are invalid together
    """
    if not any(own_groups):
        return FlatGroups(parent.groups, parent.alternatives)
    groups = overlay_groups(join_alternatives(parent), own_groups)
    return FlatGroups(*parse_groups(groups, _accept_names(limits, groups)))


def join_alternatives(profile: DeviceProfile) -> list[dict[str, Any]]:
    """Return the groups of a profile with the key of their alternatives."""
    if not profile.alternatives:
        return [dict(group) for group in profile.groups]
    pairs = zip(profile.groups, profile.alternatives, strict=True)
    return [
        {**group, KEY: [dict(alternative) for alternative in alternatives]}
        if alternatives
        else dict(group)
        for group, alternatives in pairs
    ]


def overlay_groups(
    parent_groups: Sequence[OwnGroup], own_groups: Sequence[OwnGroup]
) -> list[dict[str, Any]]:
    """Return the groups of the parent, changed and extended by own groups."""
    groups = [dict(group) for group in parent_groups]
    # Empty own groups at the end change nothing, also after the last one of the parent.
    length = max((index for index, own in enumerate(own_groups, 1) if own), default=0)
    groups += [{} for _ in own_groups[len(groups) : length]]
    for index, own in enumerate(own_groups[:length]):
        groups[index] = _overlay_group(groups[index], own)
    return groups


def _overlay_group(group: OwnGroup, own: OwnGroup) -> dict[str, Any]:
    if not own:
        return dict(group)
    # The trait of the selector is computed anew.
    replaced = {*map(rename_key, own), *list_computed_traits(group)}
    inherited = {
        key: value for key, value in group.items() if rename_key(key) not in replaced
    }
    added = {key: value for key, value in own.items() if value is not None}
    return {**inherited, **added}


def _accept_names(limits: Limits, groups: Sequence[OwnGroup]) -> Limits:
    """Return limits that accept each name and value that has been accepted before."""
    options = [*groups, *(option for group in groups for option in group.get(KEY, ()))]
    return replace(
        limits,
        value=_UNLIMITED,
        standard_traits=frozenset(
            key.removeprefix(_TRAIT)
            for option in options
            for key in option
            if key.startswith(_TRAIT)
        ),
        attributes=(),
        attributes_checked=True,
        sets=True,
        accel_keys=frozenset(),
        alternatives=_MAX_ALTERNATIVES,
    )


def rename_own_groups(own_groups: Sequence[OwnGroup]) -> list[dict[str, Any]]:
    """Return own groups with the present names of keys, classes and traits."""
    return [_rename_keys(group) for group in own_groups]


def _rename_keys(group: OwnGroup) -> dict[str, Any]:
    return {
        rename_key(key): [_rename_keys(item) for item in value]
        if isinstance(value, list)
        else value
        for key, value in group.items()
    }
