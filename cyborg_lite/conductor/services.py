# SPDX-License-Identifier: Apache-2.0
"""The daemons of this deployment as clients of the API see them."""

from cyborg_lite.db import services
from cyborg_lite.db.engine import Database
from cyborg_lite.model.queries import Query
from cyborg_lite.model.services import Service


class ServiceRegistry:
    """Lists agents and conductors, with their states."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, query: Query) -> tuple[Service, ...]:
        """Return the daemons that match the query."""
        return self._database.read(services.list_services, query)
