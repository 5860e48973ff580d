# SPDX-License-Identifier: Apache-2.0
"""Configurations of devices in the responses of the API."""

import json
from datetime import datetime
from typing import Self

from wsme import types

from cyborg_lite.api.links import Links
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.shapes import JSON_TEXT, UUID, enum_of, nullable
from cyborg_lite.model.reconfiguration import (
    DeviceConfiguration,
    Phase,
    Reconfiguration,
    ReconfigurationState,
    SetView,
)


class HardwareSetView(types.Base):  # type: ignore[misc]  # untyped base
    """A hardware set of a device. ``settings`` has a JSON Schema for each setting."""

    name = str
    settings = JSON_TEXT
    required = [str]

    @classmethod
    def build(cls, item: SetView) -> Self:
        """Build the view."""
        return cls(
            name=item.name,
            settings=json.dumps(item.settings),
            required=list(item.required),
        )


class ReconfigurationView(types.Base):  # type: ignore[misc]  # untyped base
    """A change by a hardware set. ``tasks`` is the number of tasks that have ended."""

    uuid = UUID
    set = str
    settings = JSON_TEXT
    state = enum_of(ReconfigurationState)
    phase = nullable(enum_of(Phase))
    tasks = int
    log = str
    reason = nullable(str)
    actor = str
    created_at = datetime
    finished_at = nullable(datetime)

    @classmethod
    def build(cls, change: Reconfiguration) -> Self:
        """Build the view."""
        return cls(
            uuid=change.uuid,
            set=change.hardware_set,
            settings=json.dumps(change.settings),
            state=change.state.value,
            phase=change.phase and change.phase.value,
            tasks=change.tasks,
            log=change.log,
            reason=change.reason or None,
            actor=change.actor,
            created_at=change.created_at,
            finished_at=change.finished_at,
        )


class DeviceConfigurationView(types.Base):  # type: ignore[misc]  # untyped base
    """The hardware sets of a device, and its changes, the latest first.

    ``arqs`` use the device, or another device that a change would affect.
    """

    device_uuid = UUID
    sets = [HardwareSetView]
    arqs = [UUID]
    changes = [ReconfigurationView]
    links = [Link]

    @classmethod
    def build(cls, configuration: DeviceConfiguration, links: Links) -> Self:
        """Build the view."""
        path = f'v2/devices/{configuration.device_uuid}/configuration'
        return cls(
            device_uuid=configuration.device_uuid,
            sets=[HardwareSetView.build(item) for item in configuration.sets],
            arqs=list(configuration.arqs),
            changes=[ReconfigurationView.build(item) for item in configuration.changes],
            links=Link.build_self_links(links, path),
        )
