# SPDX-License-Identifier: Apache-2.0
"""ARQs (accelerator requests)."""

from collections.abc import Sequence
from typing import Final

from cyborg_lite.api.call import arguments, paging
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires, since
from cyborg_lite.api.call.patches import arq_patch
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.microversion import V2_4, V2_5, V2_7
from cyborg_lite.api.schemas import bodies
from cyborg_lite.api.views.arqs import ArqList, ArqView, EventList, select_reason
from cyborg_lite.api.views.shapes import HIDDEN
from cyborg_lite.errors.arqs import (
    ArqNotFound,
    ArqsNotResolved,
    InstanceBindFailed,
    InstanceDeviceLost,
    InvalidPatch,
    PowerOnHeld,
)
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.errors.registry import find_code
from cyborg_lite.model import uuids
from cyborg_lite.model.arqs.arqs import RESOLVED_STATES, UNREADY_STATES, Arq, State
from cyborg_lite.model.profiles.device_profiles import AttachTarget
from cyborg_lite.model.profiles.grammar import is_valid_name
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import format_value

_BINDING: Final = 'Binding or unbinding an ARQ'
_DEVICE_LOST: Final = find_code(InstanceDeviceLost)
_RESOLVED: Final = tuple(sorted({*RESOLVED_STATES, State.UNKNOWN}))
_DETAILS: Final = (
    'status_reason',
    'error_code',
    'state_times',
    'deployable_uuid',
    'device_uuid',
)
_EXACT: Final = ('hostname', 'device_rp_uuid', 'device_profile_name', 'project_id')


class ArqCollection(Resource):
    """``/v2/accelerator_requests``"""

    @expose(errors=(409, 423))
    @requires('cyborg:arq:get_all')
    @accepts(
        arguments=(*arguments.PAGING, 'instance', 'bind_state', 'arqs'),
        newer={V2_4: (*_EXACT, 'state')},
        words={'state': State},
        selectable=(ArqView,),
    )
    def get(self, call: Call) -> ArqList:
        """List ARQs (accelerator requests).

        A user sees the ARQs of the project. A request with a service token sees ARQs of
        all projects if it names an instance or uuids. A list by instance with
        ``bind_state=resolved`` is refused with 423 while a bind runs. Before 2.4 a list
        by instance may be refused: with 409 if a bind has failed or a device is lost,
        with 423 while devices are not ready. With a service token its response waits
        for a bind of the instance that is running, for a limited time.
        """
        instance = _parse_instance(call)
        query = _build_query(call, instance)
        records = self.conductor.list_arqs(call.caller, query)
        if _needs_bind(call) and instance is not None and _is_complete(query):
            records = self.context.hold.wait(
                records,
                lambda: self.conductor.list_arqs(call.caller, query),
                lambda arqs: any(arq.state is State.BIND_STARTED for arq in arqs),
                self.context.hold_bind,
            )
        if instance is not None:
            arqs = records
            if not _is_complete(query):
                complete = Query(filters={'instance_uuid': (instance,)})
                arqs = self.conductor.list_arqs(call.caller, complete)
            self._check_usable(call, instance, arqs)
        return ArqList(records, paging.build_next_link(call, query, records))

    def _check_usable(self, call: Call, instance: str, arqs: Sequence[Arq]) -> None:
        """Check that the client may use the ARQs of an instance as they are now.

        :raises CyborgError: Nova must not start the instance, or a bind is running
        """
        # The API of Nova reads the ARQs of an instance only to shelve it. After an
        # error the instance would stay in the task `shelving`.
        if call.microversion < V2_4 and not call.is_from_nova_api:
            # A client that sends bind_state expects failed binds in the response.
            if self.context.refuse_failed_binds and not _needs_resolved(call):
                _check_no_bind_failed(call, instance, arqs)
                _check_no_device_lost(call, instance, arqs)
            if self.context.hold_power_on:
                _check_devices_ready(call, instance, arqs)
        _check_resolved(call, instance, arqs)

    @expose(status=201, errors=(404, 409))
    @requires('cyborg:arq:create')
    @accepts(body=bodies.CREATE_ARQS)
    def post(self, call: Call) -> ArqList:
        """Create one ARQ per requested accelerator of a device profile.

        The ARQs belong to the project of the token. They have no host and no instance
        until they are bound.
        """
        name = call.body['device_profile_name']
        # By contract a malformed name is an unknown profile (404), not invalid input.
        if not is_valid_name(name):
            raise DeviceProfileNotFound(name=format_value(name))
        arqs = self.conductor.create_arqs(call.caller, name, _parse_image(call))
        uuids = ','.join(arq.uuid for arq in arqs)
        call.location = f'v2/accelerator_requests?arqs={uuids}'
        return ArqList(arqs)

    @expose(status=202, errors=(404, 409))
    @requires('cyborg:arq:update', service_for=_BINDING)
    @accepts(body=bodies.PATCH_ARQS)
    def patch(self, call: Call) -> None:
        """Bind or unbind ARQs.

        The keys of the body are the uuids of ARQs. All operations are ``add``, which
        bind the ARQs to one instance, or all are ``remove``, which unbind them. The
        work continues after the response, and the service sends an event to Nova for
        each ARQ.
        """
        _apply_patch(self, call, arq_patch.parse_patch(call))

    @expose(status=204, errors=(404,))
    @requires('cyborg:arq:delete')
    @accepts(arguments=('instance',), older={V2_4: ('arqs',)})
    def delete(self, call: Call) -> None:
        """Delete all ARQs of an instance, or ARQs by uuid.

        The argument instance requires a service token. Before 2.5 the argument arqs may
        be used instead. After 404 the ARQs that exist have been deleted.
        """
        if len(call.arguments) != 1:
            names = 'exactly one of the arguments arqs and'
            if call.microversion > V2_4:
                names = 'the argument'
            raise InvalidInput(reason=f'Set {names} instance.')
        instance = _parse_instance(call)
        if instance is None:
            _delete_arqs(self, call, arguments.split_list(call.arguments['arqs']))
        else:
            call.require_service('Deleting the ARQs of an instance')
            self.conductor.delete_arqs_of_instance(call.caller, instance)


