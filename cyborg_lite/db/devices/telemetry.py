# SPDX-License-Identifier: Apache-2.0
"""Telemetry of devices, written for many hosts at a time."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from sqlalchemy import JSON, ColumnElement, Update, bindparam, case, select, update
from sqlalchemy.orm import Session

from cyborg_lite import codec
from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.tables import Device
from cyborg_lite.model.devices.telemetry import Usage

# Devices of one UPDATE. A database compares each row with all of them.
_MAX_DEVICES: Final = 128


def store_telemetry(
    session: Session, telemetry: Mapping[str, Mapping[str, Usage]]
) -> None:
    """Store the telemetry of devices; ignore unknown devices.

    One SELECT, and one UPDATE for each 128 devices.

    :param telemetry: by hostname and control address
    """
    columns = Device.id, Device.hostname, Device.control_address
    # All transactions lock the rows in this order.
    statement = select(*columns).where(Device.hostname.in_(telemetry))
    rows = iter(
        (key, usage)
        for key, host, address in session.execute(statement.order_by(Device.id))
        if (usage := telemetry[host].get(address)) is not None
    )
    while batch := list(islice(rows, _MAX_DEVICES)):
        parameters: dict[str, Any] = {}
        for number in range(_count_pairs(len(batch))):
            # Repetitions of the last device fill the statement up.
            key, usage = batch[min(number, len(batch) - 1)]
            parameters[f'id_{number}'] = key
            parameters[f'usage_{number}'] = codec.dump(usage)
        change(session, _UPDATES[_count_pairs(len(batch))], parameters)


def _count_pairs(devices: int) -> int:
    """Return the size of the smallest statement for at least ``devices`` devices."""
    return next(size for size in _UPDATES if size >= devices)


def _build_update(devices: int) -> Update:
    """Return the statement for a number of devices; it is compiled once."""
    ids: list[ColumnElement[int]] = [
        bindparam(f'id_{number}') for number in range(devices)
    ]
    usages = [bindparam(f'usage_{number}', type_=JSON) for number in range(devices)]
    values = {
        Device.telemetry: case(
            *((Device.id == key, usage) for key, usage in zip(ids, usages, strict=True))
        ),
        Device.telemetry_at: now_utc(),
        # Telemetry is no change of the device, so time and generation stay.
        Device.updated_at: Device.updated_at,
        Device.generation: Device.generation,
    }
    return update(Device).where(Device.id.in_(ids)).values(values)


_UPDATES: Final = {size: _build_update(size) for size in (8, 32, _MAX_DEVICES)}
