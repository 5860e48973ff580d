# SPDX-License-Identifier: Apache-2.0
"""Devices."""

from collections.abc import Mapping
from typing import Any, Final

from cyborg_lite.api.call import arguments, paging
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires, since
from cyborg_lite.api.call.patches.json_patch import list_fields
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.call.validation import NO_CONTENT
from cyborg_lite.api.microversion import V2_3, V2_4, V2_7
from cyborg_lite.api.schemas import bodies
from cyborg_lite.api.views.devices import (
    DeviceConfigurationView,
    DeviceEventList,
    DeviceEventView,
    DeviceList,
    DeviceModesView,
    DeviceView,
)
from cyborg_lite.api.views.encoding import encode
from cyborg_lite.errors.devices import DeviceNotFound, InvalidDevicePatch
from cyborg_lite.model.devices import reconfiguration
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.modes import MODE_NAME
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import format_value, is_storable

_EXACT: Final = ('type', 'vendor', 'hostname', 'status')
_NEWER: Final = ('model', 'health')
_MODE: Final = '/mode'
_QUARANTINE: Final = '/quarantine'
_CONFIGURATION: Final = '/configuration'
_REASON: Final = 'reason'

_RULES: Final = {
    DeviceStatus.ENABLED: 'cyborg:device:enable',
    DeviceStatus.MAINTAINING: 'cyborg:device:disable',
}


class DeviceCollection(Resource):
    """``/v2/devices``"""

    @expose()
    @requires('cyborg:device:get_all')
    @accepts(
        arguments=(*arguments.PAGING, *_EXACT),
        filters=arguments.PAGING,
        newer={V2_4: _NEWER},
        words={'status': DeviceStatus, 'health': Health},
        selectable=(DeviceView,),
    )
    def get(self, call: Call) -> DeviceList:
        """List devices.

        Since 2.4 devices have their health, their use, and the reason of their status.
        """
        if 'status' in call.arguments:
            call.require_version(V2_3, 'The query argument status')
        filters = call.select_filters((*_EXACT, *_NEWER))
        query = paging.build_query(call, _needs_arqs(call), **filters)
        records = self.conductor.list_devices(call.caller, query)
        return DeviceList(records, paging.build_next_link(call, query, records))


class DeviceResource(Resource):
    """``/v2/devices/{uuid}``"""

    @expose()
    @requires('cyborg:device:get_one')
    @accepts(selectable=(DeviceView,))
    def get(self, call: Call) -> DeviceView:
        """Show a device.

        Since 2.4 an administrator also sees the uuids of the ARQs that use the device.
        """
        return self._build_view(call)

    @expose(
        accepted=(DeviceModesView, DeviceConfigurationView),
        errors=(409,),
    )
    @requires('cyborg:device:update')
    @since(V2_4, hidden=True)
    @accepts(body=bodies.PATCH_DEVICE, precondition=True)
    def patch(
        self, call: Call
    ) -> DeviceView | DeviceModesView | DeviceConfigurationView:
        """Change the status of a device, its mode or its configuration.

        The body is a list of changes, and since 2.5 a JSON Patch (RFC 6902) if its
        media type says so. The path ``/status`` starts or ends maintenance at once,
        with a reason in ``/reason``. Since 2.7 there are the paths ``/quarantine``,
        ``/mode`` and ``/configuration``, which must be alone in the list. A quarantine
        without a reason ends it; that of a device with ARQs needs a name. The work of
        the other two paths continues after the response, which is 202.
        """
        if call.is_json_patch and not self._resolve_patch(call):
            return self._build_view(call)
        paths = {operation['path'] for operation in call.body}
        if _QUARANTINE in paths:
            return self._set_quarantine(call)
        if _CONFIGURATION in paths:
            return self._change_configuration(call)
        if _MODE in paths:
            return self._change_mode(call)
        status, reason = parse_status_change(call.body)
        # The rules of the actions enable and disable apply to the patch too.
        call.authorize(_RULES[status])
        uuid = call.parse_identifier(self.identifier, DeviceNotFound)
        self.conductor.set_device_status(
            call.caller, uuid, status, reason, call.generation
        )
        return self._build_view(call)

    def _resolve_patch(self, call: Call) -> bool:
        """Resolve a JSON Patch of the device, with the values that its paths name."""
        document = encode(self._build_view(call), call)
        document['reason'], uuid = document['status_reason'], document['uuid']
        fields = list_fields(call.body) if call.microversion >= V2_7 else ()
        if 'mode' in fields:
            document['mode'] = self.conductor.plan_modes(call.caller, uuid).current
        if 'configuration' in fields:
            configuration = self.conductor.show_configuration(call.caller, uuid)
            document['configuration'] = _describe_configuration(configuration)
        return call.resolve_patch(bodies.PATCH_DEVICE, document, complete_status)

    def _change_mode(self, call: Call) -> DeviceModesView:
        call.require_version(V2_7, f'The path {_MODE}')
        mode = str(_parse_single(call.body, _MODE))
        if not MODE_NAME.fullmatch(mode):
            raise InvalidDevicePatch(reason=f'{_MODE} is no valid name.')
        uuid = call.parse_identifier(self.identifier, DeviceNotFound)
        plan = self.conductor.change_mode(call.caller, uuid, mode, call.generation)
        call.locate_operation(plan.operation)
        return DeviceModesView(plan)

    def _set_quarantine(self, call: Call) -> DeviceView:
        call.require_version(V2_7, f'The path {_QUARANTINE}')
        value = _parse_single(call.body, _QUARANTINE) or {}
        reason, name = value.get('reason', ''), value.get('name', '')
        if not is_storable(reason + name):
            text = 'reason and name must be text without NUL characters.'
            raise InvalidDevicePatch(reason=text)
        uuid = call.parse_identifier(self.identifier, DeviceNotFound)
        self.conductor.set_quarantine(call.caller, uuid, reason, name, call.generation)
        return self._build_view(call)

    def _change_configuration(self, call: Call) -> DeviceConfigurationView:
        call.require_version(V2_7, f'The path {_CONFIGURATION}')
        value = _parse_single(call.body, _CONFIGURATION)
        request = reconfiguration.ConfigurationRequest(
            hardware_set=value['set'],
            settings=value.get('settings', {}),
            actor=call.caller.user_id or 'unknown',
        )
        uuid = call.parse_identifier(self.identifier, DeviceNotFound)
        configuration = self.conductor.change_configuration(
            call.caller, uuid, request, call.generation
        )
        call.locate_operation(configuration.operation)
        return DeviceConfigurationView(configuration)

    def _build_view(self, call: Call) -> DeviceView:
        filters = {'uuid': (call.parse_identifier(self.identifier, DeviceNotFound),)}
        query = Query(filters=filters, detailed=_needs_arqs(call))
        for device in self.conductor.list_devices(call.caller, query):
            return DeviceView(device)
        raise DeviceNotFound(uuid=format_value(self.identifier))


