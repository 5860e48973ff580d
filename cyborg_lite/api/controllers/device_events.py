# SPDX-License-Identifier: Apache-2.0
"""History of a device."""

from typing import ClassVar

from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_11, V2_32
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.views.device_events import DeviceEventList, DeviceEventView
from cyborg_lite.exceptions import DeviceNotFound
from cyborg_lite.model import uuids
from cyborg_lite.model.text import format_value


class DeviceEvents(Resource):
    """``/v2/devices/{uuid}/events``"""

    path_since: ClassVar = V2_11

    @expose(DeviceEventList)
    @requires('cyborg:device:get_events')
    @since(V2_11, 'The history of a device')
    @accepts(selectable=(DeviceEventView,), selectable_since=V2_32)
    def get(self, call: Call) -> DeviceEventList:
        """List the latest 1000 events of a device, the latest first.

        The history of a removed device stays until it is purged.
        """
        uuid = uuids.normalize_uuid(self.identifier)
        if uuid is None:
            raise DeviceNotFound(uuid=format_value(self.identifier))
        events = self.conductor.list_device_events(call.caller, uuid)
        return DeviceEventList(uuid=uuid, events=events)
