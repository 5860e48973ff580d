# SPDX-License-Identifier: Apache-2.0
"""The bind job, from BindStarted to the event, and wherever it may stop between."""

from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.binding import BindHandler, BindRules, bind_job
from cyborg_lite.db import arqs, binding, jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Job as JobRow
from cyborg_lite.exceptions import (
    DriverError,
    HandlesContended,
    HostAway,
    JobLost,
    ServiceUnavailable,
)
from cyborg_lite.model.arqs import Arq, Scope
from cyborg_lite.model.jobs import Job, Kind, Owner
from cyborg_lite.model.queries import Query
from tests.fakes.agents import FakeAgents
from tests.fakes.consumers import FakeConsumers
from tests.fakes.daemons import call_down
from tests.fakes.rows import (
    OWNER,
    PROJECT,
    add_arqs,
    add_card,
    bindings,
    owners,
    states,
)

EVERYBODY = Scope(project_id=None)
RULES = BindRules(deadline=240, event_deadline=300, require_allocation=True)


@dataclass
class Bind:
    """One accepted bind and all that its job meets."""

    database: Database
    number: int = 2
    needs_host: bool = False
    rules: BindRules = RULES
    instance: str = field(default_factory=lambda: str(uuid4()))
    agents: FakeAgents = field(default_factory=FakeAgents)
    consumers: FakeConsumers = field(default_factory=FakeConsumers)

    def accepted(self, *, allocated: bool = True, project: str | None = None) -> Job:
        self.uuids = add_arqs(self.database, self.number)
        card = add_card(self.database, self.number, needs_host=self.needs_host)
        if allocated:
            self.consumers.allocate(self.instance, [card], PROJECT)
        wanted = {
            uuid: replace(one, project_id=project)
            for uuid, one in bindings(self.uuids, card, self.instance).items()
        }
        job = bind_job(wanted, self.rules, 'req-1')
        return self.database.write(binding.accept, wanted, EVERYBODY, job, OWNER)

    @property
    def handler(self) -> BindHandler:
        return BindHandler(self.database, self.agents, self.consumers, self.rules)

    @property
    def states(self) -> list[str]:
        return states(self.database, self.uuids)

    @property
    def arqs(self) -> list[Arq]:
        return list(self.database.read(arqs.listed, Query(), EVERYBODY))


def take_over(database: Database) -> Job:
    """As a conductor does whose predecessor was killed."""
    database.write(
        lambda session: session.execute(update(JobRow).values(lease_until=0))
    )
    (job,) = database.write(jobs.take, Owner('conductor:2:2', 30_000), 1)
    return job


def test_passthrough_is_bound_without_a_word_to_its_host(database: Database) -> None:
    bind = Bind(database)
    event = bind.handler.run(bind.accepted())
    assert event is not None
    assert event.kind == Kind.NOVA_EVENT
    assert event.payload == {
        'instance': bind.instance,
        'arqs': sorted(bind.uuids),
        'succeeded': True,
    }
    assert bind.states == ['Bound', 'Bound']
    assert bind.agents.calls == []


def test_all_handles_of_a_host_are_prepared_in_one_call(database: Database) -> None:
    bind = Bind(database, number=4, needs_host=True)
    event = bind.handler.run(bind.accepted())
    assert event is not None
    assert bind.agents.calls == [('prepare', 'compute-1', 4)]
    assert bind.states == ['Bound'] * 4
    assert len(bind.agents.prepared) == 4


def test_a_host_that_refuses_fails_the_whole_bind(database: Database) -> None:
    bind = Bind(database, needs_host=True)
    bind.agents.refusal = DriverError(reason='No instance of nvidia-231 is left.')
    event = bind.handler.run(bind.accepted())
    assert event is not None
    assert event.payload['succeeded'] is False
    assert {arq.status_reason for arq in bind.arqs} == {
        'No instance of nvidia-231 is left.'
    }
    assert bind.states == ['BindFailed'] * 2


def test_a_host_that_does_not_answer_is_asked_again(database: Database) -> None:
    bind = Bind(database, needs_host=True)
    bind.agents.away = {'compute-1'}
    job = bind.accepted()
    with pytest.raises(HostAway):
        bind.handler.run(job)
    assert bind.states == ['BindStarted'] * 2
    bind.agents.away = set()
    assert bind.handler.run(take_over(database)) is not None
    assert bind.states == ['Bound'] * 2


def test_a_successor_prepares_what_was_claimed_and_claims_nothing_more(
    database: Database,
) -> None:
    bind = Bind(database, needs_host=True)
    bind.agents.away = {'compute-1'}
    with pytest.raises(HostAway):
        bind.handler.run(bind.accepted())
    claimed = owners(database)
    bind.agents.away = set()
    bind.handler.run(take_over(database))
    assert owners(database) == claimed == sorted(bind.uuids)


