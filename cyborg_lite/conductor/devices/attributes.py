# SPDX-License-Identifier: Apache-2.0
"""Attributes of deployables."""

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import deployables
from cyborg_lite.model.devices.devices import Attribute
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor


class AttributeService:
    """Lists, creates and deletes attributes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @serves(Conductor.list_attributes)
    def list(self, query: Query) -> tuple[Attribute, ...]:
        """Return the attributes that match the query."""
        return self._database.read(deployables.list_attributes, query)

    @serves(Conductor.create_attribute)
    def create(self, deployable_id: int, key: str, value: str) -> Attribute:
        """Add an attribute to a deployable."""
        return self._database.write(
            deployables.create_attribute, deployable_id, key, value
        )

    @serves(Conductor.delete_attribute)
    def delete(self, uuid: str, generation: int | None = None) -> None:
        """Delete an attribute."""
        self._database.write(deployables.delete_attribute, uuid, generation)
