# SPDX-License-Identifier: Apache-2.0
"""Host with FPGA cards, images for them, and the conductor's services around them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from sqlalchemy import select, update

from cyborg_lite.conductor.arqs.binding import BindHandler, build_bind_job
from cyborg_lite.conductor.arqs.releasing import ReleaseHandler
from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.conductor.bitstreams.loading import BitstreamLoader
from cyborg_lite.db.arqs import arqs, binding, release
from cyborg_lite.db.bitstreams import programming
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Deployable
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.devices import deployables
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.providers.providers import list_providers_of_host
from cyborg_lite.model.arqs.arqs import Binding, Scope
from cyborg_lite.model.devices.devices import DeployableRecord
from cyborg_lite.model.inventory.host_report import Device, HostReport
from cyborg_lite.model.jobs import Job, Owner
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.bind_rules import RULES
from tests.builders.bitstream_files import (
    IMAGE_ID,
    LARGEST,
    image,
)
from tests.builders.fpga_reports import HOST
from tests.builders.rows import OWNER, PROJECT, add_profile, states
from tests.doubles.agents import FakeAgents
from tests.doubles.consumers import FakeConsumers
from tests.doubles.glance import FakeGlance

EVERYBODY = Scope(project_id=None)
BY_ID = {'accel:bitstream_id': IMAGE_ID}
OTHER_IMAGE = 'aaaaaaaa-0000-4000-8000-000000000001'


def attributes(record: DeployableRecord) -> dict[str, str]:
    return {attribute.key: attribute.value for attribute in record.attributes}


@dataclass
class Cloud:
    """FPGA host, images, and the dependencies of bind and load jobs."""

    database: Database
    images: FakeGlance = field(default_factory=lambda: FakeGlance(image()))
    agents: FakeAgents = field(default_factory=FakeAgents)
    consumers: FakeConsumers = field(default_factory=FakeConsumers)

    def __post_init__(self) -> None:
        self.wipe_with()

    def wipe_with(self, *images: str) -> None:
        """Configure the images that released cards are wiped with."""
        library = BitstreamCatalog(self.images, LARGEST, images)
        self.loader = BitstreamLoader(self.database, self.agents, library)
        self.binder = BindHandler(
            self.database, self.agents, self.consumers, RULES, self.loader
        )

    def binder_that(self, place: Callable[[str], object]) -> BindHandler:
        """Return a bind handler with another function that updates Placement."""
        library = BitstreamCatalog(self.images, LARGEST)
        loader = BitstreamLoader(self.database, self.agents, library, place)
        return BindHandler(self.database, self.agents, self.consumers, RULES, loader)

    def release(self, job: Job) -> None:
        """Delete the ARQs and the allocation of a bind and run the release jobs."""
        self.delete_instance(job)
        self.clean()

    def delete_instance(self, job: Job) -> None:
        """Delete the ARQs and the allocation of the instance of a bind."""
        instance = job.payload['instance_uuid']
        self.database.write(release.delete_arqs_of_instance, instance, EVERYBODY, None)
        self.consumers.forget(instance)

    def clean(self) -> None:
        """Run the queued release jobs."""
        handler = ReleaseHandler(self.database, self.agents, self.loader)
        for job in self.database.write(
            queue.lease_jobs, OWNER, 10, [OperationKind.RELEASE]
        ):
            handler.run(job)

    def lapse(self) -> None:
        """Expire the lease of the running job and make waiting jobs due."""
        expiry = update(JobRow).values(lease_until=0, run_after=0)
        self.database.write(lambda session: session.execute(expiry))

    def take_over(self) -> Job:
        """Return the bind job as another conductor leases it."""
        self.lapse()
        successor = Owner('conductor:2:2', 30_000)
        (job,) = self.database.write(
            queue.lease_jobs, successor, 10, [OperationKind.BIND]
        )
        return job

    def region(self) -> programming.StoredRegion:
        return self.database.read(programming.find_region, self.record().uuid)

    def read_inventory(self) -> tuple[int, int]:
        """Return total and reserved as published in Placement."""
        (row,) = self.database.read(list_providers_of_host, HOST)
        return row.total, row.reserved

    def plug(self, *cards: Device) -> None:
        self.agents.cards |= {card.control_address: card for card in cards}
        self.report()

    def report(self) -> None:
        """Store a report of the agent."""
        devices = tuple(self.agents.cards.values())
        self.database.write(reports.store_report, HostReport(HOST, 'boot', devices))

    def record(self, name: str = f'{HOST}_0000:5e:00.0') -> DeployableRecord:
        query = Query(filters={'name': (name,)})
        (deployable,) = self.database.read(deployables.list_deployables, query)
        return deployable

    def accept_bind(
        self, group: dict[str, str], *names: str, instance: str | None = None
    ) -> Job:
        """Accept a bind with one ARQ for each deployable name."""
        names = names or (f'{HOST}_0000:5e:00.0',)
        instance = instance or str(uuid4())
        profile = add_profile(
            self.database, [{'resources:FPGA': str(len(names)), **group}]
        )
        created = self.database.write(arqs.create_arqs, profile, PROJECT)
        providers = [self.record(name).rp_uuid or '' for name in names]
        self.consumers.allocate(instance, providers, PROJECT, 'FPGA')
        bindings_by_arq = {
            arq.uuid: Binding(HOST, provider, instance)
            for arq, provider in zip(created, providers, strict=True)
        }
        job = build_bind_job(bindings_by_arq, RULES, 'req-1')
        return self.database.write(
            binding.accept_bind, bindings_by_arq, EVERYBODY, job, OWNER
        )

    def states(self, job: Job) -> list[str]:
        return states(self.database, list(job.payload['arq_uuids']))

    def reasons(self, job: Job) -> set[str | None]:
        deployable = self.database.read(arqs.list_arqs, Query(), EVERYBODY)
        arq_uuids = job.payload['arq_uuids']
        return {arq.status_reason for arq in deployable if arq.uuid in arq_uuids}

    def row(self, name: str = f'{HOST}_0000:5e:00.0') -> tuple[list[str], int]:
        """Return the traits and the reserved amount of a deployable."""
        statement = select(Deployable.traits, Deployable.reserved)
        rows = self.database.read(
            lambda session: session.execute(
                statement.where(Deployable.name == name)
            ).all()
        )
        return rows[0].traits, rows[0].reserved

    def kinds(self) -> set[str]:
        """Return the types of the waiting jobs."""
        rows = self.database.read(
            lambda session: list(session.scalars(select(JobRow.kind)))
        )
        return set(rows)