class ArqResource(Resource):
    """``/v2/accelerator_requests/{uuid}``"""

    @expose()
    @requires('cyborg:arq:get_one')
    @accepts(selectable=(ArqView,))
    def get(self, call: Call) -> ArqView:
        """Show an ARQ.

        The attach handle is set when the device is ready for the instance.
        """
        uuid = call.parse_identifier(self.identifier, ArqNotFound, 'The ARQ id')
        query = Query(filters={'uuid': (uuid,)}, detailed=_needs_details(call))
        for arq in self.conductor.list_arqs(call.caller, query):
            return ArqView(arq)
        raise ArqNotFound(uuid=uuid)

    @expose(status=202, errors=(409,))
    @requires('cyborg:arq:update', service_for=_BINDING)
    @accepts(body=bodies.PATCH_ARQS)
    def patch(self, call: Call) -> None:
        """Bind or unbind an ARQ.

        The body has the same form as for several ARQs, and contains the ARQ of the
        path. The work continues after the response.
        """
        if call.microversion >= V2_5:
            call.parse_identifier(self.identifier, ArqNotFound)
        patch = arq_patch.parse_patch(call)
        uuid = uuids.normalize_uuid(self.identifier)
        if uuid not in (*patch.bindings, *patch.arqs_to_unbind):
            raise InvalidPatch(reason='the body does not contain the ARQ of the path.')
        _apply_patch(self, call, patch)

    @expose(status=204)
    @requires('cyborg:arq:delete')
    @accepts()
    def delete(self, call: Call) -> None:
        """Delete an ARQ.

        The service releases its attach handle.
        """
        uuid = call.parse_identifier(self.identifier, ArqNotFound)
        _delete_arqs(self, call, (uuid,))


