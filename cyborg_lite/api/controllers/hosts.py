# SPDX-License-Identifier: Apache-2.0
"""Hosts, and the daemons of the service."""

from dataclasses import replace
from http import HTTPStatus
from typing import Final

from cyborg_lite.api.call import arguments, paging
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires, since
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.controllers.devices import complete_status, parse_status_change
from cyborg_lite.api.microversion import V2_4, V2_6, V2_7
from cyborg_lite.api.schemas import bodies
from cyborg_lite.api.views.encoding import encode
from cyborg_lite.api.views.hosts import (
    HostList,
    HostTopologyView,
    HostView,
    ServiceList,
    ServiceView,
)
from cyborg_lite.errors.hosts import HostNotFound, ServiceNotFound
from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR, HostSummary, ServiceState
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import format_value, is_storable

_EXACT: Final = ('binary', 'hostname', 'state')
_FORMER_NAME: Final = 'host'  # of the host of a daemon, before 2.7


class HostCollection(Resource):
    """``/v2/hosts``"""

    @expose()
    @requires('cyborg:host:get_all')
    @since(V2_7)
    @accepts(
        arguments=(*arguments.PAGING, 'name', 'agent_state'),
        words={'agent_state': ServiceState},
        selectable=(HostView,),
    )
    def get(self, call: Call) -> HostList:
        """List hosts with an agent or devices, by name.

        Each host has the state, the version and the last heartbeat of its agent, and
        the numbers of its devices and ARQs.
        """
        name = call.arguments.get('name')
        query = paging.build_query(
            call,
            name=None if name is None else (name,),
            agent=call.words.get('agent_state'),
        )
        records = self.conductor.list_hosts(call.caller, query)
        return HostList(records, paging.build_next_link(call, query, records))


class HostResource(Resource):
    """``/v2/hosts/{name}``"""

    @expose()
    @requires('cyborg:host:get_one')
    @since(V2_7)
    @accepts(selectable=(HostView,))
    def get(self, call: Call) -> HostView:
        """Show a host.

        The topology of the host has its devices and the users of their units.
        """
        return HostView(self._find(call))

    def _find(self, call: Call) -> HostSummary:
        query = Query(filters={'name': (_parse_name(self.identifier),)})
        for host in self.conductor.list_hosts(call.caller, query):
            return host
        raise HostNotFound(host=format_value(self.identifier))

    @expose(errors=(409,))
    @requires('cyborg:host:update')
    @since(V2_7)
    @accepts(body=bodies.PATCH_STATUS)
    def patch(self, call: Call) -> HostView:
        """Disable or enable all devices of a host.

        The body is a list of changes, or a JSON Patch (RFC 6902) if its media type says
        so, with the path ``/status``, and a reason in ``/reason``. ARQs keep their
        devices. A device stays in maintenance while its mode or its configuration is
        changed.
        """
        expected = None
        if call.is_json_patch:
            expected = self._find(call)
            document = {**encode(HostView(expected), call), 'reason': None}
            if not call.resolve_patch(bodies.PATCH_STATUS, document, complete_status):
                return HostView(expected)
        status, reason = parse_status_change(call.body)
        name = _parse_name(self.identifier)
        self.conductor.set_host_status(call.caller, name, status, reason, expected)
        return HostView(self._find(call))

    @expose(status=HTTPStatus.ACCEPTED, errors=(409,))
    @requires('cyborg:host:delete')
    @since(V2_7)
    @accepts(arguments=('drain',))
    def delete(self, call: Call) -> None:
        """Forget a host that is gone: its devices, handles, jobs, agent and providers.

        The operation ends when Placement has no provider of the host any more. The
        response is 409 while the agent is up, or while ARQs of instances use the host.
        The text names the ARQs.
        """
        drains = arguments.select_boolean_filters(call.arguments, ('drain',))
        drain, name = drains.get('drain') == ('true',), _parse_name(self.identifier)
        call.locate_operation(self.conductor.forget_host(call.caller, name, drain))


def _parse_name(text: str) -> str:
    """Return the name of a host.

    :raises HostNotFound: no host can have the name
    """
    if not is_storable(text):
        raise HostNotFound(host=format_value(text))
    return text


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
        name = _parse_name(self.identifier)
        topology = self.conductor.show_host_topology(call.caller, name)
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
        heartbeat. Since 2.7 the list has no agents, see the hosts.
        """
        filters = call.select_filters(_EXACT)
        if _FORMER_NAME in call.arguments:
            filters['hostname'] = (call.arguments[_FORMER_NAME],)
        if call.microversion >= V2_7:
            binaries = filters.get('binary', (CONDUCTOR,))
            filters['binary'] = tuple(name for name in binaries if name != AGENT)
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

        The response is 409 while the daemon is up. An agent is deleted with its host.
        """
        uuid = call.parse_identifier(self.identifier, ServiceNotFound)
        self.conductor.delete_service(call.caller, uuid)
