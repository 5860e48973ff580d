# SPDX-License-Identifier: Apache-2.0
"""Grammar of the groups of a device profile, with their alternatives.

The grammar of the keys in a group is in ``group_keys.py``.
"""

from collections.abc import Iterator, Mapping, Sequence

from cyborg_lite.model.profiles import group_keys, selector_keys
from cyborg_lite.model.profiles.alternatives import KEY, check_alternatives
from cyborg_lite.model.profiles.device_profiles import Group, Limits, refuse
from cyborg_lite.model.profiles.selector_keys import SAME

Groups = tuple[dict[str, str], ...]


def parse_groups(value: object, limits: Limits) -> tuple[Groups, tuple[Groups, ...]]:
    """Return the groups, and for each group its alternatives; empty: none for any.

    :raises InvalidDeviceProfile: the groups violate the grammar or a limit
    """
    if not isinstance(value, list) or not 1 <= len(value) <= limits.groups:
        refuse('groups', f'must be a list of 1 to {limits.groups} objects')
    options = [
        _options(f'groups[{index}]', group, limits) for index, group in enumerate(value)
    ]
    total = sum(max(map(_count_units, groups)) for groups in options)
    if total > limits.accelerators:
        limit = limits.accelerators
        refuse('groups', f'request {total} accelerators, at most {limit} are allowed')
    groups = tuple(first for first, *_ in options)
    further = tuple(tuple(alternatives) for _, *alternatives in options)
    if any(further):
        # A set becomes one group; its alternatives would be those of several groups.
        if any(SAME in group for groups in options for group in groups):
            refuse('a profile', f'cannot have both {SAME} and {KEY}')
    elif limits.attributes is not None:
        groups = merge_sets(groups)
        further = ((),) * len(groups)
    check_alternatives(groups, further, limits)
    return groups, further if any(further) else ()


def _count_units(group: Mapping[str, str]) -> int:
    return Group.parse(group).requirements.total


def _options(name: str, value: object, limits: Limits) -> Groups:
    has_language = limits.attributes is not None
    if not has_language or not isinstance(value, Mapping) or KEY not in value:
        return (parse_group(name, value, limits),)
    values = value[KEY]
    limit = limits.options - 1
    if not isinstance(values, list) or len(values) > limit:
        refuse(f'{name}.{KEY}', f'must be a list of at most {limit} objects')
    keys = {key: item for key, item in value.items() if key != KEY}
    titles = ((f'{name}.{KEY}[{index}]', group) for index, group in enumerate(values))
    return (
        parse_group(name, keys, limits),
        *(parse_group(title, group, limits) for title, group in titles),
    )


def parse_group(group_name: str, value: object, limits: Limits) -> dict[str, str]:
    """Return a validated group without alternatives.

    :param group_name: name of the group in error messages
    :raises InvalidDeviceProfile: a key or a value is invalid
    """
    if not isinstance(value, Mapping):
        refuse(group_name, 'must be an object')
    group: dict[str, str] = {}
    for key, item in value.items():
        entry = group_keys.parse_entry(group_name, key, item, limits)
        if entry is None:
            continue
        if entry[0] in group:
            refuse(group_name, f'has {entry[0]} twice')
        group[entry[0]] = entry[1]
    if not Group.parse(group).requirements.amounts:
        refuse(group_name, 'has no resources: key')
    if 'accel:bitstream_id' in group and 'accel:function_id' in group:
        refuse(group_name, 'has both accel:bitstream_id and accel:function_id')
    if limits.attributes is not None:
        return selector_keys.compile_group(
            group_name, group, limits.attributes, limits.tolerates
        )
    return group


# --- sets of groups whose units share a card, a fabric or a NUMA node ---
#
# The groups of a profile with the same value of ``accel:same`` are a set. A set becomes
# one group with the sum of the units, because Placement takes the units of a group from
# one provider. The trait of the group limits the providers to those whose units share
# what the set requires; see ``selector_keys.py``.
#
# Nothing else can express a set. Placement could relate several providers
# (``same_subtree``), but Nova sends such a relation for Neutron ports only.


GroupKeys = Mapping[str, str]


def merge_sets(groups: Sequence[GroupKeys]) -> tuple[dict[str, str], ...]:
    """Return the groups with one group for each set, at its first position.

    :param groups: compiled groups
    :raises InvalidDeviceProfile: no single provider can serve a set; the error has the
        reason
    """
    merged: list[dict[str, str]] = []
    positions: dict[str, int] = {}  # by value of `accel:same`
    for index, group in enumerate(groups):
        value = group.get(SAME)
        if value in positions:
            first = positions[value]
            merged[first] = _merge_groups(f'groups[{index}]', merged[first], group)
            continue
        if value is not None:
            _check_class(f'groups[{index}]', group)
            positions[value] = len(merged)
        merged.append(dict(group))
    return tuple(merged)


def _merge_groups(name: str, first: GroupKeys, second: GroupKeys) -> dict[str, str]:
    """Return one group for two groups of a set.

    :param name: name of the second group in error messages
    """
    _check_class(name, first, second)
    for fault in _list_faults(first, second):
        refuse(f'{name}:', f'{fault} in the other groups with the same {SAME}')
    units = {
        key: str(int(amount) + int(second[key]))
        for key, amount in first.items()
        if key.startswith('resources:')
    }
    return {**first, **second, **units}


def _check_class(name: str, *groups: GroupKeys) -> None:
    classes = {key for group in groups for key in group if key.startswith('resources:')}
    if len(classes) > 1:
        fault = (
            'must have one resource class; a resource provider has only one, and Nova '
            'cannot relate several providers'
        )
        refuse(f'{name}: the groups of {SAME}', fault)


def _list_faults(first: GroupKeys, second: GroupKeys) -> Iterator[str]:
    for key in sorted(first.keys() | second.keys()):
        values = first.get(key), second.get(key)
        if values[0] == values[1]:
            continue
        if key.startswith('accel:'):
            yield f'{key} must be equal'
        if key.startswith('trait:') and None not in values:
            yield f'{key} must not have another value'
