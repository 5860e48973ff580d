# SPDX-License-Identifier: Apache-2.0
"""Deployables as clients of the API see them."""

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import deployables
from cyborg_lite.model.devices.devices import DeployableRecord
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor


class DeployableService:
    """Lists deployables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @serves(Conductor.list_deployables)
    def list(self, query: Query) -> tuple[DeployableRecord, ...]:
        """Return the deployables that match the query."""
        return self._database.read(deployables.list_deployables, query)
