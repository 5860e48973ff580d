# SPDX-License-Identifier: Apache-2.0
"""Matching of reported devices to stored devices.

A device is matched by its serial number first, then by slot and model. Some cards have
no serial number, and some drivers expose it only while they are bound. Another model in
the same slot is another device.
"""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Final

from cyborg_lite.model.inventory.facts import product_key
from cyborg_lite.model.inventory.host_report import Device

_MAX_LENGTH: Final = 128


def match_devices(
    stored: Mapping[str, Device], devices: Sequence[Device]
) -> dict[str, tuple[Device, str]]:
    """Match reported devices to stored devices.

    :param stored: devices in the database, by identity
    :returns: by identity each device and the hardware id to store: a serial number that
        is known already is kept
    """
    matches: dict[str, tuple[Device, str]] = {}
    unmatched: list[tuple[Device, str | None]] = []
    for device, serial in _with_serials(devices):
        identity = serial or slot_identity(device)
        if identity in stored:
            matches[identity] = (device, identity)
        else:
            unmatched.append((device, serial))
    for device, serial in unmatched:
        former = _find_in_slot(stored, matches, device, serial)
        identity = serial or former or slot_identity(device)
        matches[former or identity] = (device, identity)
    return matches


def map_serials(devices: Sequence[Device]) -> dict[str, Device]:
    """Return the devices by serial number, without those that have no unique one."""
    return {serial: device for device, serial in _with_serials(devices) if serial}


def _with_serials(devices: Sequence[Device]) -> Iterator[tuple[Device, str | None]]:
    """Yield each device with its serial number; None if it is missing or ambiguous."""
    counts = Counter(device.hardware_id for device in devices)
    for device in devices:
        serial = device.hardware_id
        is_unique = serial not in ('', device.control_address) and counts[serial] == 1
        yield device, serial if is_unique else None


def slot_identity(device: Device) -> str:
    """Return the identity of a device without a serial number: slot and product."""
    return f'{device.control_address} {product_key(device)}'[:_MAX_LENGTH]


def _find_in_slot(
    stored: Mapping[str, Device],
    matches: Mapping[str, object],
    device: Device,
    serial: str | None,
) -> str | None:
    """Return the stored device in the same slot, if it may be the same device."""
    for identity, facts in stored.items():
        both_have_serials = serial is not None and identity != slot_identity(facts)
        is_alike = facts.control_address == device.control_address and (
            product_key(facts) == product_key(device)
        )
        if is_alike and identity not in matches and not both_have_serials:
            return identity
    return None


# --- attach handles after a card was moved to another slot ---
#
# Keys of attach handles are addresses, which change with the slot. The distance between
# a function and the control address of the card stays the same: PCI Express Base
# Specification, SR-IOV, First VF Offset and VF Stride.


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
