# SPDX-License-Identifier: Apache-2.0
"""The daemons of the service."""

from typing import Final

from cyborg_lite.api import arguments, paging
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_4, V2_5, Microversion
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.views.services import ServiceList
from cyborg_lite.exceptions import NotFound, ServiceNotFound
from cyborg_lite.model import uuids
from cyborg_lite.model.text import format_value

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


class ServiceResource(Resource):
    """``/v2/services/{uuid}``"""

    @classmethod
    def find_method(cls, http_method: str, version: Microversion) -> str:
        """Return the name of the method; older microversions lack the path.

        :raises NotFound: the microversion is older
        """
        if version < V2_5:
            raise NotFound(what='Resource', name='with this path')
        return super().find_method(http_method, version)

    @expose(status=204, errors=(404, 409))
    @requires('cyborg:service:delete')
    @since(V2_5, 'The deletion of a service')
    @accepts()
    def delete(self, call: Call) -> None:
        """Delete a daemon that is down; for an agent, its host with all devices."""
        uuid = uuids.normalize_uuid(self.identifier)
        if uuid is None:
            raise ServiceNotFound(uuid=format_value(self.identifier))
        self.conductor.delete_service(call.caller, uuid)
