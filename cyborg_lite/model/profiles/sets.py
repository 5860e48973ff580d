# SPDX-License-Identifier: Apache-2.0
"""Sets of groups whose units share a card, a fabric or a NUMA node.

The groups of a profile with the same value of ``accel:same`` are a set. A set becomes
one group with the sum of the units, because Placement takes the units of a group from
one provider. The trait of the group limits the providers to those whose units share
what the set requires; see ``selector_keys.py``.

Nothing else can express a set. Placement could relate several providers
(``same_subtree``), but Nova sends such a relation for Neutron ports only.
"""

from collections.abc import Iterator, Mapping, Sequence

from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model.profiles.selector_keys import SAME

Group = Mapping[str, str]


def merge_sets(groups: Sequence[Group]) -> tuple[dict[str, str], ...]:
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
            merged[first] = _merge(f'groups[{index}]', merged[first], group)
            continue
        if value is not None:
            _check_class(f'groups[{index}]', group)
            positions[value] = len(merged)
        merged.append(dict(group))
    return tuple(merged)


def _merge(name: str, first: Group, second: Group) -> dict[str, str]:
    """Return one group for two groups of a set.

    :param name: name of the second group in error messages
    """
    _check_class(name, first, second)
    for fault in _list_faults(first, second):
        reason = f'{name}: {fault} in the other groups with the same {SAME}'
        raise InvalidDeviceProfile(reason=reason)
    units = {
        key: str(int(amount) + int(second[key]))
        for key, amount in first.items()
        if key.startswith('resources:')
    }
    return {**first, **second, **units}


def _check_class(name: str, *groups: Group) -> None:
    classes = {key for group in groups for key in group if key.startswith('resources:')}
    if len(classes) > 1:
        reason = (
            f'{name}: the groups of {SAME} must have one resource class; a resource '
            f'provider has only one, and Nova cannot relate several providers'
        )
        raise InvalidDeviceProfile(reason=reason)


def _list_faults(first: Group, second: Group) -> Iterator[str]:
    """Yield why one provider cannot serve both groups."""
    for key in sorted(first.keys() | second.keys()):
        values = first.get(key), second.get(key)
        if values[0] == values[1]:
            continue
        if key.startswith('accel:'):
            yield f'{key} must be equal'
        if key.startswith('trait:') and None not in values:
            yield f'{key} must not have another value'
