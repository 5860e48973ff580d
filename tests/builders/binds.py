# SPDX-License-Identifier: Apache-2.0
"""Accepted binds, and the doubles that their jobs call."""

from dataclasses import dataclass, field, replace
from uuid import uuid4

from cyborg_lite.conductor.arqs.binding import BindHandler, BindRules, build_bind_job
from cyborg_lite.db.arqs import arqs, binding
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.arqs.arqs import Arq
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import ANY_PROJECT
from tests.builders.bind_rules import RULES
from tests.builders.rows import OWNER, PROJECT, add_card, add_profile, bindings, states
from tests.doubles.agents import FakeAgents
from tests.doubles.consumers import FakeConsumers


@dataclass
class Bind:
    """Bind of the ARQs of one instance to a card that has as many handles."""

    database: Database
    number: int = 2
    needs_host: bool = False
    rules: BindRules = RULES
    keys: dict[str, str] = field(default_factory=dict)  # of the group, beside resources
    instance: str = field(default_factory=lambda: str(uuid4()))
    agents: FakeAgents = field(default_factory=FakeAgents)
    consumers: FakeConsumers = field(default_factory=FakeConsumers)

    def accept(self, *, allocated: bool = True, project: str | None = None) -> Job:
        """Create the ARQs and the card, and accept the bind; return its job."""
        group = {'resources:PGPU': str(self.number), **self.keys}
        name = add_profile(self.database, [group])
        created = self.database.write(arqs.create_arqs, name, PROJECT)
        self.uuids = [arq.uuid for arq in created]
        card = add_card(self.database, self.number, needs_host=self.needs_host)
        if allocated:
            self.consumers.allocate(self.instance, [card] * self.number, PROJECT)
        requested = {
            uuid: replace(binding_, project_id=project)
            for uuid, binding_ in bindings(self.uuids, card, self.instance).items()
        }
        job = build_bind_job(requested, self.rules, 'req-1')
        return self.database.write(
            binding.accept_bind, requested, ANY_PROJECT, job, OWNER
        )

    @property
    def handler(self) -> BindHandler:
        """The handler of the job."""
        return BindHandler(self.database, self.agents, self.consumers, self.rules)

    @property
    def states(self) -> list[str]:
        """The states of the ARQs."""
        return states(self.database, self.uuids)

    @property
    def arqs(self) -> list[Arq]:
        """The ARQs as stored."""
        query = Query(filters={'uuid': tuple(self.uuids)})
        return list(self.database.read(arqs.list_arqs, query, ANY_PROJECT))
