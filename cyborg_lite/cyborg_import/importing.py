# SPDX-License-Identifier: Apache-2.0
"""Import of a database of OpenStack Cyborg, checked against Placement and Nova."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.cyborg_import import stored_rows
from cyborg_lite.cyborg_import.plan import (
    CloudRows,
    ImportNote,
    ImportPlan,
    Table,
)
from cyborg_lite.cyborg_import.planning import plan_import
from cyborg_lite.cyborg_import.source_rows import SourceDatabase
from cyborg_lite.db.core.engine import Database


class CyborgImport:
    """Plans, writes and undoes an import. It changes neither Placement nor Nova."""

    def __init__(self, database: Database, placement: Placement, nova: Nova) -> None:
        self._database = database
        self._placement = placement
        self._nova = nova

    def plan(self, source: SourceDatabase) -> ImportPlan:
        """Return what an import would insert, without changing anything.

        :raises CyborgError: Placement or Nova does not answer
        """
        stored = self._database.read(stored_rows.read_stored_rows)
        cloud = self._read_cloud(source)
        return plan_import(source, stored, cloud, datetime.now(UTC))

    def write(self, plan: ImportPlan) -> None:
        """Insert all rows of a plan in one transaction."""
        self._database.write(stored_rows.insert_rows, plan)

    def undo(
        self, uuids: Mapping[Table, Collection[str]]
    ) -> tuple[dict[Table, int], tuple[ImportNote, ...]]:
        """Delete imported rows; see ``db.cyborg_import.delete_rows``."""
        return self._database.write(stored_rows.delete_rows, uuids)

    def _read_cloud(self, source: SourceDatabase) -> CloudRows:
        """Read Placement and Nova; one request per provider, host and instance."""
        instances = {row.instance_uuid for row in source.arqs if row.instance_uuid}
        providers = {row.rp_uuid for row in source.deployables if row.rp_uuid}
        hosts = {row.hostname for row in source.devices}
        consumers = {uuid: self._placement.find_consumer(uuid) for uuid in instances}
        return CloudRows(
            rp_uuids=frozenset(
                uuid
                for uuid in providers
                if self._placement.find_provider(uuid) is not None
            ),
            compute_nodes=frozenset(
                host
                for host in hosts
                if self._placement.find_provider_by_name(host) is not None
            ),
            allocations={
                uuid: consumer.providers
                for uuid, consumer in consumers.items()
                if consumer is not None
            },
            missing_instances=self._nova.find_missing_instances(instances),
        )
