# SPDX-License-Identifier: Apache-2.0
"""Topology of hosts for clients of the API."""

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import host_topology
from cyborg_lite.model.hosts.topology import HostTopology
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor


class HostTopologyService:
    """Reads the topology of a host from the stored inventory."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @serves(Conductor.show_host_topology)
    def show(self, hostname: str) -> HostTopology:
        """Return the topology of a host."""
        return self._database.read(host_topology.read_host_topology, hostname)
