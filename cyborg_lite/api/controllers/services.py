# SPDX-License-Identifier: Apache-2.0
"""The daemons of the service."""

from typing import ClassVar, Final

from cyborg_lite.api import arguments, paging
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_4, V2_5, V2_32
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.views.services import ServiceList, ServiceView
from cyborg_lite.exceptions import ServiceNotFound
from cyborg_lite.model import uuids
from cyborg_lite.model.text import format_value

_EXACT: Final = ('binary', 'host', 'state')


class ServiceCollection(Resource):
    """``/v2/services``"""

    @expose(ServiceList)
    @requires('cyborg:service:get_all')
    @since(V2_4, 'The list of services')
    @accepts(
        arguments=(*arguments.PAGING, *_EXACT),
        selectable=(ServiceView,),
        selectable_since=V2_32,
    )
    def get(self, call: Call) -> ServiceList:
        """List the daemons of the service.

        Each daemon has its host, its version, its state, and the time of its last
        heartbeat.
        """
        filters = arguments.select_filters(call.arguments, _EXACT)
        query = paging.build_query(call, **filters)
        records = self.conductor.list_services(call.caller, query)
        return ServiceList(records, paging.build_next_link(call, query, records))


class ServiceResource(Resource):
    """``/v2/services/{uuid}``"""

    path_since: ClassVar = V2_5

    @expose(status=204, errors=(404, 409))
    @requires('cyborg:service:delete')
    @since(V2_5, 'The deletion of a service')
    @accepts()
    def delete(self, call: Call) -> None:
        """Delete a daemon that is down.

        With an agent the service deletes its host: the devices, handles, jobs and
        resource providers. The response is 409 while the daemon is up, or while ARQs of
        instances use the host.
        """
        uuid = uuids.normalize_uuid(self.identifier)
        if uuid is None:
            raise ServiceNotFound(uuid=format_value(self.identifier))
        self.conductor.delete_service(call.caller, uuid)
