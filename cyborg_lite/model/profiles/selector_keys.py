# SPDX-License-Identifier: Apache-2.0
"""Keys of a group that select deployables by typed attributes, and their trait.

    accel:selector    an expression, see ``selector_grammar.py``
    accel:video_ram   the least memory of one unit, such as ``2GB``
    accel:memory      the same
    accel:link_speed  the least rate of one lane, such as ``16GT/s``

    accel:same        what all units share, see ``groups.py``

    accel:tolerates   ``degraded``, or ``none``: the group gets the trait of degraded
                      devices as forbidden

    accel:bitstream_id, accel:bitstream_name, accel:function_id, accel:function_name
                      the bitstream that a bind loads. The conductor compares the
                      image with each deployable.

All of them together have one trait. The group contains the trait as required, so that
Nova asks Placement for it. A group without this trait has no selector: clients of
earlier microversions could use the same keys with any value.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from cyborg_lite.errors.profiles import InvalidDeviceProfile, InvalidSelector
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.typed_attributes import (
    AttributeDeclaration,
    list_units,
)
from cyborg_lite.model.profiles.device_profiles import (
    BITSTREAM_KEYS,
    TOLERATED,
    refuse,
)
from cyborg_lite.model.profiles.selector_grammar import check_selector, parse_selector
from cyborg_lite.model.profiles.selectors import (
    KEY,
    TRAIT_PREFIX,
    Selector,
    list_computed_traits,
)
from cyborg_lite.model.text import format_value
from cyborg_lite.model.traits import DEGRADED

Declarations = Iterable[AttributeDeclaration]

_QUANTITIES: Final[Mapping[str, AttributeDeclaration]] = {
    'accel:link_speed': typed_attributes.LINK_SPEED,
    'accel:memory': typed_attributes.MEMORY,
    'accel:video_ram': typed_attributes.MEMORY,
}
SAME: Final = 'accel:same'
TOLERATES: Final = 'accel:tolerates'
_TAINT: Final = f'trait:{DEGRADED}'
_SETS: Final[Mapping[str, AttributeDeclaration]] = {
    'card': typed_attributes.SAME_CARD,
    'fabric': typed_attributes.SAME_FABRIC,
    'numa_node': typed_attributes.SAME_NUMA_NODE,
}
_QUANTITY: Final = re.compile(r'\s*([0-9]{1,18})\s*([A-Za-z/]+)\s*')

SELECTING_KEYS: Final = frozenset({KEY, *_QUANTITIES})
"""Keys from which the trait of a group is computed."""


def compile_group(
    group_name: str,
    group: Mapping[str, str],
    declarations: Declarations,
    tolerates: str = TOLERATED[0],
) -> dict[str, str]:
    """Return the group with the trait of its selector, if it has one.

    A trait that an earlier response has shown is replaced.

    :param group_name: name of the group in error messages
    :param declarations: the attributes that selectors may use
    :param tolerates: what a group without ``accel:tolerates`` accepts
    :raises InvalidDeviceProfile: the selector or a quantity is invalid, or the group
        has a trait of a selector without the selector
    """
    group = _compile_tolerance(group, tolerates)
    computed = list_computed_traits(group)
    keys = {key: value for key, value in group.items() if key not in computed}
    for key in _QUANTITIES.keys() & keys.keys():
        keys[key] = _normalize_quantity(group_name, key, keys[key])
    if keys.get(SAME, 'card') not in _SETS:
        names = ', '.join(_SETS)
        refuse(f'{group_name}: {SAME}', f'must be one of {names}')
    text = join_selectors(keys)
    if text is None:
        if computed:
            reserved = f'names with {TRAIT_PREFIX} are reserved'
            fault = f'is computed from a selector; {reserved}'
            refuse(f'{group_name}: {computed[0]}', fault)
        return keys
    try:
        if KEY in keys:
            # Positions in errors are those of the text of the client.
            check_selector(parse_selector(keys[KEY]), declarations)
        selector = parse_selector(text)
    except InvalidSelector as error:
        reason = f'{group_name}: {KEY}: {error.text}'
        raise InvalidDeviceProfile(reason=reason.rstrip('.')) from None
    return {**keys, f'trait:{selector.trait}': 'required'}


def _compile_tolerance(group: Mapping[str, str], default: str) -> Mapping[str, str]:
    """Return the group with the trait of degraded devices, if it refuses them."""
    if TOLERATES in group:
        group = {key: item for key, item in group.items() if key != _TAINT}
    if group.get(TOLERATES, default) == TOLERATED[0]:
        return group
    return {**group, _TAINT: 'forbidden'}


def join_selectors(group: Mapping[str, str]) -> str | None:
    """Return the selector, the quantities, the set, the bitstream as text, or None."""
    conditions = [
        f'device.{declaration.name} >= {group[key]}'
        for key, declaration in sorted(_QUANTITIES.items())
        if key in group
    ]
    if group.get(SAME) in _SETS:
        conditions.append(f'device.{_SETS[group[SAME]].name} == true')
    if name := name_bitstream_attribute(group):
        conditions.append(f'device.{name} == true')
    if KEY in group:
        conditions.insert(0, f'({group[KEY]})' if conditions else group[KEY])
    return ' and '.join(conditions) if conditions else None


def name_bitstream_attribute(group: Mapping[str, str]) -> str | None:
    """Return the attribute of the deployables that can load the bitstream of a group.

    No driver reports it: the conductor sets it. None: the group needs no bitstream.
    """
    keys = sorted(BITSTREAM_KEYS & group.keys())
    text = '\n'.join(f'{key} {group[key]}' for key in keys)
    return f'loads_{hashlib.sha256(text.encode()).hexdigest()[:24]}' if keys else None


def find_selector(group: Mapping[str, str]) -> Selector | None:
    """Return the selector of a stored group.

    :returns: None: the group has no trait of a selector, or another one than this
        release computes
    """
    if not list_computed_traits(group):
        return None
    # Clients of earlier microversions could use `accel:same` with any value, and the
    # image of an instance adds a bitstream to the group of an ARQ.
    for ignored in (set(), {SAME}, BITSTREAM_KEYS, {SAME, *BITSTREAM_KEYS}):
        keys = {key: group[key] for key in group if key not in ignored}
        if selector := _find_compiled(group, keys):
            return selector
    return None


def _find_compiled(
    group: Mapping[str, str], keys: Mapping[str, str]
) -> Selector | None:
    text = join_selectors(keys)
    if text is None:
        return None
    try:
        selector = parse_selector(text)
    except InvalidSelector:
        return None
    return selector if f'trait:{selector.trait}' in group else None


def _normalize_quantity(group_name: str, key: str, text: str) -> str:
    """Return a number and a unit without spaces."""
    declaration = _QUANTITIES[key]
    match = _QUANTITY.fullmatch(text)
    units = list_units(declaration.unit)
    if match is None or match[2] not in units:
        fault = f'must be a whole number with one of the units {", ".join(units)}'
        refuse(f'{group_name}: {key} {format_value(text)}', fault)
    return f'{int(match[1])}{match[2]}'
