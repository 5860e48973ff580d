# SPDX-License-Identifier: Apache-2.0
"""The daemons of this deployment as clients of the API see them."""

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.model.hosts.services import Service
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor


class ServiceRegistry:
    """Lists agents and conductors, with their states, and answers for this one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @serves(Conductor.list_services)
    def list(self, query: Query) -> tuple[Service, ...]:
        """Return the daemons that match the query."""
        return self._database.read(services.list_services, query)

    @serves(Conductor.check_database)
    def check_database(self) -> None:
        """Read one row."""
        self._database.read(services.list_services, Query(limit=1))

    @serves(Conductor.echo)
    def echo(self) -> None:
        """Do nothing."""
