# SPDX-License-Identifier: Apache-2.0
"""Devices, their modes, configurations and events in the responses of the API."""

import json
from datetime import UTC, datetime
from typing import Any, Final

from wsme import types

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_3, V2_4, V2_5, V2_7
from cyborg_lite.api.views.shapes import (
    JSON_TEXT,
    REASON,
    REASON_OR_NULL,
    TEXT_OR_NULL,
    UUID,
    Json,
    enum_of,
    nullable,
    optional,
    since,
    source,
)
from cyborg_lite.api.views.view import LINKS, NEXT_LINKS, ListView, View
from cyborg_lite.model.devices.devices import DeviceRecord, DeviceStatus
from cyborg_lite.model.devices.events import DeviceEventKind
from cyborg_lite.model.devices.reconfiguration import Phase, ReconfigurationState
from cyborg_lite.model.hosts.topology import BRIDGES_KEY
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.jobs import JobState

_SETTINGS: Final = Json(str, type='object')


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


class DeviceView(View):
    """A device. ``usage_age`` is the age of ``usage`` in seconds, null without it.

    ``std_board_info`` is an object since 2.5, and JSON text before. Only
    administrators see ``arqs``, and the UUIDs in ``status_reason`` and
    ``health_reason``.
    """

    _path = 'v2/devices/{uuid}'

    uuid = UUID
    type = str
    vendor = str
    model = str
    std_board_info = nullable(Json(JSON_TEXT, type=['string', 'object']))
    vendor_board_info = nullable(str)
    hostname = str
    status = since(V2_3, enum_of(DeviceStatus))
    links = LINKS
    created_at = datetime
    updated_at = nullable(datetime)
    status_reason = since(V2_4, REASON)
    health = since(V2_4, enum_of(Health))
    health_reason = since(V2_4, REASON)
    arqs_count = since(V2_4, int)
    usage = since(V2_4, nullable(UsageView))
    arqs = since(V2_4, optional([UUID]))
    health_since = since(V2_5, nullable(datetime))
    usage_age = since(V2_5, nullable(float))
    generation = since(V2_5, int)
    quarantine = since(V2_7, TEXT_OR_NULL)

    @staticmethod
    def render_health(device: DeviceRecord, call: Call) -> str:
        """Return the health. Before 2.7 a withheld device is failed."""
        is_known = call.microversion >= V2_7 or device.health is not Health.WITHHELD
        return device.health if is_known else Health.FAILED

    # Any: JSON.
    @staticmethod
    def render_std_board_info(device: DeviceRecord, call: Call) -> Any:
        """Return the standard board information.

        It is an object since 2.5. Before it is JSON text without the bridges.
        """
        text, is_newer = device.std_board_info, call.microversion >= V2_5
        if text is None or not (is_newer or BRIDGES_KEY in text):
            return text  # by far the most frequent case
        board = json.loads(text)
        if not isinstance(board, dict):
            return text
        if is_newer:
            return board
        board.pop(BRIDGES_KEY, None)
        return json.dumps(board)

    @staticmethod
    def render_arqs_count(device: DeviceRecord, call: Call) -> int:
        """Return the number of ARQs that use the device."""
        return len(device.arqs)

    # Any: ``Unset`` has no type.
    @staticmethod
    def render_arqs(device: DeviceRecord, call: Call) -> Any:
        """Return the ARQs, which belong to all projects, to an administrator."""
        return device.arqs if call.caller.is_admin else types.Unset

    @staticmethod
    def render_usage_age(device: DeviceRecord, call: Call) -> float | None:
        """Return the age of the telemetry in seconds."""
        if device.usage_at is None:
            return None
        age = (datetime.now(UTC) - device.usage_at).total_seconds()
        # The clocks of this host and of the database may differ.
        return max(0.0, round(age, 3))


class DeviceList(ListView):
    """A page of devices."""

    devices = [DeviceView]
    devices_links = NEXT_LINKS


class OfferedInventoryView(View):
    """The inventory that one deployable of a device offers."""

    resource_class = str
    total = int
    traits = [str]


class ModeView(View):
    """A mode of a device, and how the inventory changes with it."""

    name = source('mode', str)
    is_current = bool
    appears = [OfferedInventoryView]
    vanishes = [OfferedInventoryView]


class ModeChangeView(View):
    """A change of the mode that runs or has failed; ``reason`` says why."""

    mode = str
    state = enum_of(JobState)
    reason = TEXT_OR_NULL


class DeviceModesView(View):
    """The modes of a device, and the ARQs that prevent a change.

    ``declared`` is the mode that the options of the agent name. ``stored`` is the mode
    that was set last; the agent restores it after a reboot of the host.
    """

    _path = 'v2/devices/{device_uuid}/modes'

    device_uuid = UUID
    current = nullable(str)
    declared = nullable(str)
    stored = nullable(str)
    modes = source('plans', [ModeView])
    arqs = [UUID]
    change = nullable(ModeChangeView)
    links = LINKS


class HardwareSetView(View):
    """A hardware set of a device. ``settings`` has a JSON Schema for each setting."""

    name = str
    settings = _SETTINGS
    required = [str]


class ReconfigurationView(View):
    """A change by a hardware set. ``tasks`` is the number of tasks that have ended."""

    uuid = UUID
    set = source('hardware_set', str)
    settings = _SETTINGS
    state = enum_of(ReconfigurationState)
    phase = nullable(enum_of(Phase))
    tasks = int
    log = str
    reason = TEXT_OR_NULL
    actor = str
    created_at = datetime
    finished_at = nullable(datetime)


class DeviceConfigurationView(View):
    """The hardware sets of a device, and its changes, the latest first.

    ``arqs`` use the device, or another device that a change would affect.
    """

    _path = 'v2/devices/{device_uuid}/configuration'

    device_uuid = UUID
    sets = [HardwareSetView]
    arqs = [UUID]
    changes = [ReconfigurationView]
    links = LINKS


class DeviceEventView(View):
    """An event of a device.

    ``unit`` is the unit that was cleaned or programmed, null for the whole device.
    ``value`` is the new health, status, mode or image. Only administrators see the
    UUIDs in ``reason``, such as those of ARQs of all projects.
    """

    kind = enum_of(DeviceEventKind)
    at = datetime
    hostname = str
    unit = TEXT_OR_NULL
    value = TEXT_OR_NULL
    reason = REASON_OR_NULL


class DeviceEventList(View):
    """A page of the events of a device, the latest first."""

    _path = 'v2/devices/{uuid}/events'

    events = [DeviceEventView]
    events_links = NEXT_LINKS
    links = LINKS
