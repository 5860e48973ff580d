# SPDX-License-Identifier: Apache-2.0
"""Devices in the responses of the API."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from cyborg_lite.api.call import Call
from cyborg_lite.api.links import Links
from cyborg_lite.api.microversion import (
    V2_3,
    V2_4,
    V2_11,
    V2_21,
    V2_27,
    V2_30,
    Microversion,
)
from cyborg_lite.api.views.content import (
    Content,
    build_content,
    build_self_link,
    render_links,
    render_time,
)
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.reasons import render_reason
from cyborg_lite.api.views.selection import select_content
from cyborg_lite.api.views.shapes import (
    UUID,
    JsonValue,
    enum_of,
    nullable,
    optional,
    since,
)
from cyborg_lite.api.views.view import View
from cyborg_lite.model.devices import DeviceRecord, DeviceStatus
from cyborg_lite.model.host_topology import BRIDGES_KEY
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.usage import Usage


class UsageView(View):
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
    counters = {str: int}

    @staticmethod
    def build(usage: Usage) -> Content:
        """Build the view."""
        return build_content(
            busy_percent=usage.busy_percent,
            memory_used=usage.memory_used,
            memory_total=usage.memory_total,
            temperature=usage.temperature,
            power=usage.power,
            units_used=usage.units_used,
            units_total=usage.units_total,
            counters=dict(usage.counters),
        )


_BOARD: Final = JsonValue(type=['string', 'object'])


class DeviceView(View):
    """A device. ``usage_age`` is the age of ``usage`` in seconds, null without it.

    ``std_board_info`` is an object since 2.27, and JSON text before. Only
    administrators see ``arqs``, and the UUIDs in ``status_reason`` and
    ``health_reason``.
    """

    uuid = UUID
    type = str
    vendor = str
    model = str
    std_board_info = nullable(_BOARD)
    vendor_board_info = nullable(str)
    hostname = str
    status = since(V2_3, enum_of(DeviceStatus))
    links = [Link]
    created_at = datetime
    updated_at = nullable(datetime)
    status_reason = since(V2_4, str)
    health = since(V2_4, enum_of(Health))
    health_reason = since(V2_4, str)
    arqs_count = since(V2_4, int)
    usage = since(V2_4, nullable(UsageView))
    arqs = since(V2_4, optional([UUID]))
    health_since = since(V2_11, nullable(datetime))
    usage_age = since(V2_11, nullable(float))
    generation = since(V2_21, int)

    @staticmethod
    def build(device: DeviceRecord, call: Call) -> Content:
        """Build the view."""
        is_admin = bool(call.caller.is_admin)
        content = _build_device(device, call.links, call.microversion, is_admin)
        return select_content(content, call.fields)


def _build_device(
    device: DeviceRecord, links: Links, version: Microversion, is_admin: bool
) -> Content:
    """Return a device. A list of many builds no other object for each of them."""
    content: Content = {
        'uuid': device.uuid,
        'type': device.type,
        'vendor': device.vendor,
        'model': device.model,
        'std_board_info': _read_board(device.std_board_info, version),
        'vendor_board_info': device.vendor_board_info,
        'hostname': device.hostname,
    }
    if version >= V2_3:
        content['status'] = device.status.value
    content['links'] = build_self_link(links, f'v2/devices/{device.uuid}')
    content['created_at'] = device.created_at.isoformat()
    content['updated_at'] = render_time(device.updated_at)
    if version >= V2_4:
        content |= _details(device)
        # The ARQs belong to all projects: only an administrator sees their uuids.
        if is_admin:
            content['arqs'] = list(device.arqs)
        elif device.status_reason or device.health_reason:
            for name in ('status_reason', 'health_reason'):
                content[name] = render_reason(content[name], shows_uuids=False)
    if version >= V2_11:
        content |= _ages(device)
    if version >= V2_21:
        content['generation'] = device.generation
    return content


# Any: JSON.
def _read_board(text: str | None, version: Microversion) -> Any:
    """Return the standard board information, from 2.27 on as an object.

    Clients before 2.30 get no bridges.
    """
    if text is None:
        return None
    hides_bridges = version < V2_30 and BRIDGES_KEY in text
    if version < V2_27 and not hides_bridges:
        return text  # by far the most frequent case
    board = json.loads(text)
    if not isinstance(board, dict):
        return text
    if hides_bridges:
        board.pop(BRIDGES_KEY, None)
    return board if version >= V2_27 else json.dumps(board)


def _details(device: DeviceRecord) -> Content:
    """Return the fields that microversion 2.4 added for all users."""
    return {
        'status_reason': device.status_reason,
        'health': device.health.value,
        'health_reason': device.health_reason,
        'arqs_count': len(device.arqs),
        'usage': device.usage and UsageView.build(device.usage),
    }


def _ages(device: DeviceRecord) -> Content:
    """Return the fields that microversion 2.11 added."""
    age = None
    if device.usage_at is not None:
        age = (datetime.now(UTC) - device.usage_at).total_seconds()
    return {
        'health_since': render_time(device.health_since),
        # The clocks of this host and of the database may differ.
        'usage_age': None if age is None else max(0.0, round(age, 3)),
    }


class DeviceList(View):
    """A page of devices."""

    devices = [DeviceView]

    devices_links = since(V2_4, optional([Link]))

    @staticmethod
    def build(devices: Iterable[DeviceRecord], call: Call, next_links: Any) -> Content:
        """Build the view.

        :param next_links: result of ``paging.build_next_link``
        """
        links, version = call.links, call.microversion
        is_admin = bool(call.caller.is_admin)
        views = [
            select_content(_build_device(device, links, version, is_admin), call.fields)
            for device in devices
        ]
        return build_content(devices=views, devices_links=render_links(next_links))
