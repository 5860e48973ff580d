# SPDX-License-Identifier: Apache-2.0
"""The bitstreams of the cloud, and which of them a deployable takes."""

from typing import Final

from cyborg_lite.api import arguments
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.views.bitstreams import BitstreamList

_FILTERS: Final = ('vendor', 'board', 'region', 'function')


class Bitstreams(Resource):
    """``/v2/bitstreams``"""

    @expose(BitstreamList, errors=(404,))
    @requires('cyborg:bitstream:get_all')
    @since(V2_4, 'The list of bitstreams')
    @accepts(arguments=(*_FILTERS, 'deployable'))
    def get(self, call: Call) -> BitstreamList:
        given = call.arguments
        filters: dict[str, str] = {n: given[n] for n in _FILTERS if given.get(n)}
        deployable = ''
        if 'deployable' in given:
            deployable = arguments.uuid('deployable', given['deployable'])
        found = self.conductor.list_bitstreams(call.caller, filters, deployable)
        return BitstreamList.showing(found)