def test_a_bind_beyond_its_deadline_fails_and_holds_nothing(
    database: Database,
) -> None:
    bind = Bind(database)
    event = bind.handler.expire(bind.accepted(), 'Placement does not answer.')
    assert event is not None
    assert event.payload['succeeded'] is False
    assert bind.states == ['BindFailed'] * 2
    assert owners(database) == []
    (reason,) = {arq.status_reason for arq in bind.arqs}
    assert reason is not None
    assert 'Placement does not answer.' in reason


def test_without_an_allocation_nobody_gets_a_device(database: Database) -> None:
    bind = Bind(database)
    event = bind.handler.run(bind.accepted(allocated=False))
    assert event is not None
    assert event.payload['succeeded'] is False
    assert bind.states == ['BindFailed'] * 2
    assert owners(database) == []


def test_an_allocation_elsewhere_does_not_count(database: Database) -> None:
    bind = Bind(database)
    job = bind.accepted(allocated=False)
    bind.consumers.allocate(bind.instance, [str(uuid4())], PROJECT)
    bind.handler.run(job)
    assert bind.states == ['BindFailed'] * 2


def test_an_operator_may_choose_only_to_be_warned(database: Database) -> None:
    bind = Bind(database, rules=replace(RULES, require_allocation=False))
    bind.handler.run(bind.accepted(allocated=False))
    assert bind.states == ['Bound'] * 2


def test_placement_away_puts_the_bind_off(database: Database) -> None:
    bind = Bind(database)
    bind.consumers.away = True
    job = bind.accepted()
    with pytest.raises(ServiceUnavailable):
        bind.handler.run(job)
    assert bind.states == ['BindStarted'] * 2


def test_the_servers_project_comes_from_placement(database: Database) -> None:
    bind = Bind(database)
    job = bind.accepted()
    bind.consumers.allocate(bind.instance, job.payload['providers'], 'e' * 32)
    bind.handler.run(job)
    assert {arq.project_id for arq in bind.arqs} == {'e' * 32}


def test_a_project_that_an_admin_named_stands(database: Database) -> None:
    bind = Bind(database)
    bind.handler.run(bind.accepted(project='f' * 32))
    assert {arq.project_id for arq in bind.arqs} == {'f' * 32}


def test_a_delete_while_the_host_prepares_cancels_the_bind(
    database: Database,
) -> None:
    bind = Bind(database, needs_host=True)
    bind.agents.away = {'compute-1'}
    with pytest.raises(HostAway):
        bind.handler.run(bind.accepted())
    database.write(release.delete_of_instance, bind.instance, EVERYBODY, None)
    bind.agents.away = set()
    assert bind.handler.run(take_over(database)) is None
    # What was prepared is now released by jobs of its own.
    released = database.write(jobs.take, OWNER, 10)
    assert [job.kind for job in released] == [Kind.RELEASE] * 2


def test_a_cancelled_bind_does_not_wait_for_its_host(database: Database) -> None:
    bind = Bind(database, needs_host=True)
    bind.agents.away = {'compute-1'}
    with pytest.raises(HostAway):
        bind.handler.run(bind.accepted())
    database.write(release.delete_of_instance, bind.instance, EVERYBODY, None)
    assert bind.handler.run(take_over(database)) is None
    assert bind.agents.calls == [('prepare', 'compute-1', 2)]
    released = database.write(jobs.take, OWNER, 10)
    assert [job.kind for job in released] == [Kind.RELEASE] * 2


def test_a_host_that_is_known_to_be_silent_is_not_waited_for(
    database: Database,
) -> None:
    bind = Bind(database, needs_host=True)
    job = bind.accepted()
    call_down(database, 'compute-1')
    with pytest.raises(HostAway):
        bind.handler.run(job)
    assert bind.agents.calls == []
    assert bind.states == ['BindStarted'] * 2


def test_a_conductor_that_lost_the_bind_tells_nobody(database: Database) -> None:
    bind = Bind(database)
    job = bind.accepted()
    take_over(database)
    with pytest.raises(JobLost):
        bind.handler.run(job)
    assert bind.states == ['BindStarted'] * 2


def test_contended_handles_are_tried_for_and_then_waited_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind = Bind(database)
    job = bind.accepted()
    tries = []

    def contended(*_: object) -> None:
        tries.append(1)
        raise HandlesContended()

    monkeypatch.setattr('cyborg_lite.conductor.binding.binding.claim', contended)
    monkeypatch.setattr('cyborg_lite.conductor.binding.time.sleep', lambda _: None)
    with pytest.raises(HandlesContended):
        bind.handler.run(job)
    assert len(tries) == 5