class ArqEvents(Resource):
    """``/v2/accelerator_requests/{uuid}/events``"""

    @expose()
    @requires('cyborg:arq:get_one')
    @since(V2_4)
    @accepts(newer={V2_7: arguments.PAGES})
    def get(self, call: Call) -> EventList:
        """List the state changes of an ARQ.

        Each change has its actor, its time, the seconds until the next change, and a
        reason. The list starts with the latest change, before 2.7 with the oldest. The
        history of a deleted ARQ stays until it is purged.
        """
        uuid = call.parse_identifier(self.identifier, ArqNotFound, 'The ARQ id')
        query = paging.build_history_query(call)
        steps = self.conductor.list_arq_steps(call.caller, uuid, query)
        if call.microversion < V2_7:
            return EventList(steps[::-1])
        return EventList(steps, paging.build_next_link(call, query, steps))


class InstanceEvents(Resource):
    """``/v2/instance_events``"""

    @expose()
    @requires('cyborg:arq:get_one')
    @since(V2_7)
    @accepts(arguments=('instance', *arguments.PAGES))
    def get(self, call: Call) -> EventList:
        """List what happened to the ARQs of an instance, the latest first.

        The argument instance is required. The list has the ARQs that the instance has
        or had, also after Nova has deleted them, and the binds that were refused. A
        user sees the steps of the project. The list is empty if there are none.
        """
        instance = _parse_instance(call)
        if instance is None:
            raise InvalidInput(reason='Set the argument instance.')
        query = paging.build_history_query(call)
        steps = self.conductor.list_instance_steps(call.caller, instance, query)
        return EventList(steps, paging.build_next_link(call, query, steps))


def _needs_details(call: Call) -> bool:
    return call.microversion >= V2_4 and call.selects(*_DETAILS)


def _needs_bind(call: Call) -> bool:
    """Check whether the client needs the result of a bind, and may wait for it."""
    return (
        call.microversion < V2_4
        and call.caller.service_request
        and not call.is_from_nova_api
        and not _needs_resolved(call)
        and call.may_wait
    )


def _parse_instance(call: Call) -> str | None:
    text = call.arguments.get('instance')
    return None if text is None else arguments.parse_uuid('instance', text)


def _parse_image(call: Call) -> str | None:
    image = call.body.get('image_uuid')
    if call.microversion < V2_4 or image is None:
        return None
    if not isinstance(image, str):
        raise InvalidInput(reason='image_uuid must be a string.')
    return arguments.parse_uuid('image_uuid', image)


def _needs_resolved(call: Call) -> bool:
    """Check whether the client requests resolved ARQs only.

    :raises InvalidInput: ``bind_state`` has another value
    """
    state = call.arguments.get('bind_state', '')
    if state not in ('', 'resolved'):
        raise InvalidInput(reason='bind_state must be resolved or empty.')
    return state == 'resolved'


def _build_query(call: Call, instance: str | None) -> Query:
    text = call.arguments.get('arqs')
    identifiers = None if text is None else arguments.split_list(text)
    # For an instance the response has all ARQs or is an error, see `_check_resolved`.
    by_state = _needs_resolved(call) and instance is None
    state = call.select_filters(('state',)).get('state')
    if state and by_state:
        raise InvalidInput(reason='Set only one of the arguments state and bind_state.')
    return paging.build_query(
        call,
        _needs_details(call),
        instance_uuid=None if instance is None else (instance,),
        uuid=identifiers
        and tuple(arguments.parse_uuid('arqs', text) for text in identifiers),
        state=_RESOLVED if by_state else state,
        **arguments.select_filters(call.arguments, _EXACT),
    )


def _is_complete(query: Query) -> bool:
    """Check whether the query selects all ARQs of the instance."""
    return (*query.filters, query.limit, query.marker) == ('instance_uuid', None, None)


