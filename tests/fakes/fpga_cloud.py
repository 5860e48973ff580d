# SPDX-License-Identifier: Apache-2.0
"""A host with FPGA cards, images for them, and the conductor's rooms around them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from sqlalchemy import select, update

from cyborg_lite.conductor.binding import BindHandler, bind_job
from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.conductor.loading import Loader
from cyborg_lite.conductor.releasing import ReleaseHandler
from cyborg_lite.db import (
    arqs,
    binding,
    deployables,
    inventory,
    jobs,
    programming,
    release,
)
from cyborg_lite.db.engine import Database
from cyborg_lite.db.providers import providers_of_host
from cyborg_lite.db.tables import Deployable
from cyborg_lite.db.tables import Job as JobRow
from cyborg_lite.model.arqs import Binding, Scope
from cyborg_lite.model.devices import DeployableRecord
from cyborg_lite.model.inventory import Device, HostReport
from cyborg_lite.model.jobs import Job, Kind, Owner
from cyborg_lite.model.queries import Query
from tests.fakes.agents import FakeAgents
from tests.fakes.bitstream_files import (
    IMAGE_ID,
    LARGEST,
    image,
)
from tests.fakes.consumers import FakeConsumers
from tests.fakes.fpga import HOST
from tests.fakes.images import FakeImages
from tests.fakes.rows import OWNER, PROJECT, add_profile, states
from tests.unit.conductor.test_binding import RULES

EVERYBODY = Scope(project_id=None)
BY_ID = {'accel:bitstream_id': IMAGE_ID}
OTHER_IMAGE = 'aaaaaaaa-0000-4000-8000-000000000001'


def attributes(record: DeployableRecord) -> dict[str, str]:
    return {each.key: each.value for each in record.attributes}


@dataclass
class Cloud:
    """A host with FPGA cards, images, and all that a bind or a load meets."""

    database: Database
    images: FakeImages = field(default_factory=lambda: FakeImages(image()))
    agents: FakeAgents = field(default_factory=FakeAgents)
    consumers: FakeConsumers = field(default_factory=FakeConsumers)

    def __post_init__(self) -> None:
        self.wipe_with()

    def wipe_with(self, *images: str) -> None:
        """As if the operator had chosen these for what was released."""
        library = Library(self.images, LARGEST, images)
        self.loader = Loader(self.database, self.agents, library)
        self.binder = BindHandler(
            self.database, self.agents, self.consumers, RULES, self.loader
        )

    def binder_that(self, place: Callable[[str], object]) -> BindHandler:
        """One that does this to bring Placement in line."""
        library = Library(self.images, LARGEST)
        loader = Loader(self.database, self.agents, library, place)
        return BindHandler(self.database, self.agents, self.consumers, RULES, loader)

    def release(self, job: Job) -> None:
        """The requests of a bind are deleted, and their host cleans what they had."""
        of_instance = job.payload['instance'], EVERYBODY, None
        self.database.write(release.delete_of_instance, *of_instance)
        self.clean()

    def clean(self) -> None:
        """Run what was written for those that were released."""
        handler = ReleaseHandler(self.database, self.agents, self.loader)
        for job in self.database.write(jobs.take, OWNER, 10, [Kind.RELEASE]):
            handler.run(job)

    def lapse(self) -> None:
        """Whoever runs a job has gone silent, and what waits is due."""
        silent = update(JobRow).values(lease_until=0, run_after=0)
        self.database.write(lambda session: session.execute(silent))

    def take_over(self) -> Job:
        """The bind that another conductor gets then."""
        self.lapse()
        successor = Owner('conductor:2:2', 30_000)
        (job,) = self.database.write(jobs.take, successor, 10, [Kind.BIND])
        return job

    def region(self) -> programming.Region:
        return self.database.read(programming.region, self.record().uuid)

    def told(self) -> tuple[int, int]:
        """Total and reserved, as Placement is told."""
        (row,) = self.database.read(providers_of_host, HOST)
        return row.total, row.reserved

    def plug(self, *cards: Device) -> None:
        self.agents.cards |= {card.address: card for card in cards}
        self.report()

    def report(self) -> None:
        """What the agent does every now and then."""
        devices = tuple(self.agents.cards.values())
        self.database.write(inventory.store, HostReport(HOST, 'boot', devices))

    def record(self, name: str = f'{HOST}_0000:5e:00.0') -> DeployableRecord:
        query = Query(filters={'name': (name,)})
        (found,) = self.database.read(deployables.listed, query)
        return found

    def accepted(
        self, group: dict[str, str], *names: str, instance: str | None = None
    ) -> Job:
        """A bind of one request for each deployable that is named."""
        names = names or (f'{HOST}_0000:5e:00.0',)
        instance = instance or str(uuid4())
        profile = add_profile(
            self.database, [{'resources:FPGA': str(len(names)), **group}]
        )
        made = self.database.write(arqs.create, profile, PROJECT)
        providers = [self.record(name).rp_uuid or '' for name in names]
        self.consumers.allocate(instance, providers, PROJECT)
        wanted = {
            arq.uuid: Binding(HOST, provider, instance)
            for arq, provider in zip(made, providers, strict=True)
        }
        job = bind_job(wanted, RULES, 'req-1')
        return self.database.write(binding.accept, wanted, EVERYBODY, job, OWNER)

    def states(self, job: Job) -> list[str]:
        return states(self.database, list(job.payload['arqs']))

    def reasons(self, job: Job) -> set[str | None]:
        found = self.database.read(arqs.listed, Query(), EVERYBODY)
        mine = job.payload['arqs']
        return {arq.status_reason for arq in found if arq.uuid in mine}

    def row(self, name: str = f'{HOST}_0000:5e:00.0') -> tuple[list[str], int]:
        """Traits and what is reserved."""
        which = select(Deployable.traits, Deployable.reserved)
        rows = self.database.read(
            lambda session: session.execute(which.where(Deployable.name == name)).all()
        )
        return rows[0].traits, rows[0].reserved

    def kinds(self) -> set[str]:
        """Of the jobs that wait."""
        rows = self.database.read(
            lambda session: list(session.scalars(select(JobRow.kind)))
        )
        return set(rows)
