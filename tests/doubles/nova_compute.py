# SPDX-License-Identifier: Apache-2.0
"""Nova compute service that spawns an instance with ARQs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from cyborg_lite.conductor.arqs.arqs import ArqService
from cyborg_lite.conductor.arqs.nova_events import NovaEventHandler
from cyborg_lite.conductor.jobs.runner import JobRunner, Workers, create_owner
from cyborg_lite.db.arqs import binding
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.arqs.arqs import Arq, Scope
from cyborg_lite.model.jobs import Job, NewJob
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.builders.bind_rules import RULES
from tests.builders.cloud_clients import create_nova_client
from tests.builders.rows import OWNER, PROJECT, add_card, add_profile, bindings
from tests.doubles.nova import FakeNova

SERVICE = RequestContext(project_id=PROJECT, roles=['member'], service_request=True)
USER = RequestContext(project_id=PROJECT, roles=['member'])


@dataclass
class Compute:
    """Nova compute service while it spawns an instance."""

    database: Database
    arqs: ArqService
    nova: FakeNova
    instance: str
    uuids: list[str]
    group: dict[str, str]

    def bind(self, handles: int = 1) -> Job:
        """Bind the ARQs and return the event job, which is not run."""
        card = add_card(self.database, handles, group=self.group)
        requested = bindings(self.uuids, card, self.instance)
        accept = requested, Scope(project_id=None), NewJob(OperationKind.BIND), OWNER
        job = self.database.write(binding.accept_bind, *accept)
        payload = {
            'instance_uuid': self.instance,
            'arq_uuids': self.uuids,
            'succeeded': True,
        }
        event = NewJob(OperationKind.NOVA_EVENT, payload)
        claimed = self.database.write(
            binding.claim_for_bind, job, self.uuids, None, event
        )
        return claimed.job

    def list_arqs(self, context: RequestContext = SERVICE) -> tuple[Arq, ...]:
        """Return the ARQs of the instance."""
        of_instance = Query({'instance_uuid': (self.instance,)})
        return self.arqs.list(context, of_instance)

    def send_events(self, *jobs: Job) -> list[str]:
        """Run event jobs and return the ARQs of the events."""
        before = len(self.nova.events)
        handler = NovaEventHandler(
            self.database, create_nova_client(self.nova.endpoint)
        )
        waiting = self.database.write(
            queue.lease_jobs, OWNER, 10, [OperationKind.NOVA_EVENT]
        )
        for job in (*jobs, *waiting):
            handler.run(job)
        return [event['tag'] for event in self.nova.events[before:]]


@contextmanager
def create_compute(database: Database, *groups: dict[str, str]) -> Iterator[Compute]:
    """Create ARQs of a new profile for a new instance."""
    runner = JobRunner(database, {}, create_owner(30), workers=Workers(1, 1))
    arqs = ArqService(database, runner, RULES)
    created = arqs.create(USER, add_profile(database, list(groups)))
    uuids = [arq.uuid for arq in created]
    with FakeNova() as nova:
        yield Compute(database, arqs, nova, str(uuid4()), uuids, groups[0])