class DeviceModes(Resource):
    """``/v2/devices/{uuid}/modes``"""

    @expose(errors=(409, 503))
    @requires('cyborg:device:get_modes')
    @since(V2_7)
    @accepts()
    def get(self, call: Call) -> DeviceModesView:
        """Show the modes of a device and what a change to each would do.

        For each mode the response has the inventory that appears or vanishes, and the
        ARQs that prevent the change.
        """
        plan = self.conductor.plan_modes(
            call.caller, call.parse_identifier(self.identifier, DeviceNotFound)
        )
        return DeviceModesView(plan)


class DeviceConfiguration(Resource):
    """``/v2/devices/{uuid}/configuration``"""

    @expose()
    @requires('cyborg:device:get_configuration')
    @since(V2_7)
    @accepts()
    def get(self, call: Call) -> DeviceConfigurationView:
        """Show the hardware sets of a device and the changes by them.

        The response has the state, the progress and the log of the changes. Change the
        configuration by a PATCH of the device.
        """
        uuid = call.parse_identifier(self.identifier, DeviceNotFound)
        configuration = self.conductor.show_configuration(call.caller, uuid)
        return DeviceConfigurationView(configuration)


class _DeviceAction(Resource):
    """An action on a device that sets its status, as a PATCH does since 2.4."""

    until = V2_4

    def _set_status(self, call: Call, status: DeviceStatus) -> None:
        uuid = call.parse_identifier(self.identifier, DeviceNotFound)
        self.conductor.set_device_status(call.caller, uuid, status)


class EnableDevice(_DeviceAction):
    """``/v2/devices/{uuid}/enable``"""

    @expose(status=204, errors=(409,))
    @requires('cyborg:device:enable')
    @accepts(body=NO_CONTENT)
    def post(self, call: Call) -> None:
        """Enable a device for scheduling.

        The maintenance of the device ends. The request may have no body.
        """
        self._set_status(call, DeviceStatus.ENABLED)


class DisableDevice(_DeviceAction):
    """``/v2/devices/{uuid}/disable``"""

    @expose(status=204, errors=(409,))
    @requires('cyborg:device:disable')
    @accepts(body=NO_CONTENT)
    def post(self, call: Call) -> None:
        """Disable a device for scheduling.

        The device is in maintenance: Placement offers none of its units to new
        instances. ARQs that use the device keep it. The request may have no body.
        """
        self._set_status(call, DeviceStatus.MAINTAINING)


def _needs_arqs(call: Call) -> bool:
    return call.microversion >= V2_4 and call.selects('arqs', 'arqs_count')


# Any: JSON.
def _describe_configuration(
    configuration: reconfiguration.DeviceConfiguration,
) -> dict[str, Any] | None:
    """Return the last successful change as clients request it; None: there is none."""
    for change in configuration.changes:
        if change.state is reconfiguration.ReconfigurationState.SUCCEEDED:
            return {'set': change.hardware_set, 'settings': dict(change.settings)}
    return None


# Any: JSON.
def complete_status(changes: dict[str, Any], document: Mapping[str, Any]) -> None:
    """Add the present status to changes of the reason; a removed reason is empty."""
    if _REASON in changes:
        changes.setdefault('status', document['status'])
        if changes[_REASON] is None:
            changes[_REASON] = ''


def parse_status_change(operations: list[Any]) -> tuple[DeviceStatus, str]:
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


# Any: the value has the type of its path.
def _parse_single(operations: list[Any], path: str) -> Any:
    """Return the value of a patch with one operation.

    :raises InvalidDevicePatch: there is another path
    """
    if len(operations) > 1:
        reason = f'{path} cannot be changed together with another path.'
        raise InvalidDevicePatch(reason=reason)
    return operations[0]['value']


class DeviceEvents(Resource):
    """``/v2/devices/{uuid}/events``"""

    @expose()
    @requires('cyborg:device:get_events')
    @since(V2_7)
    @accepts(arguments=arguments.PAGES, selectable=(DeviceEventView,))
    def get(self, call: Call) -> DeviceEventList:
        """List the events of a device, the latest first.

        The history of a removed device stays until it is purged.
        """
        uuid = call.parse_identifier(self.identifier, DeviceNotFound)
        query = paging.build_history_query(call)
        events = self.conductor.list_device_events(call.caller, uuid, query)
        links = paging.build_next_link(call, query, events)
        return DeviceEventList(uuid=uuid, events=events, events_links=links)
