# SPDX-License-Identifier: Apache-2.0
"""Devices in the responses of the API."""

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
    enum_of,
    nullable,
    optional,
    since,
)
from cyborg_lite.model.devices import DeviceRecord, DeviceStatus
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.usage import Usage


class UsageView(types.Base):  # type: ignore[misc]  # untyped base
    """Telemetry of a device; null: unknown.

    Memory is in bytes, temperature in degrees Celsius, power in watts.
    """

    busy_percent = nullable(float)
    memory_used = nullable(int)
    memory_total = nullable(int)
    temperature = nullable(float)
    power = nullable(float)
    units_used = nullable(int)
    units_total = nullable(int)
    counters = {str: int}  # noqa: RUF012  # a type, as WSME has it

    @classmethod
    def build(cls, usage: Usage) -> Self:
        """Build the view."""
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
    """A device."""

    uuid = UUID
    type = str
    vendor = str
    model = str
    std_board_info = nullable(JSON_TEXT)
    vendor_board_info = nullable(str)
    hostname = str
    status = since(V2_3, enum_of(DeviceStatus))
    links = [Link]  # noqa: RUF012  # a type, as WSME has it
    created_at = datetime
    updated_at = nullable(datetime)
    status_reason = since(V2_4, str)
    health = since(V2_4, enum_of(Health))
    health_reason = since(V2_4, str)
    arqs_count = since(V2_4, int)
    usage = since(V2_4, nullable(UsageView))
    arqs = since(V2_4, optional([UUID]))

    @classmethod
    def build(cls, device: DeviceRecord, call: Call) -> Self:
        """Build the view."""
        version = call.microversion
        details = _details(device, call) if version >= V2_4 else {}
        return cls(
            uuid=device.uuid,
            type=device.type,
            vendor=device.vendor,
            model=device.model,
            std_board_info=device.std_board_info,
            vendor_board_info=device.vendor_board_info,
            hostname=device.hostname,
            # Unset fields are omitted.
            status=device.status.value if version >= V2_3 else types.Unset,
            links=Link.build_self_links(call.links, f'v2/devices/{device.uuid}'),
            created_at=device.created_at,
            updated_at=device.updated_at,
            **details,
        )


def _details(device: DeviceRecord, call: Call) -> dict[str, Any]:
    """Return the fields that microversion 2.4 added."""
    return {
        'status_reason': device.status_reason,
        'health': device.health.value,
        'health_reason': device.health_reason,
        'usage': device.usage and UsageView.build(device.usage),
        'arqs_count': len(device.arqs),
        # The ARQs belong to all projects: only an administrator sees their uuids.
        'arqs': list(device.arqs) if call.caller.is_admin else types.Unset,
    }


class DeviceList(types.Base):  # type: ignore[misc]  # untyped base
    """A page of devices."""

    devices = [DeviceView]  # noqa: RUF012  # a type, as WSME has it

    devices_links = since(V2_4, optional([Link]))

    @classmethod
    def build(
        cls, devices: Iterable[DeviceRecord], call: Call, next_links: Any
    ) -> Self:
        """Build the view.

        :param next_links: result of ``paging.build_next_link``
        """
        views = [DeviceView.build(device, call) for device in devices]
        return cls(devices=views, devices_links=next_links)
