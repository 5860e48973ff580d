# SPDX-License-Identifier: Apache-2.0
"""Hosts, and the daemons of the service."""

from dataclasses import replace
from typing import Final

from cyborg_lite.api.call import arguments, paging
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires, since
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.microversion import V2_4, V2_6, V2_7
from cyborg_lite.api.views.hosts import HostTopologyView, ServiceList, ServiceView
from cyborg_lite.errors.hosts import HostNotFound, ServiceNotFound
from cyborg_lite.model.hosts.services import ServiceState
from cyborg_lite.model.text import format_value, is_storable

_EXACT: Final = ('binary', 'hostname', 'state')
_FORMER_NAME: Final = 'host'  # of the host of a daemon, before 2.7


class HostCollection(Resource):
    """``/v2/hosts``; hosts cannot be listed."""


class HostResource(Resource):
    """``/v2/hosts/{name}``; it only has a topology."""


class HostTopologyResource(Resource):
    """``/v2/hosts/{name}/topology``"""

    @expose()
    @requires('cyborg:host:get_topology')
    @since(V2_7)
    @accepts(selectable=(HostTopologyView,))
    def get(self, call: Call) -> HostTopologyView:
        """Show the topology of a host.

        The response has the NUMA nodes of the host, their devices and deployables, and
        the availability of each unit. Only administrators see the ARQs, instances and
        projects that use the units.
        """
        if not is_storable(self.identifier):
            raise HostNotFound(host=format_value(self.identifier))
        topology = self.conductor.show_host_topology(call.caller, self.identifier)
        return HostTopologyView(topology)


class ServiceCollection(Resource):
    """``/v2/services``"""

    @expose()
    @requires('cyborg:service:get_all')
    @since(V2_4)
    @accepts(
        arguments=(*arguments.PAGING, 'binary', 'state'),
        newer={V2_7: ('hostname',)},
        older={V2_6: (_FORMER_NAME,)},
        words={'state': ServiceState},
        selectable=(ServiceView,),
    )
    def get(self, call: Call) -> ServiceList:
        """List the daemons of the service.

        Each daemon has its host, its version, its state, and the time of its last
        heartbeat.
        """
        filters = call.select_filters(_EXACT)
        if _FORMER_NAME in call.arguments:
            filters['hostname'] = (call.arguments[_FORMER_NAME],)
        query = paging.build_query(call, **filters)
        if call.microversion < V2_7 and query.sort_key == _FORMER_NAME:
            query = replace(query, sort_key='hostname')
        records = self.conductor.list_services(call.caller, query)
        return ServiceList(records, paging.build_next_link(call, query, records))


class ServiceResource(Resource):
    """``/v2/services/{uuid}``"""

    @expose(status=204, errors=(404, 409))
    @requires('cyborg:service:delete')
    @since(V2_7)
    @accepts()
    def delete(self, call: Call) -> None:
        """Delete a daemon that is down.

        With an agent the service deletes its host: the devices, handles, jobs and
        resource providers. The response is 409 while the daemon is up, or while ARQs of
        instances use the host.
        """
        uuid = call.parse_identifier(self.identifier, ServiceNotFound)
        self.conductor.delete_service(call.caller, uuid)
