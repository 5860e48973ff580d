# SPDX-License-Identifier: Apache-2.0
"""A cluster refuses a transaction when it commits; it is run again, and done once.

Galera certifies at COMMIT and answers with the number of a deadlock, though no lock was
waited for; PostgreSQL does likewise under serializable isolation. Here the server is
real and the refusal is not: the transaction is rolled back and the driver raises what
it would.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg
import pymysql  # type: ignore[import-untyped]  # it has no types
import pytest
from sqlalchemy import event, select

from cyborg_lite.clients.nova import BoundEvent, EventOutcome, Nova
from cyborg_lite.conductor.binding import BindHandler, bind_job
from cyborg_lite.conductor.nova_events import NovaEventHandler
from cyborg_lite.conductor.releasing import ReleaseHandler
from cyborg_lite.db import binding, jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import ArqEvent
from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import Kind, NewJob
from tests.fakes.agents import FakeAgents
from tests.fakes.consumers import FakeConsumers
from tests.fakes.rows import (
    OWNER,
    PROJECT,
    add_arqs,
    add_card,
    bindings,
    owners,
    states,
)
from tests.unit.conductor.test_binding import RULES

EVERYBODY = Scope(project_id=None)

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
    """Refuses one transaction, by its number, or all from the first on."""

    def __init__(self, database: Database, patch: pytest.MonkeyPatch) -> None:
        self.engine = database.engines[0]
        self.commits = 0  # that were asked for
        self._refused: int | None = None
        self._refusal: Exception = NOT_READY
        self._for_ever = False
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
        """Counting begins anew; None: not any more."""
        self.commits, self._refused = 0, number
        self._refusal, self._for_ever = refusal, always

    # Any: the connection of the driver.
    def _certify(self, connection: Any) -> None:
        number, self.commits = self.commits, self.commits + 1
        if self._refused is not None and (
            number == self._refused or (self._for_ever and number > self._refused)
        ):
            connection.rollback()
            raise self._refusal
        self._commit(connection)


class HearingNova(Nova):
    def __init__(self) -> None:
        super().__init__(None)
        self.heard: list[BoundEvent] = []

    def post_events(self, events: Sequence[BoundEvent]) -> tuple[EventOutcome, ...]:
        self.heard += events
        return tuple(EventOutcome(event, 200) for event in events)


@dataclass
class Life:
    """Of two requests of a server whose host prepares their devices."""

    database: Database
    card: str
    nova: HearingNova = field(default_factory=HearingNova)
    agents: FakeAgents = field(default_factory=FakeAgents)

    def live(self) -> object:
        """All that is left of it at two moments, in a form that can be compared."""
        instance, consumers = str(uuid4()), FakeConsumers()
        uuids = add_arqs(self.database, 2)
        consumers.allocate(instance, [self.card], PROJECT)
        wanted = bindings(uuids, self.card, instance)
        write, new = self.database.write, bind_job(wanted, RULES, None)
        job = write(binding.accept, wanted, EVERYBODY, new, OWNER)
        bind = BindHandler(self.database, self.agents, consumers, RULES)
        told = bind.run(job)
        assert told is not None
        NovaEventHandler(self.database, self.nova).run(told)
        bound = self._seen(uuids), Counter(e.succeeded for e in self.nova.heard)
        write(release.delete_of_instance, instance, EVERYBODY, None)
        for job in write(jobs.take, OWNER, 10, (Kind.RELEASE,)):
            ReleaseHandler(self.database, self.agents).run(job)
        self.nova.heard.clear()
        return bound, self._seen(uuids), self.agents.prepared

    def _seen(self, uuids: list[str]) -> object:
        steps = select(ArqEvent.step).where(ArqEvent.arq_uuid.in_(uuids))
        told = self.database.read(lambda session: list(session.scalars(steps)))
        waiting = [
            c for c in self.database.read(jobs.count) if c.kind != 'placement-sync'
        ]
        held = len(owners(self.database))
        return sorted(told), states(self.database, uuids), held, waiting


@pytest.fixture
def cluster(server: Database, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(server, monkeypatch)


@pytest.mark.parametrize('which', [0, 1])
def test_each_transaction_may_be_refused_and_is_done_once(
    server: Database, cluster: Cluster, which: int
) -> None:
    refusal = cluster.refusals[which]
    life = Life(server, add_card(server, 2, needs_host=True))
    cluster.refuse(None)
    usual, number = life.live(), cluster.commits
    assert number >= 8
    for refused in range(number):
        cluster.refuse(refused, refusal)
        assert life.live() == usual
        # One more than usual: nothing else was run again.
        assert cluster.commits == number + 1


def test_a_cluster_that_refuses_for_ever_is_given_up(
    server: Database, cluster: Cluster
) -> None:
    cluster.refuse(0, cluster.refusals[0], always=True)
    with pytest.raises(ServiceUnavailable):
        server.write(jobs.add, NewJob(Kind.RELEASE))
    assert cluster.commits == 6
    cluster.refuse(None)
    assert server.read(jobs.count) == ()


def test_a_node_that_is_not_ready_is_asked_again(
    server: Database, cluster: Cluster
) -> None:
    """As when Galera has lost its primary component: any statement is refused."""
    if cluster.engine.dialect.name != 'mysql':
        pytest.skip('Galera speaks the protocol of MySQL')
    life = Life(server, add_card(server, 2, needs_host=True))
    usual = life.live()
    sent = 0

    def refusing(number: int) -> Callable[..., None]:
        # Any: what the library hands over; none of it is looked at.
        def refuse(*_: Any) -> None:
            nonlocal sent
            sent += 1
            if sent - 1 == number:
                raise NOT_READY

        return refuse

    for number in (0, 9, 19, 29):
        sent, listener = 0, refusing(number)
        event.listen(cluster.engine, 'do_execute', listener)
        assert life.live() == usual
        event.remove(cluster.engine, 'do_execute', listener)
        assert sent > number
