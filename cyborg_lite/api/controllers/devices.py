# SPDX-License-Identifier: Apache-2.0
"""Devices."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from cyborg_lite.api import arguments, paging
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires
from cyborg_lite.api.microversion import V2_3, V2_4, Microversion
from cyborg_lite.api.resource import Backing, Resource
from cyborg_lite.api.schemas import devices as schemas
from cyborg_lite.api.views.devices import DeviceList, DeviceView
from cyborg_lite.exceptions import DeviceNotFound, InvalidPatch
from cyborg_lite.model import uuids
from cyborg_lite.model.devices import DeviceStatus
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import is_storable, shown

_EXACT: Final = ('type', 'vendor', 'hostname', 'status')
_NEWER: Final = ('model', 'health')

_RULES: Final = {
    DeviceStatus.ENABLED: 'cyborg:device:enable',
    DeviceStatus.MAINTAINING: 'cyborg:device:disable',
}


class Devices(Resource):
    """``/v2/devices``"""

    def below(self, segment: str) -> Resource:
        return Device(self.backing, segment)

    @expose(DeviceList)
    @requires('cyborg:device:get_all')
    @accepts(
        arguments=(*arguments.PAGING, *_EXACT),
        filters=arguments.PAGING,
        newer=_NEWER,
    )
    def get(self, call: Call) -> DeviceList:
        if 'status' in call.arguments:
            call.require_version(V2_3, 'The query argument status')
        given = call.arguments
        exact = arguments.exact(given, (*_EXACT, *_NEWER))
        query = arguments.query(given, call.microversion >= V2_4, **exact)
        found = self.conductor.list_devices(call.caller, query)
        return DeviceList.showing(found, call, paging.next_page(call, query, found))


class Device(Resource):
    """``/v2/devices/{uuid}``"""

    since: ClassVar[Mapping[str, Microversion]] = {'PATCH': V2_4}

    def __init__(self, backing: Backing, identifier: str) -> None:
        super().__init__(backing)
        self._identifier = identifier

    def below(self, segment: str) -> Resource:
        actions = {'enable': Enable, 'disable': Disable}
        if segment in actions:
            return actions[segment](self.backing, self._identifier)
        return super().below(segment)

    @expose(DeviceView)
    @requires('cyborg:device:get_one')
    @accepts()
    def get(self, call: Call) -> DeviceView:
        return self._shown(call)

    @expose(DeviceView, errors=(409,))
    @requires('cyborg:device:update')
    @accepts(body=schemas.PATCH)
    def patch(self, call: Call) -> DeviceView:
        status, reason = _maintenance(call.body)
        # Who may not enable or disable may not do so in these words either.
        call.authorise(_RULES[status])
        uuid = _uuid(self._identifier)
        self.conductor.set_device_status(call.caller, uuid, status, reason)
        return self._shown(call)

    def _shown(self, call: Call) -> DeviceView:
        filters = {'uuid': (_uuid(self._identifier),)}
        query = Query(filters=filters, detailed=call.microversion >= V2_4)
        for device in self.conductor.list_devices(call.caller, query):
            return DeviceView.showing(device, call)
        raise DeviceNotFound(uuid=shown(self._identifier))


class Action(Resource):
    """Below a device; does one thing to it."""

    def __init__(self, backing: Backing, identifier: str) -> None:
        super().__init__(backing)
        self._identifier = identifier

    def _turn(self, call: Call, status: DeviceStatus) -> None:
        uuid = _uuid(self._identifier)
        self.conductor.set_device_status(call.caller, uuid, status)


class Enable(Action):
    """``/v2/devices/{uuid}/enable``"""

    @expose(status=204, errors=(409,))
    @requires('cyborg:device:enable')
    @accepts(body=schemas.ACTION)
    def post(self, call: Call) -> None:
        self._turn(call, DeviceStatus.ENABLED)


class Disable(Action):
    """``/v2/devices/{uuid}/disable``"""

    @expose(status=204, errors=(409,))
    @requires('cyborg:device:disable')
    @accepts(body=schemas.ACTION)
    def post(self, call: Call) -> None:
        self._turn(call, DeviceStatus.MAINTAINING)


def _maintenance(operations: list[Any]) -> tuple[DeviceStatus, str]:
    """What a patch, which fits its schema, asks for.

    :raises InvalidPatch: it makes no sense
    """
    values = {one['path']: one['value'] for one in operations}
    if len(values) < len(operations):
        raise InvalidPatch(reason='a path is there twice.')
    try:
        status = DeviceStatus(values['/status'])
    except (KeyError, ValueError):
        words = ' or '.join(DeviceStatus)
        raise InvalidPatch(reason=f'/status must be {words}.') from None
    reason = values.get('/reason', '')
    if reason and status is DeviceStatus.ENABLED:
        raise InvalidPatch(reason='only a maintenance has a reason.')
    if not is_storable(reason):
        raise InvalidPatch(reason='/reason must be text without NUL.')
    return status, reason


def _uuid(identifier: str) -> str:
    """:raises DeviceNotFound: it is no UUID, so there is no such device"""
    found = uuids.canonical(identifier)
    if found is None:
        raise DeviceNotFound(uuid=shown(identifier))
    return found
