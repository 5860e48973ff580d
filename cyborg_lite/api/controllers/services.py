# SPDX-License-Identifier: Apache-2.0
"""The daemons of the service."""

from typing import Final

from cyborg_lite.api import arguments, paging
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.views.services import ServiceList

_EXACT: Final = ('binary', 'host', 'state')


class ServiceCollection(Resource):
    """``/v2/services``"""

    @expose(ServiceList)
    @requires('cyborg:service:get_all')
    @since(V2_4, 'The list of services')
    @accepts(arguments=(*arguments.PAGING, *_EXACT))
    def get(self, call: Call) -> ServiceList:
        """List daemons with their state."""
        filters = arguments.select_filters(call.arguments, _EXACT)
        query = arguments.build_query(call.arguments, **filters)
        records = self.conductor.list_services(call.caller, query)
        return ServiceList.build(records, paging.build_next_link(call, query, records))
