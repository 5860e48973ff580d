# SPDX-License-Identifier: Apache-2.0
"""Matching of reported devices to stored devices.

A device is matched by its serial number first, then by slot and model. Some cards have
no serial number, and some drivers expose it only while they are bound. Another model in
the same slot is another device.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
