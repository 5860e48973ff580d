# SPDX-License-Identifier: Apache-2.0
"""Bitstreams in Glance."""

from typing import Final

from cyborg_lite.api.call import arguments
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires, since
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.views.bitstreams import BitstreamList, BitstreamView

_FILTERS: Final = ('vendor', 'board', 'region', 'function')


class BitstreamCollection(Resource):
    """``/v2/bitstreams``"""

    @expose(errors=(404,))
    @requires('cyborg:bitstream:get_all')
    @since(V2_4)
    @accepts(arguments=(*_FILTERS, 'deployable'), selectable=(BitstreamView,))
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
        records = self.conductor.list_bitstreams(call.caller, filters, deployable)
        return BitstreamList(records)
