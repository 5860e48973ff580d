# SPDX-License-Identifier: Apache-2.0
"""Cleans of devices in the responses of the API."""

from datetime import datetime
from typing import Self

from cyborg_lite.api.links import Links
from cyborg_lite.api.views.link import Link
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
    """A unit of a device; ``reason`` says why it is not clean."""

    unit = str
    state = enum_of(CleanState)
    policy = enum_of(CleaningPolicy)
    reason = nullable(str)

    @classmethod
    def build(cls, unit: UnitState) -> Self:
        """Build the view."""
        return cls(
            unit=unit.unit,
            state=unit.state.value,
            policy=unit.policy.value,
            reason=unit.reason or None,
        )


class CleanStepView(View):
    """A step that has started. The tool is null if the step needs none."""

    name = str
    started_at = datetime
    finished_at = nullable(datetime)
    tool = nullable(str)
    error = nullable(str)

    @classmethod
    def build(cls, result: CleanStepResult) -> Self:
        """Build the view."""
        return cls(
            name=result.name,
            started_at=result.started_at,
            finished_at=result.finished_at,
            tool=result.tool or None,
            error=result.error or None,
        )


class CleaningView(View):
    """A clean of a unit, and who has started or accepted it.

    ``step_count`` is the number of steps that the driver declares.
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
    def build(cls, record: CleaningRecord) -> Self:
        """Build the view."""
        return cls(
            uuid=record.uuid,
            unit=record.unit,
            state=record.state.value,
            actor=record.actor,
            started_at=record.started_at,
            finished_at=record.finished_at,
            steps=[CleanStepView.build(result) for result in record.steps],
            step_count=record.step_count,
            reason=record.reason or None,
        )


class CleaningList(View):
    """The units of a device, and its cleans, the latest first."""

    units = [UnitView]
    cleanings = [CleaningView]
    links = [Link]

    @classmethod
    def build(cls, uuid: str, device: DeviceCleanings, links: Links) -> Self:
        """Build the view.

        :param uuid: of the device
        """
        return cls(
            units=[UnitView.build(unit) for unit in device.units],
            cleanings=[CleaningView.build(record) for record in device.cleanings],
            links=Link.build_self_links(links, f'v2/devices/{uuid}/cleanings'),
        )
