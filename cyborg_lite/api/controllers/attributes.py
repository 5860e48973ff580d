# SPDX-License-Identifier: Apache-2.0
"""Attributes of deployables."""

import re
from typing import Any, Final

from cyborg_lite.api import arguments, paging
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.schemas import attributes as schemas
from cyborg_lite.api.views.attributes import AttributeList, AttributeView
from cyborg_lite.exceptions import AttributeNotFound, InvalidInput
from cyborg_lite.model import uuids
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import format_value, is_storable

_INTEGER: Final = re.compile(r'-?[0-9]{1,10}')
_INT32: Final = range(-(2**31), 2**31)


class AttributeCollection(Resource):
    """``/v2/attributes``"""

    @expose(AttributeList)
    @requires('cyborg:attribute:get_all')
    @accepts(
        arguments=(*arguments.PAGING, 'deployable_id', 'key'),
        selectable=(AttributeView,),
    )
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

    @expose(AttributeView, status=201, errors=(404, 409))
    @requires('cyborg:attribute:create')
    @accepts(body=schemas.CREATE)
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

    @expose(AttributeView)
    @requires('cyborg:attribute:get_one')
    @accepts(selectable=(AttributeView,))
    def get(self, call: Call) -> AttributeView:
        """Show an attribute.

        The attribute has a key, a value and the number of its deployable.
        """
        uuid = arguments.parse_uuid('The attribute id', self.identifier)
        query = Query(filters={'uuid': (uuid,)})
        for attribute in self.conductor.list_attributes(call.caller, query):
            return AttributeView(attribute)
        raise AttributeNotFound(uuid=uuid)

    @expose(status=204, errors=(409,))
    @requires('cyborg:attribute:delete')
    @accepts(precondition=True)
    def delete(self, call: Call) -> None:
        """Delete an attribute.

        Later reports of the agent do not add a deleted attribute again.
        """
        uuid = uuids.normalize_uuid(self.identifier)
        if uuid is None:
            raise AttributeNotFound(uuid=format_value(self.identifier))
        self.conductor.delete_attribute(call.caller, uuid, call.generation)


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
