# SPDX-License-Identifier: Apache-2.0
"""Modes of devices in the responses of the API."""

from cyborg_lite.api.views.link import LINKS
from cyborg_lite.api.views.shapes import TEXT_OR_NULL, UUID, enum_of, nullable, source
from cyborg_lite.api.views.view import View
from cyborg_lite.model.jobs import JobState


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
