# SPDX-License-Identifier: Apache-2.0
"""Hosts."""

from typing import ClassVar

from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_9, V2_32
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.views.host_topology import HostTopologyView
from cyborg_lite.exceptions import HostNotFound
from cyborg_lite.model.text import format_value, is_storable


class _HostPath(Resource):
    """A path below ``/v2/hosts``."""

    path_since: ClassVar = V2_9


class HostCollection(_HostPath):
    """``/v2/hosts``; hosts cannot be listed."""


class HostResource(_HostPath):
    """``/v2/hosts/{name}``; it only has a topology."""


class HostTopologyResource(_HostPath):
    """``/v2/hosts/{name}/topology``"""

    @expose(HostTopologyView)
    @requires('cyborg:host:get_topology')
    @since(V2_9, 'The topology of a host')
    @accepts(selectable=(HostTopologyView,), selectable_since=V2_32)
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
