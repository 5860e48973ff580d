# SPDX-License-Identifier: Apache-2.0
"""Retries of transactions that a database cluster refuses at COMMIT.

Galera certifies a transaction at COMMIT and may answer with the error of a deadlock.
PostgreSQL does the same under serializable isolation. The server of these tests is
real. The tests roll the transaction back and raise the error of the driver.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg
import pymysql  # type: ignore[import-untyped]  # no types
import pytest
from sqlalchemy import event, select

from cyborg_lite.clients.nova import BoundEvent, EventOutcome, Nova
from cyborg_lite.conductor.arqs.binding import BindHandler, build_bind_job
from cyborg_lite.conductor.arqs.nova_events import NovaEventHandler
from cyborg_lite.conductor.arqs.releasing import ReleaseHandler
from cyborg_lite.db.arqs import binding, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import ArqEvent
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.jobs import NewJob
from cyborg_lite.model.operations import OperationKind
from tests.builders.bind_rules import RULES
from tests.builders.rows import (
    OWNER,
    PROJECT,
    add_arqs,
    add_card,
    bindings,
    owners,
    states,
)
from tests.doubles.agents import FakeAgents
from tests.doubles.consumers import FakeConsumers

ANY_PROJECT = Scope(project_id=None)

REFUSALS: dict[str, Sequence[Exception]] = {
    'mysql': (
        pymysql.err.OperationalError(1213, 'Deadlock found when trying to get lock'),
        pymysql.err.OperationalError(1205, 'Lock wait timeout exceeded'),
    ),
    'postgresql': (
        psycopg.errors.SerializationFailure('could not serialize access'),
        psycopg.errors.DeadlockDetected('deadlock detected'),
    ),
}
NOT_READY = pymysql.err.OperationalError(1047, 'WSREP has not yet prepared node')


class Cluster:
    """Database that refuses the commit of chosen transactions."""

    def __init__(self, database: Database, patch: pytest.MonkeyPatch) -> None:
        self.engine = database.engines[0]
        self.commits = 0  # attempts since the last call of refuse()
        self._refused_number: int | None = None
        self._refusal: Exception = NOT_READY
        self._always = False
        self._commit = self.engine.dialect.do_commit
        patch.setattr(self.engine.dialect, 'do_commit', self._certify)

    @property
    def refusals(self) -> Sequence[Exception]:
        return REFUSALS[self.engine.dialect.name]

    def refuse(
        self,
        number: int | None,
        refusal: Exception = NOT_READY,
        *,
        always: bool = False,
    ) -> None:
        """Refuse the commit with this number, counted from now; None: refuse none."""
        self.commits, self._refused_number = 0, number
        self._refusal, self._always = refusal, always

    # Any: a connection of the database driver.
    def _certify(self, connection: Any) -> None:
        number, self.commits = self.commits, self.commits + 1
        if self._refused_number is not None and (
            number == self._refused_number
            or (self._always and number > self._refused_number)
        ):
            connection.rollback()
            raise self._refusal
        self._commit(connection)


class RecordingNova(Nova):
    """Nova double that accepts and records events."""

    def __init__(self) -> None:
        super().__init__(None)
        self.posted: list[BoundEvent] = []

    def post_events(self, events: Sequence[BoundEvent]) -> tuple[EventOutcome, ...]:
        self.posted += events
        return tuple(EventOutcome(event, 200) for event in events)


@dataclass
class BindScenario:
    """Bind and deletion of two ARQs whose host prepares their handles."""

    database: Database
    card: str
    nova: RecordingNova = field(default_factory=RecordingNova)
    agents: FakeAgents = field(default_factory=FakeAgents)

    def run(self) -> object:
        """Bind and delete two ARQs; return comparable results of both steps."""
        instance, consumers = str(uuid4()), FakeConsumers()
        uuids = add_arqs(self.database, 2)
        consumers.allocate(instance, [self.card] * 2, PROJECT)
        binding_by_arq = bindings(uuids, self.card, instance)
        write, new_job = (
            self.database.write,
            build_bind_job(binding_by_arq, RULES, None),
        )
        job = write(binding.accept_bind, binding_by_arq, ANY_PROJECT, new_job, OWNER)
        bind = BindHandler(self.database, self.agents, consumers, RULES)
        event_job = bind.run(job)
        assert event_job is not None
        NovaEventHandler(self.database, self.nova).run(event_job)
        after_bind = (
            self._read_result(uuids),
            Counter(event.succeeded for event in self.nova.posted),
        )
        write(release.delete_arqs_of_instance, instance, ANY_PROJECT, None)
        for job in write(queue.lease_jobs, OWNER, 10, (OperationKind.RELEASE,)):
            ReleaseHandler(self.database, self.agents).run(job)
        self.nova.posted.clear()
        return after_bind, self._read_result(uuids), self.agents.prepared

    def _read_result(self, uuids: list[str]) -> object:
        steps = select(ArqEvent.step).where(ArqEvent.arq_uuid.in_(uuids))
        recorded_steps = self.database.read(
            lambda session: list(session.scalars(steps))
        )
        waiting = [
            job_count
            for job_count in self.database.read(queue.count_jobs)
            if job_count.type != 'reconcile'
        ]
        handle_count = len(owners(self.database))
        return (
            sorted(recorded_steps),
            states(self.database, uuids),
            handle_count,
            waiting,
        )


@pytest.fixture
def cluster(server: Database, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(server, monkeypatch)


@pytest.mark.parametrize('index', [0, 1])
def test_bind_refused_commit_is_retried_once(
    server: Database, cluster: Cluster, index: int
) -> None:
    refusal = cluster.refusals[index]
    scenario = BindScenario(server, add_card(server, 2, needs_host=True))
    cluster.refuse(None)
    usual, number = scenario.run(), cluster.commits
    assert number >= 8
    for refused in range(number):
        cluster.refuse(refused, refusal)
        assert scenario.run() == usual
        # Only the refused transaction ran again.
        assert cluster.commits == number + 1


def test_write_constant_refusal_raises_service_unavailable(
    server: Database, cluster: Cluster
) -> None:
    cluster.refuse(0, cluster.refusals[0], always=True)
    with pytest.raises(ServiceUnavailable):
        server.write(queue.add_job, NewJob(OperationKind.RELEASE))
    assert cluster.commits == 6
    cluster.refuse(None)
    assert server.read(queue.count_jobs) == ()


def test_bind_galera_node_not_ready_is_retried(
    server: Database, cluster: Cluster
) -> None:
    """Galera without its primary component refuses every statement."""
    if cluster.engine.dialect.name != 'mysql':
        pytest.skip('Galera speaks the protocol of MySQL')
    scenario = BindScenario(server, add_card(server, 2, needs_host=True))
    usual = scenario.run()
    count = 0

    def build_listener(number: int) -> Callable[..., None]:
        # Any: the arguments of SQLAlchemy are not used.
        def refuse(*_: Any) -> None:
            nonlocal count
            count += 1
            if count - 1 == number:
                raise NOT_READY

        return refuse

    for number in (0, 9, 19, 29):
        count, listener = 0, build_listener(number)
        event.listen(cluster.engine, 'do_execute', listener)
        assert scenario.run() == usual
        event.remove(cluster.engine, 'do_execute', listener)
        assert count > number
