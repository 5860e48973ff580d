# SPDX-License-Identifier: Apache-2.0
"""History of a device in the responses of the API."""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

from cyborg_lite.api.links import Links
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.reasons import render_reason
from cyborg_lite.api.views.selection import select_view
from cyborg_lite.api.views.shapes import enum_of, nullable
from cyborg_lite.api.views.view import View
from cyborg_lite.model.device_events import DeviceEvent, DeviceEventKind


class DeviceEventView(View):
    """An event of a device.

    ``unit`` is the unit that was cleaned or programmed, null for the whole device.
    ``value`` is the new health, status, mode or image. Only administrators see the
    UUIDs in ``reason``, such as those of ARQs of all projects.
    """

    event = enum_of(DeviceEventKind)
    at = datetime
    hostname = str
    unit = nullable(str)
    value = nullable(str)
    reason = nullable(str)

    @classmethod
    def build(cls, event: DeviceEvent, *, shows_uuids: bool) -> Self:
        """Build the view."""
        reason = render_reason(event.reason, shows_uuids=shows_uuids)
        return cls(
            event=event.kind.value,
            at=event.at,
            hostname=event.hostname,
            unit=event.unit or None,
            value=event.value or None,
            reason=reason or None,
        )


class DeviceEventList(View):
    """The events of a device, the latest first."""

    events = [DeviceEventView]
    links = [Link]

    @classmethod
    def build(
        cls,
        uuid: str,
        events: Iterable[DeviceEvent],
        links: Links,
        fields: frozenset[str] | None = None,
        *,
        shows_uuids: bool = False,
    ) -> Self:
        """Build the view.

        :param uuid: of the device
        :param fields: the requested fields; None: all fields
        :param shows_uuids: True: the caller may see the UUIDs in reasons
        """
        return cls(
            events=[
                select_view(
                    DeviceEventView.build(event, shows_uuids=shows_uuids), fields
                )
                for event in events
            ],
            links=Link.build_self_links(links, f'v2/devices/{uuid}/events'),
        )