def _check_no_bind_failed(call: Call, instance: str, arqs: Sequence[Arq]) -> None:
    """Check that no ARQ of an instance has failed.

    Nova accepts a failed ARQ as the result of a bind, and starts the instance without
    the device, if the event arrived before Nova began to wait for it.

    :raises InstanceBindFailed: an ARQ has failed
    """
    failed = [arq for arq in arqs if arq.state is State.BIND_FAILED]
    if failed:
        reasons = dict.fromkeys(
            select_reason(arq.status_reason, arq.error_code, call) or 'unknown'
            for arq in failed
        )
        raise InstanceBindFailed(
            instance=instance,
            arqs=', '.join(arq.uuid for arq in failed),
            reason=' '.join(reasons),
        )


def _check_no_device_lost(call: Call, instance: str, arqs: Sequence[Arq]) -> None:
    """Check that no device of an instance has left the host or has failed.

    :raises InstanceDeviceLost: a device that the guest uses is lost
    """
    affected_arqs = [
        arq for arq in arqs if arq.device_loss and arq.attach_target is AttachTarget.VM
    ]
    if affected_arqs:
        reasons = dict.fromkeys(
            select_reason(arq.device_loss, _DEVICE_LOST, call) or ''
            for arq in affected_arqs
        )
        raise InstanceDeviceLost(
            instance=instance,
            host=_name_hosts(call, affected_arqs),
            arqs=', '.join(arq.uuid for arq in affected_arqs),
            reason=' '.join(reasons),
        )


def _check_devices_ready(call: Call, instance: str, arqs: Sequence[Arq]) -> None:
    """Check that the agent has confirmed the devices of an instance.

    At power-on Nova reads the ARQs of an instance and ignores their states. Nova must
    not see the ARQs before the agent has confirmed the devices.

    :raises PowerOnHeld: devices of the instance are not confirmed
    """
    unconfirmed = [
        arq
        for arq in arqs
        if arq.state in UNREADY_STATES
        # No agent can prepare a lost device.
        and not arq.device_loss
        and arq.attach_target is AttachTarget.VM
    ]
    if unconfirmed:
        raise PowerOnHeld(
            instance=instance,
            host=_name_hosts(call, unconfirmed),
            arqs=', '.join(arq.uuid for arq in unconfirmed),
        )


def _name_hosts(call: Call, arqs: Sequence[Arq]) -> str:
    names = sorted({arq.hostname or '' for arq in arqs})
    return ', '.join(names) if call.sees_hosts else HIDDEN


def _check_resolved(call: Call, instance: str, arqs: Sequence[Arq]) -> None:
    """Check that all ARQs of an instance are resolved, if the client requires it.

    :raises ArqsNotResolved: bind jobs of the instance are still running
    """
    # Unknown means that the host is down; the ARQs are bound nevertheless.
    is_resolved = all(arq.is_resolved or arq.state is State.UNKNOWN for arq in arqs)
    if _needs_resolved(call) and not is_resolved:
        raise ArqsNotResolved(instance=instance)


def _apply_patch(resource: Resource, call: Call, patch: arq_patch.ArqPatch) -> None:
    conductor, caller = resource.conductor, call.caller
    if patch.bindings:
        operation = conductor.bind_arqs(caller, patch.bindings)
    else:
        operation = conductor.unbind_arqs(caller, patch.arqs_to_unbind)
    call.locate_operation(operation)


def _delete_arqs(resource: Resource, call: Call, identifiers: Sequence[str]) -> None:
    """Delete the ARQs that exist, and report the identifiers that do not.

    :raises InvalidInput: the list is empty
    :raises ArqNotFound: identifiers do not exist or are not UUIDs
    """
    if not identifiers:
        raise InvalidInput(reason='Name the ARQs to delete.')
    parsed = {text: uuids.normalize_uuid(text) for text in identifiers}
    valid = dict.fromkeys(uuid for uuid in parsed.values() if uuid)
    if valid:
        resource.conductor.delete_arqs(call.caller, tuple(valid))
    invalid = [text for text, uuid in parsed.items() if uuid is None]
    if invalid:
        raise ArqNotFound(uuid=format_value(', '.join(invalid)))
