# SPDX-License-Identifier: Apache-2.0
"""Cleans of devices in the responses of the API."""

from datetime import datetime
from typing import Self

from cyborg_lite.api.links import Links
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.reasons import render_reason
from cyborg_lite.api.views.shapes import UUID, enum_of, nullable
from cyborg_lite.api.views.view import View
from cyborg_lite.model.cleaning import (
    CleaningRecord,
    CleaningState,
    CleanState,
    CleanStepResult,
    DeviceCleanings,
    UnitState,
)
from cyborg_lite.model.inventory import CleaningPolicy


class UnitView(View):
    """A unit of a device; ``reason`` says why it is not clean.

    Only administrators see the UUIDs in ``reason``.
    """

    unit = str
    state = enum_of(CleanState)
    policy = enum_of(CleaningPolicy)
    reason = nullable(str)

    @classmethod
    def build(cls, unit: UnitState, *, shows_uuids: bool) -> Self:
        """Build the view."""
        return cls(
            unit=unit.unit,
            state=unit.state.value,
            policy=unit.policy.value,
            reason=render_reason(unit.reason, shows_uuids=shows_uuids) or None,
        )


class CleanStepView(View):
    """A step that has started. The tool is null if the step needs none.

    Only administrators see the UUIDs in ``error``.
    """

    name = str
    started_at = datetime
    finished_at = nullable(datetime)
    tool = nullable(str)
    error = nullable(str)

    @classmethod
    def build(cls, result: CleanStepResult, *, shows_uuids: bool) -> Self:
        """Build the view."""
        return cls(
            name=result.name,
            started_at=result.started_at,
            finished_at=result.finished_at,
            tool=result.tool or None,
            error=render_reason(result.error, shows_uuids=shows_uuids) or None,
        )


class CleaningView(View):
    """A clean of a unit, and who has started or accepted it.

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
    reason = nullable(str)

    @classmethod
    def build(cls, record: CleaningRecord, *, shows_uuids: bool) -> Self:
        """Build the view."""
        return cls(
            uuid=record.uuid,
            unit=record.unit,
            state=record.state.value,
            actor=record.actor,
            started_at=record.started_at,
            finished_at=record.finished_at,
            steps=[
                CleanStepView.build(result, shows_uuids=shows_uuids)
                for result in record.steps
            ],
            step_count=record.step_count,
            reason=render_reason(record.reason, shows_uuids=shows_uuids) or None,
        )


class CleaningList(View):
    """The units of a device, and its cleans, the latest first."""

    units = [UnitView]
    cleanings = [CleaningView]
    links = [Link]

    @classmethod
    def build(
        cls, uuid: str, device: DeviceCleanings, links: Links, *, shows_uuids: bool
    ) -> Self:
        """Build the view.

        :param uuid: of the device
        :param shows_uuids: True: the caller may see the UUIDs in reasons and errors
        """
        return cls(
            units=[
                UnitView.build(unit, shows_uuids=shows_uuids) for unit in device.units
            ],
            cleanings=[
                CleaningView.build(record, shows_uuids=shows_uuids)
                for record in device.cleanings
            ],
            links=Link.build_self_links(links, f'v2/devices/{uuid}/cleanings'),
        )
