# SPDX-License-Identifier: Apache-2.0
"""Attributes of deployables."""

import re
from typing import Any, Final

from cyborg_lite.api import arguments, paging
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires
from cyborg_lite.api.resource import Backing, Resource
from cyborg_lite.api.schemas import attributes as schemas
from cyborg_lite.api.views.attributes import AttributeList, AttributeView
from cyborg_lite.exceptions import AttributeNotFound, InvalidInput
from cyborg_lite.model import uuids
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import is_storable, shown

_INTEGER: Final = re.compile(r'-?[0-9]{1,10}')
_INT32: Final = range(-(2**31), 2**31)


class Attributes(Resource):
    """``/v2/attributes``"""

    def below(self, segment: str) -> Resource:
        return Attribute(self.backing, segment)

    @expose(AttributeList)
    @requires('cyborg:attribute:get_all')
    @accepts(arguments=(*arguments.PAGING, 'deployable_id', 'key'))
    def get(self, call: Call) -> AttributeList:
        # Zero and the empty key have always counted as not given.
        number = _deployable_id(call.arguments.get('deployable_id', '0'))
        key = call.arguments.get('key')
        query = arguments.query(
            call.arguments,
            deployable_id=(str(number),) if number else None,
            key=(key,) if key else None,
        )
        found = self.conductor.list_attributes(call.caller, query)
        more = paging.next_page(call, query, found)
        return AttributeList.showing(found, call.links, more)

    @expose(AttributeView, status=201, errors=(404, 409))
    @requires('cyborg:attribute:create')
    @accepts(body=schemas.CREATE)
    def post(self, call: Call) -> AttributeView:
        wanted = call.body.get('attribute', call.body)
        created = self.conductor.create_attribute(
            call.caller,
            _deployable_id(wanted['deployable_id']),
            key=_text(wanted, 'key'),
            value=_text(wanted, 'value'),
        )
        return AttributeView.showing(created, call.links)


class Attribute(Resource):
    """``/v2/attributes/{uuid}``"""

    def __init__(self, backing: Backing, identifier: str) -> None:
        super().__init__(backing)
        self._identifier = identifier

    @expose(AttributeView)
    @requires('cyborg:attribute:get_one')
    @accepts()
    def get(self, call: Call) -> AttributeView:
        uuid = arguments.uuid('An attribute', self._identifier)
        query = Query(filters={'uuid': (uuid,)})
        for attribute in self.conductor.list_attributes(call.caller, query):
            return AttributeView.showing(attribute, call.links)
        raise AttributeNotFound(uuid=uuid)

    @expose(status=204)
    @requires('cyborg:attribute:delete')
    @accepts()
    def delete(self, call: Call) -> None:
        uuid = uuids.canonical(self._identifier)
        if uuid is None:
            raise AttributeNotFound(uuid=shown(self._identifier))
        self.conductor.delete_attribute(call.caller, uuid)


def _deployable_id(given: str | int) -> int:
    """:raises InvalidInput: it is no integer, or one that no database would have"""
    # A number of thousands of digits is none to int(), so its length is looked at.
    digits = _INTEGER.fullmatch(given) if isinstance(given, str) else True
    number = int(given) if digits else _INT32.stop
    if number not in _INT32:
        raise InvalidInput(reason='deployable_id must be an integer of 32 bits.')
    return number


def _text(wanted: dict[str, Any], field: str) -> str:
    text: str = wanted[field]
    if not is_storable(text):
        raise InvalidInput(reason=f'{field} must be text without NUL.')
    return text
