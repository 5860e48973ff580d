# SPDX-License-Identifier: Apache-2.0
"""Configurations of devices in the responses of the API."""

from datetime import datetime
from typing import Final

from cyborg_lite.api.microversion import V2_29
from cyborg_lite.api.views.link import LINKS
from cyborg_lite.api.views.shapes import (
    JSON_TEXT,
    TEXT_OR_NULL,
    UUID,
    Json,
    enum_of,
    nullable,
    source,
)
from cyborg_lite.api.views.view import View
from cyborg_lite.model.reconfiguration import Phase, ReconfigurationState

_SETTINGS: Final = Json(JSON_TEXT, text_before=V2_29, type=['string', 'object'])


class HardwareSetView(View):
    """A hardware set of a device. ``settings`` has a JSON Schema for each setting.

    ``settings`` is an object since 2.29, and JSON text before.
    """

    name = str
    settings = _SETTINGS
    required = [str]


class ReconfigurationView(View):
    """A change by a hardware set. ``tasks`` is the number of tasks that have ended.

    ``settings`` is an object since 2.29, and JSON text before.
    """

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
