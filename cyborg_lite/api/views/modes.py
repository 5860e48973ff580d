# SPDX-License-Identifier: Apache-2.0
"""Modes of devices in the responses of the API."""

from typing import Self

from cyborg_lite.api.links import Links
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.shapes import UUID, enum_of, nullable
from cyborg_lite.api.views.view import View
from cyborg_lite.model.jobs import JobState
from cyborg_lite.model.modes import DevicePlan, ModeChange, ModePlan, OfferedInventory


class OfferedInventoryView(View):
    """The inventory that one deployable of a device offers."""

    resource_class = str
    total = int
    traits = [str]

    @classmethod
    def build(cls, item: OfferedInventory) -> Self:
        """Build the view."""
        return cls(
            resource_class=item.resource_class,
            total=item.total,
            traits=list(item.traits),
        )


class ModeView(View):
    """A mode of a device, and how the inventory changes with it."""

    name = str
    is_current = bool
    appears = [OfferedInventoryView]
    vanishes = [OfferedInventoryView]

    @classmethod
    def build(cls, plan: ModePlan) -> Self:
        """Build the view."""
        return cls(
            name=plan.mode,
            is_current=plan.is_current,
            appears=[OfferedInventoryView.build(item) for item in plan.appears],
            vanishes=[OfferedInventoryView.build(item) for item in plan.vanishes],
        )


class ModeChangeView(View):
    """A change of the mode that runs or has failed; ``reason`` says why."""

    mode = str
    state = enum_of(JobState)
    reason = nullable(str)

    @classmethod
    def build(cls, change: ModeChange) -> Self:
        """Build the view."""
        return cls(mode=change.mode, state=change.state, reason=change.reason or None)


class DeviceModesView(View):
    """The modes of a device, and the ARQs that prevent a change.

    ``declared`` is the mode that the options of the agent name. ``stored`` is the mode
    that was set last; the agent restores it after a reboot of the host.
    """

    device_uuid = UUID
    current = nullable(str)
    declared = nullable(str)
    stored = nullable(str)
    modes = [ModeView]
    arqs = [UUID]
    change = nullable(ModeChangeView)
    links = [Link]

    @classmethod
    def build(cls, plan: DevicePlan, links: Links) -> Self:
        """Build the view."""
        path = f'v2/devices/{plan.device_uuid}/modes'
        return cls(
            device_uuid=plan.device_uuid,
            current=plan.current,
            declared=plan.declared,
            stored=plan.stored,
            modes=[ModeView.build(item) for item in plan.plans],
            arqs=list(plan.arqs),
            change=plan.change and ModeChangeView.build(plan.change),
            links=Link.build_self_links(links, path),
        )
