# SPDX-License-Identifier: Apache-2.0
"""Calls of the conductor about the topology of hosts; part of ``ConductorAPI``."""

from cyborg_lite.model.host_topology import HostTopology
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import Caller


class TopologyCalls:
    """Typed calls about the topology of hosts."""

    _caller: Caller

    def show_host_topology(
        self, context: RequestContext, hostname: str
    ) -> HostTopology:
        """Return the devices of a host and who uses them.

        :raises HostNotFound: no agent and no device of the host is stored
        """
        answer = self._caller.call(
            context, 'show_host_topology', since='1.8', hostname=hostname
        )
        return wire.load(HostTopology, answer)
