# SPDX-License-Identifier: Apache-2.0
"""Devices as clients read them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

from wsme import types

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_3, V2_4
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.shapes import (
    JSON_TEXT,
    UUID,
    nullable,
    one_of,
    optional,
    since,
)
from cyborg_lite.model.devices import DeviceRecord, DeviceStatus
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.usage import Usage


class UsageView(types.Base):  # type: ignore[misc]  # untyped base
    """Units are those of ``cyborg_lite.model.usage``; null is not known."""

    busy_percent = nullable(float)
    memory_used = nullable(int)
    memory_total = nullable(int)
    temperature = nullable(float)
    power = nullable(float)
    units_used = nullable(int)
    units_total = nullable(int)
    counters = {str: int}  # noqa: RUF012  # a type, as WSME has it

    @classmethod
    def showing(cls, usage: Usage) -> Self:
        return cls(
            busy_percent=usage.busy_percent,
            memory_used=usage.memory_used,
            memory_total=usage.memory_total,
            temperature=usage.temperature,
            power=usage.power,
            units_used=usage.units_used,
            units_total=usage.units_total,
            counters=dict(usage.counters),
        )


class DeviceView(types.Base):  # type: ignore[misc]  # untyped base
    uuid = UUID
    type = str
    vendor = str
    model = str
    std_board_info = nullable(JSON_TEXT)
    vendor_board_info = nullable(str)
    hostname = str
    status = since(V2_3, one_of(DeviceStatus))
    links = [Link]  # noqa: RUF012  # a type, as WSME has it
    created_at = datetime
    updated_at = nullable(datetime)
    status_reason = since(V2_4, str)
    health = since(V2_4, one_of(Health))
    health_reason = since(V2_4, str)
    arqs_count = since(V2_4, int)
    usage = since(V2_4, nullable(UsageView))
    arqs = since(V2_4, optional([UUID]))

    @classmethod
    def showing(cls, device: DeviceRecord, call: Call) -> Self:
        version = call.microversion
        more = _details(device, call) if version >= V2_4 else {}
        return cls(
            uuid=device.uuid,
            type=device.type,
            vendor=device.vendor,
            model=device.model,
            std_board_info=device.std_board_info,
            vendor_board_info=device.vendor_board_info,
            hostname=device.hostname,
            # What is unset is left out.
            status=device.status.value if version >= V2_3 else types.Unset,
            links=Link.to_self(call.links, f'v2/devices/{device.uuid}'),
            created_at=device.created_at,
            updated_at=device.updated_at,
            **more,
        )


def _details(device: DeviceRecord, call: Call) -> dict[str, Any]:
    """What 2.4 adds; values of the types of the fields."""
    return {
        'status_reason': device.status_reason,
        'health': device.health.value,
        'health_reason': device.health_reason,
        'usage': device.usage and UsageView.showing(device.usage),
        'arqs_count': len(device.arqs),
        # They are of all projects: a project's manager sees how many, and no more.
        'arqs': list(device.arqs) if call.caller.is_admin else types.Unset,
    }


class DeviceList(types.Base):  # type: ignore[misc]  # untyped base
    devices = [DeviceView]  # noqa: RUF012  # a type, as WSME has it

    devices_links = since(V2_4, optional([Link]))

    @classmethod
    def showing(cls, devices: Iterable[DeviceRecord], call: Call, more: Any) -> Self:
        """:param more: as ``paging.next_page`` has it"""
        shown = [DeviceView.showing(one, call) for one in devices]
        return cls(devices=shown, devices_links=more)
