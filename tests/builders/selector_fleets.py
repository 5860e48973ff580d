# SPDX-License-Identifier: Apache-2.0
"""Fleets of deployables with typed attributes, and profiles with selectors."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from cyborg_lite import codec
from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.conductor.jobs.runner import Handler
from cyborg_lite.conductor.providers.selectors import SelectorsHandler
from cyborg_lite.conductor.providers.sync import PlacementSync, PlacementSyncHandler
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Attribute, Deployable
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.attribute_keys import GROUP_SIZE
from cyborg_lite.model.inventory.typed_attributes import TypedAttribute
from cyborg_lite.model.jobs import Owner
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from cyborg_lite.model.profiles.selector_keys import compile_group
from tests.builders.provider_rows import add_device, change_deployable
from tests.builders.selector_texts import DECLARATIONS
from tests.builders.service_rows import mark_up

OWNER = Owner('conductor:1:1', 30_000)
KNOWN = (
    *DECLARATIONS,
    *typed_attributes.SHARED,
    *typed_attributes.OF_EVERY_DEVICE,
)


def store_attributes(attributes: Iterable[TypedAttribute]) -> list[dict[str, str]]:
    """Return the column of a deployable."""
    return [codec.dump(attribute) for attribute in attributes]


def add_deployable(
    database: Database, host: str, part: str, *attributes: TypedAttribute
) -> str:
    """Add a deployable on a host whose agent is up; return its provider uuid."""
    mark_up(database, host)
    column = store_attributes(attributes)
    return add_device(database, host, part, typed_attributes=column)


def compile_keys(**keys: str) -> dict[str, str]:
    """Return a group with ``accel:`` keys and the trait of its selector."""
    group = {'resources:PGPU': '1', **{f'accel:{k}': v for k, v in keys.items()}}
    return compile_group('groups[0]', group, KNOWN)


def compile_set(value: str, units: int = 1) -> dict[str, str]:
    """Return the group of a set with its trait."""
    group = {'resources:PGPU': str(units), 'accel:same': value}
    return compile_group('groups[0]', group, KNOWN)


def make_group(database: Database, rp_uuid: str, size: int = 2, cards: int = 1) -> None:
    """Make the units of a deployable groups that are given together."""
    change_deployable(database, rp_uuid, num_accelerators=size * cards)
    database.write(add_attribute, rp_uuid, GROUP_SIZE, str(size))


def add_attribute(session: Session, rp_uuid: str, key: str, value: str) -> None:
    """Add a reported attribute of a deployable."""
    deployable_id = session.scalar(
        select(Deployable.id).where(Deployable.rp_uuid == rp_uuid)
    )
    values = {'deployable_id': deployable_id, 'key': key, 'value': value}
    attribute = insert(Attribute).values(uuid=str(uuid4()), reported=True, **values)
    session.execute(attribute)


def find_trait(group: Mapping[str, str]) -> str:
    """Return the trait of a compiled group."""
    (key,) = (key for key in group if key.startswith('trait:'))
    return key.removeprefix('trait:')


def create_profile(database: Database, *groups: dict[str, str]) -> DeviceProfile:
    """Store a profile in the same way as the conductor does."""
    uuid = str(uuid4())
    profile = DeviceProfile(uuid, f'p-{uuid}', None, groups, datetime.now(UTC))
    (created,) = database.write(profiles.create_profiles, [profile])
    return created


class SyncRunner:
    """Runs the jobs of selectors and of Placement syncs until none is due."""

    # Any: a fake Placement or the client of a real one.
    def __init__(
        self,
        database: Database,
        placement: Any,
        catalog: BitstreamCatalog | None = None,
    ) -> None:
        catalog = catalog or BitstreamCatalog(None, 0)
        self._database = database
        sync = PlacementSync(database, placement)
        self._handlers: dict[str, Handler] = {
            OperationKind.SELECTORS: SelectorsHandler(database, placement, catalog),
            OperationKind.RECONCILE: PlacementSyncHandler(database, sync),
        }

    def run(self) -> list[str]:
        """Return the types of the jobs that ran."""
        types: list[str] = []
        while True:
            jobs = self._database.write(queue.lease_jobs, OWNER, 100, self._handlers)
            if not jobs:
                return types
            for job in jobs:
                self._handlers[job.type].run(job)
                types.append(job.type)

    def sync(self, *hosts: str) -> None:
        """Sync hosts and run what follows."""
        for host in hosts:
            self._database.write(queue.add_job, queue.placement_sync_job(host))
        self.run()


def add_compute_nodes(placement: Placement, hosts: Iterable[str]) -> None:
    """Create the root providers of hosts."""
    for host in hosts:
        placement.create_provider(str(uuid4()), host, None)
