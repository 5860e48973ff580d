# SPDX-License-Identifier: Apache-2.0
"""Gives stored handles the new addresses of cards that were put into another slot.

The conductor moves its rows in the same way, see ``model/inventory/diff.py``. Cards
without a serial number cannot be recognized in another slot.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from oslo_log import log

from cyborg_lite.agent.state.cache import Cache, PreparedHandle
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import Device, Health
from cyborg_lite.model.inventory.identities import is_same_function, map_serials

LOG = log.getLogger(__name__)


def follow_devices(
    cache: Cache, devices: Collection[Device]
) -> tuple[AllocatedHandle, ...]:
    """Store the serial number of each card with handles, and move its handles.

    :param devices: of the last scan
    :returns: the moved handles
    """
    present = [device for device in devices if device.health is not Health.GONE]
    by_serial = map_serials(present)
    at_address = {device.control_address: s for s, device in by_serial.items()}
    moved: list[AllocatedHandle] = []

    def convert(entry: PreparedHandle) -> PreparedHandle:
        converted = _follow(entry, by_serial, at_address)
        if converted.handle is not entry.handle:
            moved.append(converted.handle)
        return converted

    cache.convert_handles(convert)
    for handle in moved:
        LOG.warning(
            'The card of handle %s of ARQ %s was moved to %s',
            handle.uuid,
            handle.arq_uuid,
            handle.control_address,
        )
    return tuple(moved)


def _follow(
    entry: PreparedHandle,
    by_serial: Mapping[str, Device],
    at_address: Mapping[str, str],
) -> PreparedHandle:
    """Return the entry, or a changed one.

    :param at_address: serial numbers by control address
    """
    serial = at_address.get(entry.handle.control_address)
    if not entry.serial:
        return replace(entry, serial=serial) if serial else entry
    device = by_serial.get(entry.serial)
    if device is None or serial == entry.serial:
        return entry
    handle = _move(entry.handle, device)
    return entry if handle is None else replace(entry, handle=handle)


def _move(handle: AllocatedHandle, device: Device) -> AllocatedHandle | None:
    """Return the handle on the moved card, or None if the card lacks it."""
    address = device.control_address
    for deployable in device.root.walk():
        for unit in deployable.handles:
            if is_same_function(handle.key, handle.control_address, unit.key, address):
                load = handle.load and replace(handle.load, address=address)
                return replace(
                    handle,
                    control_address=address,
                    key=unit.key,
                    info=unit.info,
                    load=load,
                )
    return None
