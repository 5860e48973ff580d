# SPDX-License-Identifier: Apache-2.0
"""Accelerator requests."""

from collections.abc import Sequence
from typing import Final

from cyborg_lite.api import arguments, arq_patch, paging
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.resource import Backing, Resource
from cyborg_lite.api.schemas import arqs as schemas
from cyborg_lite.api.views.arq_events import EventList
from cyborg_lite.api.views.arqs import ArqList, ArqView
from cyborg_lite.exceptions import (
    ArqNotFound,
    ArqsNotResolved,
    DeviceProfileNotFound,
    InvalidInput,
    InvalidPatch,
    PowerOnHeld,
)
from cyborg_lite.model import uuids
from cyborg_lite.model.arqs import NOT_TO_BE_TRUSTED, RESOLVED, Arq, State
from cyborg_lite.model.device_profiles import AttachTarget
from cyborg_lite.model.profile_grammar import is_name
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import shown

_BINDING: Final = 'Binding or unbinding an accelerator request'
_RESOLVED: Final = tuple(sorted({*RESOLVED, State.UNKNOWN}))
_EXACT: Final = ('hostname', 'device_rp_uuid', 'device_profile_name', 'project_id')


class Arqs(Resource):
    """``/v2/accelerator_requests``"""

    def below(self, segment: str) -> Resource:
        return OneArq(self.backing, segment)

    @expose(ArqList, errors=(423,))
    @requires('cyborg:arq:get_all')
    @accepts(
        arguments=(*arguments.PAGING, 'instance', 'bind_state', 'arqs'),
        newer=(*_EXACT, 'state'),
    )
    def get(self, call: Call) -> ArqList:
        instance = _instance(call)
        query = _query(call, instance)
        found = self.conductor.list_arqs(call.caller, query)
        if instance is not None:
            every = found if _is_whole(query) else self._all(call, instance)
            if self.backing.hold_power_on and call.microversion < V2_4:
                _check_devices(instance, every)
            _check_settled(call, instance, every)
        return ArqList.showing(found, call, paging.next_page(call, query, found))

    def _all(self, call: Call, instance: str) -> Sequence[Arq]:
        query = Query(filters={'instance_uuid': (instance,)})
        return self.conductor.list_arqs(call.caller, query)

    @expose(ArqList, status=201, errors=(404, 409))
    @requires('cyborg:arq:create')
    @accepts(body=schemas.CREATE)
    def post(self, call: Call) -> ArqList:
        name = call.body['device_profile_name']
        # What can be no profile's name is as unknown as any other, says the contract.
        if not is_name(name):
            raise DeviceProfileNotFound(name=shown(name))
        made = self.conductor.create_arqs(call.caller, name, _image(call))
        return ArqList.showing(made, call)

    @expose(status=202, errors=(404, 409))
    @requires('cyborg:arq:update', service_for=_BINDING)
    @accepts(body=schemas.PATCH)
    def patch(self, call: Call) -> None:
        _apply(self, call, arq_patch.read(call))

    @expose(status=204, errors=(404,))
    @requires('cyborg:arq:delete')
    @accepts(arguments=('arqs', 'instance'))
    def delete(self, call: Call) -> None:
        if len(call.arguments) != 1:
            raise InvalidInput(reason='Give either arqs or instance.')
        instance = _instance(call)
        if instance is None:
            _delete(self, call, arguments.listed(call.arguments['arqs']))
        else:
            call.require_service('Deleting the accelerator requests of an instance')
            self.conductor.delete_arqs_of_instance(call.caller, instance)


class OneArq(Resource):
    """``/v2/accelerator_requests/{uuid}``"""

    def __init__(self, backing: Backing, identifier: str) -> None:
        super().__init__(backing)
        self._identifier = identifier

    def below(self, segment: str) -> Resource:
        if segment == 'events':
            return Events(self.backing, self._identifier)
        return super().below(segment)

    @expose(ArqView)
    @requires('cyborg:arq:get_one')
    @accepts()
    def get(self, call: Call) -> ArqView:
        uuid = arguments.uuid('An accelerator request', self._identifier)
        detailed = call.microversion >= V2_4
        query = Query(filters={'uuid': (uuid,)}, detailed=detailed)
        for arq in self.conductor.list_arqs(call.caller, query):
            return ArqView.showing(arq, call)
        raise ArqNotFound(uuid=uuid)

    @expose(status=202, errors=(409,))
    @requires('cyborg:arq:update', service_for=_BINDING)
    @accepts(body=schemas.PATCH)
    def patch(self, call: Call) -> None:
        patch = arq_patch.read(call)
        uuid = uuids.canonical(self._identifier)
        if uuid not in (*patch.bindings, *patch.unbound):
            raise InvalidPatch(reason='the body does not name the request of the path.')
        _apply(self, call, patch)

    @expose(status=204)
    @requires('cyborg:arq:delete')
    @accepts()
    def delete(self, call: Call) -> None:
        _delete(self, call, (self._identifier,))


