# SPDX-License-Identifier: Apache-2.0
"""History of a device in the responses of the API."""

from datetime import datetime

from cyborg_lite.api.views.link import LINKS
from cyborg_lite.api.views.shapes import REASON_OR_NULL, TEXT_OR_NULL, enum_of, source
from cyborg_lite.api.views.view import View
from cyborg_lite.model.device_events import DeviceEventKind


class DeviceEventView(View):
    """An event of a device.

    ``unit`` is the unit that was cleaned or programmed, null for the whole device.
    ``value`` is the new health, status, mode or image. Only administrators see the
    UUIDs in ``reason``, such as those of ARQs of all projects.
    """

    event = source('kind', enum_of(DeviceEventKind))
    at = datetime
    hostname = str
    unit = TEXT_OR_NULL
    value = TEXT_OR_NULL
    reason = REASON_OR_NULL


class DeviceEventList(View):
    """The events of a device, the latest first."""

    _path = 'v2/devices/{uuid}/events'

    events = [DeviceEventView]
    links = LINKS
