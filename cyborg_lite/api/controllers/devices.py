# SPDX-License-Identifier: Apache-2.0
"""Devices."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from cyborg_lite.api import arguments, paging
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires
from cyborg_lite.api.microversion import V2_3, V2_4, Microversion
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.schemas import devices as schemas
from cyborg_lite.api.views.devices import DeviceList, DeviceView
from cyborg_lite.exceptions import DeviceNotFound, InvalidDevicePatch
from cyborg_lite.model import uuids
from cyborg_lite.model.devices import DeviceStatus
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import format_value, is_storable

_EXACT: Final = ('type', 'vendor', 'hostname', 'status')
_NEWER: Final = ('model', 'health')

_RULES: Final = {
    DeviceStatus.ENABLED: 'cyborg:device:enable',
    DeviceStatus.MAINTAINING: 'cyborg:device:disable',
}


class DeviceCollection(Resource):
    """``/v2/devices``"""

    @expose(DeviceList)
    @requires('cyborg:device:get_all')
    @accepts(
        arguments=(*arguments.PAGING, *_EXACT),
        filters=arguments.PAGING,
        newer=_NEWER,
    )
    def get(self, call: Call) -> DeviceList:
        """List devices."""
        if 'status' in call.arguments:
            call.require_version(V2_3, 'The query argument status')
        values = call.arguments
        filters = arguments.select_filters(values, (*_EXACT, *_NEWER))
        query = arguments.build_query(values, call.microversion >= V2_4, **filters)
        records = self.conductor.list_devices(call.caller, query)
        return DeviceList.build(
            records, call, paging.build_next_link(call, query, records)
        )


class DeviceResource(Resource):
    """``/v2/devices/{uuid}``"""

    since: ClassVar[Mapping[str, Microversion]] = {'PATCH': V2_4}

    @expose(DeviceView)
    @requires('cyborg:device:get_one')
    @accepts()
    def get(self, call: Call) -> DeviceView:
        """Show a device."""
        return self._build_view(call)

    @expose(DeviceView, errors=(409,))
    @requires('cyborg:device:update')
    @accepts(body=schemas.PATCH)
    def patch(self, call: Call) -> DeviceView:
        """Change the status of a device, with a reason."""
        status, reason = _parse_status_change(call.body)
        # The rules of the actions enable and disable apply to the patch too.
        call.authorize(_RULES[status])
        uuid = _parse_uuid(self.identifier)
        self.conductor.set_device_status(call.caller, uuid, status, reason)
        return self._build_view(call)

    def _build_view(self, call: Call) -> DeviceView:
        filters = {'uuid': (_parse_uuid(self.identifier),)}
        query = Query(filters=filters, detailed=call.microversion >= V2_4)
        for device in self.conductor.list_devices(call.caller, query):
            return DeviceView.build(device, call)
        raise DeviceNotFound(uuid=format_value(self.identifier))


class _DeviceAction(Resource):
    """An action on a device that sets its status."""

    def _set_status(self, call: Call, status: DeviceStatus) -> None:
        uuid = _parse_uuid(self.identifier)
        self.conductor.set_device_status(call.caller, uuid, status)


class EnableDevice(_DeviceAction):
    """``/v2/devices/{uuid}/enable``"""

    @expose(status=204, errors=(409,))
    @requires('cyborg:device:enable')
    @accepts(body=schemas.ACTION)
    def post(self, call: Call) -> None:
        """Enable the device for scheduling."""
        self._set_status(call, DeviceStatus.ENABLED)


class DisableDevice(_DeviceAction):
    """``/v2/devices/{uuid}/disable``"""

    @expose(status=204, errors=(409,))
    @requires('cyborg:device:disable')
    @accepts(body=schemas.ACTION)
    def post(self, call: Call) -> None:
        """Disable the device for scheduling."""
        self._set_status(call, DeviceStatus.MAINTAINING)


def _parse_status_change(operations: list[Any]) -> tuple[DeviceStatus, str]:
    """Return the status and reason of a patch, which matches its schema.

    :raises InvalidDevicePatch: a path is repeated, or a value is invalid
    """
    values = {operation['path']: operation['value'] for operation in operations}
    if len(values) < len(operations):
        raise InvalidDevicePatch(reason='a path is repeated.')
    try:
        status = DeviceStatus(values['/status'])
    except (KeyError, ValueError):
        words = ' or '.join(DeviceStatus)
        raise InvalidDevicePatch(reason=f'/status must be {words}.') from None
    reason = values.get('/reason', '')
    if reason and status is DeviceStatus.ENABLED:
        raise InvalidDevicePatch(
            reason=f'/reason is only allowed with {DeviceStatus.MAINTAINING}.'
        )
    if not is_storable(reason):
        raise InvalidDevicePatch(reason='/reason must be text without NUL characters.')
    return status, reason


def _parse_uuid(identifier: str) -> str:
    """Return the UUID in lower case with hyphens.

    :raises DeviceNotFound: the identifier is not a UUID
    """
    uuid = uuids.normalize_uuid(identifier)
    if uuid is None:
        raise DeviceNotFound(uuid=format_value(identifier))
    return uuid