class Events(Resource):
    """``/v2/accelerator_requests/{uuid}/events``"""

    def __init__(self, backing: Backing, identifier: str) -> None:
        super().__init__(backing)
        self._identifier = identifier

    @expose(EventList)
    @requires('cyborg:arq:get_one')
    @since(V2_4, 'The history of an accelerator request')
    @accepts()
    def get(self, call: Call) -> EventList:
        uuid = arguments.uuid('An accelerator request', self._identifier)
        return EventList.showing(self.conductor.list_arq_steps(call.caller, uuid))


def _instance(call: Call) -> str | None:
    given = call.arguments.get('instance')
    return None if given is None else arguments.uuid('instance', given)


def _image(call: Call) -> str | None:
    given = call.body.get('image_uuid')
    if call.microversion < V2_4 or given is None:
        return None
    if not isinstance(given, str):
        raise InvalidInput(reason='image_uuid must be a string.')
    return arguments.uuid('image_uuid', given)


def _resolved_alone(call: Call) -> bool:
    """:raises InvalidInput: another state of a bind is asked for"""
    state = call.arguments.get('bind_state', '')
    if state not in ('', 'resolved'):
        raise InvalidInput(reason='bind_state must be resolved.')
    return state == 'resolved'


def _query(call: Call, instance: str | None) -> Query:
    listed = call.arguments.get('arqs')
    chosen = None if listed is None else arguments.listed(listed)
    # Of an instance all are shown or none, see `_check_settled`.
    by_state = _resolved_alone(call) and instance is None
    state = arguments.exact(call.arguments, ('state',)).get('state')
    if state and by_state:
        raise InvalidInput(reason='Give either state or bind_state.')
    return arguments.query(
        call.arguments,
        call.microversion >= V2_4,
        instance_uuid=None if instance is None else (instance,),
        uuid=chosen and tuple(arguments.uuid('arqs', one) for one in chosen),
        state=_RESOLVED if by_state else state,
        **arguments.exact(call.arguments, _EXACT),
    )


def _is_whole(query: Query) -> bool:
    """Nothing is left out but what belongs to other instances."""
    return (*query.filters, query.limit, query.marker) == ('instance_uuid', None, None)


def _check_devices(instance: str, every: Sequence[Arq]) -> None:
    """Say that an instance must wait, in place of what it would start with.

    Nova reads the requests of an instance at power-on and does not look at their
    states: it must not see them before their host has confirmed the devices.

    :raises PowerOnHeld: it has not
    """
    held = [
        arq
        for arq in every
        if arq.state in NOT_TO_BE_TRUSTED and arq.attach_target is AttachTarget.VM
    ]
    if held:
        raise PowerOnHeld(
            instance=instance,
            host=', '.join(sorted({arq.hostname or '' for arq in held})),
            arqs=', '.join(arq.uuid for arq in held),
        )


def _check_settled(call: Call, instance: str, every: Sequence[Arq]) -> None:
    """:raises ArqsNotResolved: all are to be resolved, and some are under way"""
    # Who is silent has bound them all the same.
    settled = all(arq.resolved or arq.state is State.UNKNOWN for arq in every)
    if _resolved_alone(call) and not settled:
        raise ArqsNotResolved(instance=instance)


def _apply(resource: Resource, call: Call, patch: arq_patch.Patch) -> None:
    if patch.bindings:
        resource.conductor.bind_arqs(call.caller, patch.bindings)
    else:
        resource.conductor.unbind_arqs(call.caller, patch.unbound)


def _delete(resource: Resource, call: Call, identifiers: Sequence[str]) -> None:
    """Delete those that exist, then complain of the others.

    :raises InvalidInput: none is named
    :raises ArqNotFound: some do not exist, or are no UUIDs
    """
    if not identifiers:
        raise InvalidInput(reason='Name the accelerator requests to delete.')
    spelled = {one: uuids.canonical(one) for one in identifiers}
    existing = dict.fromkeys(uuid for uuid in spelled.values() if uuid)
    if existing:
        resource.conductor.delete_arqs(call.caller, tuple(existing))
    strange = [one for one, uuid in spelled.items() if uuid is None]
    if strange:
        raise ArqNotFound(uuid=shown(', '.join(strange)))
