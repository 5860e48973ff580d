# SPDX-License-Identifier: Apache-2.0
"""Deployables, their attributes, and programming of a deployable with a bitstream."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from cyborg_lite.api.call import arguments, paging
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires
from cyborg_lite.api.call.resource import ApiContext, Resource
from cyborg_lite.api.microversion import V2_4, V2_5, V2_6, V2_7
from cyborg_lite.api.schemas import bodies
from cyborg_lite.api.views.deployables import (
    AttributeList,
    AttributeView,
    DeployableList,
    DeployableView,
)
from cyborg_lite.api.views.encoding import encode
from cyborg_lite.api.views.operations import JobView, OperationView
from cyborg_lite.errors.base import InvalidInput, NotFound
from cyborg_lite.errors.devices import AttributeNotFound, DeployableNotFound
from cyborg_lite.model import uuids
from cyborg_lite.model.devices.devices import DeployableRecord
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import format_value, is_storable

_INTEGER: Final = re.compile(r'-?[0-9]{1,10}')
_INT32: Final = range(-(2**31), 2**31)

_MISSING_DEPLOYABLE: Final = (DeployableNotFound, 'The deployable id')
_RELATED: Final = ('parent_uuid', 'root_uuid')
_DEVICE: Final = 'device_uuid'
_EXACT: Final = ('name', 'device_id', 'rp_uuid', 'driver_name', 'bitstream_id')
_FILTERS: Final = (*arguments.PAGING, *_RELATED, 'name')


class DeployableCollection(Resource):
    """``/v2/deployables``"""

    @expose()
    @requires('cyborg:deployable:get_all')
    @accepts(
        arguments=arguments.PAGING,
        filters=_FILTERS,
        newer={
            V2_4: (*_RELATED, *_EXACT),
            V2_5: (arguments.PREFIX,),
            V2_7: (_DEVICE,),
        },
        older={V2_6: ('device_id',)},
        selectable=(DeployableView,),
    )
    def get(self, call: Call) -> DeployableList:
        """List deployables.

        A deployable is a part of a device that has its own inventory in Placement.
        """
        values = call.arguments
        filters = arguments.select_filters(values, _EXACT)
        filters |= arguments.select_prefix_filter(values)
        for name in (*_RELATED, _DEVICE):
            if name in values:
                filters[name] = (arguments.parse_uuid(name, values[name]),)
        query = paging.build_query(call, **filters)
        query = replace(query, brief=not call.selects('attributes'))
        records = self.conductor.list_deployables(call.caller, query)
        return DeployableList(records, paging.build_next_link(call, query, records))


class DeployableResource(Resource):
    """``/v2/deployables/{uuid}``"""

    @expose()
    @requires('cyborg:deployable:get_one')
    @accepts(selectable=(DeployableView,))
    def get(self, call: Call) -> DeployableView:
        """Show a deployable.

        A deployable is a part of a device that has its own inventory in Placement.
        """
        uuid = call.parse_identifier(self.identifier, *_MISSING_DEPLOYABLE)
        return DeployableView(_find_deployable(self, call, uuid))


def _find_deployable(resource: Resource, call: Call, uuid: str) -> DeployableRecord:
    brief = not call.selects('attributes')
    query = Query(filters={'uuid': (uuid,)}, brief=brief)
    for deployable in resource.conductor.list_deployables(call.caller, query):
        return deployable
    raise DeployableNotFound(uuid=uuid)


class ProgramDeployable(Resource):
    """``/v2/deployables/{uuid}/program``"""

    @expose(accepted=(JobView, OperationView), errors=(409, 500, 504))
    @requires('cyborg:deployable:program')
    @accepts(body=bodies.PROGRAM)
    def patch(self, call: Call) -> DeployableView | JobView | OperationView:
        """Program a deployable with a bitstream.

        The body names an image in Glance. Since 2.4 the work continues after the
        response, which is 202 with a job, and since 2.7 with an operation. Before 2.4
        the response is sent when the deployable is programmed. Since 2.5 the body may
        be a JSON Patch (RFC 6902) of the deployable, whose list ``/program`` has the
        loaded image.
        """
        uuid = call.parse_identifier(self.identifier, *_MISSING_DEPLOYABLE)
        loaded = None
        if call.is_json_patch:
            record = _find_deployable(self, call, uuid)
            loaded = record.bitstream_id or ''
            program = [{'image_uuid': loaded}] if loaded else []
            document = {**encode(DeployableView(record), call), 'program': program}
            if not call.resolve_patch(bodies.PROGRAM, document):
                return DeployableView(record)
        image = arguments.parse_uuid(
            'image_uuid', call.body[0]['value'][0]['image_uuid']
        )
        if call.microversion >= V2_4:
            started = self.conductor.start_programming(call.caller, uuid, image, loaded)
            call.locate_operation(started.uuid)
            is_newer = call.microversion >= V2_7
            return OperationView(started) if is_newer else JobView(started)
        deployable = self.conductor.program_deployable(call.caller, uuid, image)
        return DeployableView(deployable)


class ProgramDeployableAlias(ProgramDeployable):
    """``/v2/deployables/{uuid}/program/{uuid}``, the path that the SDK uses."""

    until = V2_4

    def __init__(self, context: ApiContext, identifiers: Sequence[str] = ()) -> None:
        """Store the arguments.

        :raises NotFound: the two uuids of the path differ
        """
        super().__init__(context, identifiers)
        first, second = identifiers
        if uuids.normalize_uuid(first) != uuids.normalize_uuid(second):
            raise NotFound(what='Resource', name=format_value(second))


class AttributeCollection(Resource):
    """``/v2/attributes``; since 2.5 deployables have all attributes."""

    until = V2_4

    @expose()
    @requires('cyborg:attribute:get_all')
    @accepts(arguments=(*arguments.PAGING, 'deployable_id', 'key'))
    def get(self, call: Call) -> AttributeList:
        """List attributes.

        Attributes are keys and values of deployables, which an agent reports or an
        administrator adds.
        """
        # By contract, zero and the empty key mean that there is no filter.
        number = _parse_deployable_id(call.arguments.get('deployable_id', '0'))
        key = call.arguments.get('key')
        query = paging.build_query(
            call,
            deployable_id=(str(number),) if number else None,
            key=(key,) if key else None,
        )
        records = self.conductor.list_attributes(call.caller, query)
        return AttributeList(records, paging.build_next_link(call, query, records))

    @expose(status=201, errors=(404, 409))
    @requires('cyborg:attribute:create')
    @accepts(body=bodies.CREATE_ATTRIBUTE)
    def post(self, call: Call) -> AttributeView:
        """Add an attribute to a deployable.

        Reports of the agent do not delete the attribute. The response is 409 if the
        deployable has an attribute with the key.
        """
        fields = call.body.get('attribute', call.body)
        created = self.conductor.create_attribute(
            call.caller,
            _parse_deployable_id(fields['deployable_id']),
            key=_parse_text(fields, 'key'),
            value=_parse_text(fields, 'value'),
        )
        return AttributeView(created)


class AttributeResource(Resource):
    """``/v2/attributes/{uuid}``"""

    until = V2_4

    @expose()
    @requires('cyborg:attribute:get_one')
    @accepts()
    def get(self, call: Call) -> AttributeView:
        """Show an attribute.

        The attribute has a key, a value and the number of its deployable.
        """
        uuid = call.parse_identifier(
            self.identifier, AttributeNotFound, 'The attribute id'
        )
        query = Query(filters={'uuid': (uuid,)})
        for attribute in self.conductor.list_attributes(call.caller, query):
            return AttributeView(attribute)
        raise AttributeNotFound(uuid=uuid)

    @expose(status=204)
    @requires('cyborg:attribute:delete')
    @accepts()
    def delete(self, call: Call) -> None:
        """Delete an attribute.

        Later reports of the agent do not add a deleted attribute again.
        """
        uuid = call.parse_identifier(self.identifier, AttributeNotFound)
        self.conductor.delete_attribute(call.caller, uuid)


def _parse_deployable_id(value: str | int) -> int:
    """Return the id as a number.

    :raises InvalidInput: the value is not an integer of 32 bits
    """
    # int() fails on thousands of digits, so the pattern limits their number.
    is_integer = _INTEGER.fullmatch(value) if isinstance(value, str) else True
    number = int(value) if is_integer else _INT32.stop
    if number not in _INT32:
        raise InvalidInput(reason='deployable_id must be a 32-bit integer.')
    return number


def _parse_text(fields: dict[str, Any], field: str) -> str:
    text: str = fields[field]
    if not is_storable(text):
        raise InvalidInput(reason=f'{field} must be text without NUL characters.')
    return text
