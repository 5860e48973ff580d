# SPDX-License-Identifier: Apache-2.0
"""Configurations of devices in the responses of the API."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Self

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_29, Microversion
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.shapes import UUID, JsonValue, enum_of, nullable
from cyborg_lite.api.views.view import View
from cyborg_lite.model.reconfiguration import (
    DeviceConfiguration,
    Phase,
    Reconfiguration,
    ReconfigurationState,
    SetView,
)

_SETTINGS: Final = JsonValue(type=['string', 'object'])


# Any: JSON.
def _show_settings(settings: Mapping[str, Any], version: Microversion) -> Any:
    """Return settings, before 2.29 as JSON text."""
    return json.dumps(settings) if version < V2_29 else dict(settings)


class HardwareSetView(View):
    """A hardware set of a device. ``settings`` has a JSON Schema for each setting.

    ``settings`` is an object since 2.29, and JSON text before.
    """

    name = str
    settings = _SETTINGS
    required = [str]

    @classmethod
    def build(cls, item: SetView, version: Microversion) -> Self:
        """Build the view of a microversion."""
        return cls(
            name=item.name,
            settings=_show_settings(item.settings, version),
            required=list(item.required),
        )


class ReconfigurationView(View):
    """A change by a hardware set. ``tasks`` is the number of tasks that have ended.

    ``settings`` is an object since 2.29, and JSON text before.
    """

    uuid = UUID
    set = str
    settings = _SETTINGS
    state = enum_of(ReconfigurationState)
    phase = nullable(enum_of(Phase))
    tasks = int
    log = str
    reason = nullable(str)
    actor = str
    created_at = datetime
    finished_at = nullable(datetime)

    @classmethod
    def build(cls, change: Reconfiguration, version: Microversion) -> Self:
        """Build the view of a microversion."""
        return cls(
            uuid=change.uuid,
            set=change.hardware_set,
            settings=_show_settings(change.settings, version),
            state=change.state.value,
            phase=change.phase and change.phase.value,
            tasks=change.tasks,
            log=change.log,
            reason=change.reason or None,
            actor=change.actor,
            created_at=change.created_at,
            finished_at=change.finished_at,
        )


class DeviceConfigurationView(View):
    """The hardware sets of a device, and its changes, the latest first.

    ``arqs`` use the device, or another device that a change would affect.
    """

    device_uuid = UUID
    sets = [HardwareSetView]
    arqs = [UUID]
    changes = [ReconfigurationView]
    links = [Link]

    @classmethod
    def build(cls, configuration: DeviceConfiguration, call: Call) -> Self:
        """Build the view."""
        version = call.microversion
        path = f'v2/devices/{configuration.device_uuid}/configuration'
        return cls(
            device_uuid=configuration.device_uuid,
            sets=[HardwareSetView.build(item, version) for item in configuration.sets],
            arqs=list(configuration.arqs),
            changes=[
                ReconfigurationView.build(item, version)
                for item in configuration.changes
            ],
            links=Link.build_self_links(call.links, path),
        )
