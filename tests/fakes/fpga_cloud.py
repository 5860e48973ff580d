# SPDX-License-Identifier: Apache-2.0
"""A host with FPGA cards, images for them, and the conductor's rooms around them."""

from dataclasses import dataclass, field
from uuid import uuid4

from sqlalchemy import select

from cyborg_lite.conductor.binding import BindHandler, bind_job
from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.conductor.programming import (
    Loader,
)
from cyborg_lite.db import arqs, binding, deployables, inventory
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Deployable
from cyborg_lite.db.tables import Job as JobRow
from cyborg_lite.model.arqs import Binding, Scope
from cyborg_lite.model.devices import DeployableRecord
from cyborg_lite.model.inventory import Device, HostReport
from cyborg_lite.model.jobs import Job
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
        self.loader = Loader(self.database, self.agents, Library(self.images, LARGEST))
        self.binder = BindHandler(
            self.database, self.agents, self.consumers, RULES, self.loader
        )

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
