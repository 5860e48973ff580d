# SPDX-License-Identifier: Apache-2.0
"""Bitstreams in Glance."""

from typing import Final

from cyborg_lite.api.call import arguments, paging
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires, since
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.microversion import V2_4, V2_5
from cyborg_lite.api.views.bitstreams import BitstreamList, BitstreamView
from cyborg_lite.model.queries import SORT_KEYS

_FILTERS: Final = ('vendor', 'board', 'region', 'function')


class BitstreamCollection(Resource):
    """``/v2/bitstreams``"""

    @expose(errors=(404,))
    @requires('cyborg:bitstream:get_all')
    @since(V2_4)
    @accepts(
        arguments=(*_FILTERS, 'deployable'),
        newer={V2_5: arguments.PAGING},
        selectable=(BitstreamView,),
    )
    def get(self, call: Call) -> BitstreamList:
        """List the bitstreams in Glance.

        With the argument deployable, each bitstream has the reasons why this deployable
        does not accept it. The list has the images of all projects that the service can
        read.
        """
        values = call.arguments
        filters: dict[str, str] = {n: values[n] for n in _FILTERS if values.get(n)}
        deployable = ''
        if 'deployable' in values:
            deployable = arguments.parse_uuid('deployable', values['deployable'])
        query = paging.build_query(call)
        records = self.conductor.list_bitstreams(call.caller, filters, deployable)
        page = paging.select_page(query, records, *SORT_KEYS['bitstreams'])
        return BitstreamList(page, paging.build_next_link(call, query, page))
