# SPDX-License-Identifier: Apache-2.0
"""Matching of attach handles after a card was moved to another slot.

Keys of attach handles are addresses, which change with the slot. The distance between a
function and the control address of the card stays the same: PCI Express Base
Specification, SR-IOV, First VF Offset and VF Stride.
"""

import re
from collections.abc import Collection, Hashable, Mapping
from typing import Final

_ADDRESS: Final = re.compile(
    r'([0-9a-f]+):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])(.*)', re.IGNORECASE
)


def find_former_keys(
    old: Mapping[str, bool], old_address: str, new: Collection[str], new_address: str
) -> dict[str, str]:
    """Return the former key of each attach handle that has a new key.

    Handles are matched by their distance first. The rest are matched by their order,
    except for handles that were missing before the move.

    :param old: True for each handle that was missing, by key
    :param old_address: control address before the move
    """
    added = [key for key in new if key not in old]
    removed = [key for key in old if key not in new]
    by_distance = {_distance(key, old_address): key for key in removed}
    distances = {key: _distance(key, new_address) for key in added}
    matches = {
        key: by_distance[distance]
        for key, distance in distances.items()
        if distance in by_distance
    }
    matched = set(matches.values())
    old_rest = [key for key in removed if key not in matched and not old[key]]
    new_rest = [key for key in added if key not in matches]
    pairs = zip(
        sorted(new_rest, key=_sort_key), sorted(old_rest, key=_sort_key), strict=False
    )
    return matches | dict(pairs)


def is_same_function(old: str, old_address: str, new: str, new_address: str) -> bool:
    """Check whether two keys name the same function of a card that was moved.

    :param old_address: control address before the move
    """
    return _distance(old, old_address) == _distance(new, new_address)


def _distance(key: str, address: str) -> Hashable:
    """Return the distance of a handle from the control address of its card."""
    function, control = _ADDRESS.fullmatch(key), _ADDRESS.fullmatch(address)
    if function is None or control is None:
        return key
    return _routing_id(function) - _routing_id(control), function[5]


def _routing_id(address: re.Match[str]) -> int:
    """Return the routing id, which counts the functions of a PCI domain."""
    _, bus, slot, function, _ = address.groups()
    return (int(bus, 16) << 8) + (int(slot, 16) << 3) + int(function)


def _sort_key(key: str) -> tuple[str, int, str]:
    """Return the sort key: addresses have a fixed width, numbers after them do not."""
    address, _, number = key.partition('/')
    return address, int(number) if number.isdecimal() else 0, number
