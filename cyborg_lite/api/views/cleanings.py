# SPDX-License-Identifier: Apache-2.0
"""Cleans of devices in the responses of the API."""

from datetime import datetime

from cyborg_lite.api.views.shapes import (
    REASON_OR_NULL,
    TEXT_OR_NULL,
    UUID,
    enum_of,
    nullable,
)
from cyborg_lite.api.views.view import LINKS, NEXT_LINKS, View
from cyborg_lite.model.devices.cleaning import CleaningState, CleanState
from cyborg_lite.model.inventory.host_report import CleaningPolicy


class UnitView(View):
    """A unit of a device; ``reason`` says why it is not clean.

    Only administrators see the UUIDs in ``reason``.
    """

    unit = str
    state = enum_of(CleanState)
    policy = enum_of(CleaningPolicy)
    reason = REASON_OR_NULL


class CleanStepView(View):
    """A step that has started, and its proof: a tool, or what was compared.

    Only administrators see the UUIDs in ``error``.
    """

    name = str
    started_at = datetime
    finished_at = nullable(datetime)
    proof = TEXT_OR_NULL
    error = REASON_OR_NULL


class CleaningView(View):
    """A cleaning run of a unit, and who has started or accepted it.

    ``step_count`` is the number of steps that the driver declares. Only administrators
    see the UUIDs in ``reason``, such as those of ARQs of all projects.
    """

    uuid = UUID
    unit = str
    state = enum_of(CleaningState)
    actor = str
    started_at = datetime
    finished_at = nullable(datetime)
    steps = [CleanStepView]
    step_count = int
    reason = REASON_OR_NULL


class CleaningList(View):
    """The units of a device, and a page of its cleaning runs, the latest first."""

    _path = 'v2/devices/{uuid}/cleanings'

    units = [UnitView]
    cleanings = [CleaningView]
    cleanings_links = NEXT_LINKS
    links = LINKS
