# SPDX-License-Identifier: Apache-2.0
"""A server with a Xilinx FPGA gets it from Nova, which knows nothing of companions.

What Nova does is that of its compute manager and of its libvirt driver: it waits for
an event of each request that it does not see resolved, and attaches all of what it then
sees, or nothing where a handle is not of PCI.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

import pytest

from cyborg_lite.conductor.arqs import Arqs
from cyborg_lite.conductor.jobs import JobRunner, owner_of_process
from cyborg_lite.conductor.nova_events import NovaEventHandler
from cyborg_lite.db import binding, jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.model.arqs import Arq, Scope
from cyborg_lite.model.jobs import Job, Kind, NewJob
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.fakes.nova import FakeNova
from tests.fakes.rows import OWNER, PROJECT, add_card, add_profile, bindings
from tests.unit.clients.test_nova import nova_at
from tests.unit.conductor.test_binding import RULES

GROUP = {'resources:FPGA': '1', 'trait:CUSTOM_FPGA_XILINX': 'required'}
SERVICE = RequestContext(project_id=PROJECT, roles=['member'], service_request=True)
USER = RequestContext(project_id=PROJECT, roles=['member'])


@dataclass
class Compute:
    """Nova on a host, at the point where it needs the devices of a server."""

    database: Database
    arqs: Arqs
    nova: FakeNova
    instance: str
    uuids: list[str]

    def bind(self, handles: int = 1) -> Job:
        """As it was accepted and claimed; the event is not sent yet."""
        card = add_card(self.database, handles)
        wanted = bindings(self.uuids, card, self.instance)
        accept = wanted, Scope(project_id=None), NewJob(Kind.BIND), OWNER
        job = self.database.write(binding.accept, *accept)
        payload = {'instance': self.instance, 'arqs': self.uuids, 'succeeded': True}
        told = NewJob(Kind.NOVA_EVENT, payload)
        claimed = self.database.write(binding.claim, job, self.uuids, None, told)
        return claimed.job

    def listed(self, context: RequestContext = SERVICE) -> tuple[Arq, ...]:
        of_instance = Query({'instance_uuid': (self.instance,)})
        return self.arqs.list(context, of_instance)

    def tell(self, *told: Job) -> list[str]:
        """The requests of which events come by that."""
        before = len(self.nova.events)
        handler = NovaEventHandler(self.database, nova_at(self.nova.endpoint))
        waiting = self.database.write(jobs.take, OWNER, 10, [Kind.NOVA_EVENT])
        for job in (*told, *waiting):
            handler.run(job)
        return [event['tag'] for event in self.nova.events[before:]]


@contextmanager
def computing(database: Database, *groups: dict[str, str]) -> Iterator[Compute]:
    """A new server of a new profile."""
    runner = JobRunner(database, {}, owner_of_process(30), workers=1)
    arqs = Arqs(database, runner, RULES)
    made = arqs.create(USER, add_profile(database, list(groups)))
    uuids = [arq.uuid for arq in made]
    with FakeNova() as nova:
        yield Compute(database, arqs, nova, str(uuid4()), uuids)


@pytest.fixture
def compute(database: Database) -> Iterator[Compute]:
    with computing(database, GROUP) as made:
        yield made


def test_a_bind_that_ended_before_nova_waited_is_heard_of_again(
    compute: Compute,
) -> None:
    first = compute.bind()
    compute.tell(first)
    resolved = [arq.uuid for arq in compute.listed() if arq.resolved]
    assert resolved == compute.uuids[:1]
    # For the other one it waits, and not for nothing.
    assert compute.tell() == compute.uuids[1:]


def test_what_nova_attaches_is_of_pci_alone(compute: Compute) -> None:
    compute.bind()
    assert {arq.attach_handle_type for arq in compute.listed()} == {'PCI'}


def test_asking_twice_is_answered_by_one_event(compute: Compute) -> None:
    compute.tell(compute.bind())
    compute.listed()
    compute.listed()
    assert len(compute.tell()) == 1


def test_while_a_bind_is_under_way_nova_sees_both(compute: Compute) -> None:
    wanted = bindings(compute.uuids, str(uuid4()), compute.instance)
    accept = wanted, Scope(project_id=None), NewJob(Kind.BIND), OWNER
    compute.database.write(binding.accept, *accept)
    assert [arq.uuid for arq in compute.listed()] == compute.uuids
    assert not any(arq.resolved for arq in compute.listed())


def test_whoever_is_no_service_sees_both(compute: Compute) -> None:
    compute.tell(compute.bind())
    shown = compute.listed(USER)
    assert [arq.uuid for arq in shown] == compute.uuids
    assert [arq.is_not_for_guest for arq in shown] == [False, True]
    assert compute.tell() == []
