# SPDX-License-Identifier: Apache-2.0
"""The other services of the simulated cloud: the database, Placement and Nova."""

import math
import sqlite3
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Final,
    NamedTuple,
    ParamSpec,
    TypeVar,
    cast,
)

from sqlalchemy import event
from sqlalchemy.exc import SAWarning
from sqlalchemy.pool import StaticPool

from cyborg_lite.clients.nova import BoundEvent, EventOutcome, Nova
from cyborg_lite.clients.placement import Consumer
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.jobs import HostShares
from tests.chaos.history.records import Receipt
from tests.chaos.history.steps_table import StepsTable
from tests.doubles.placement import FakePlacement
from tests.simulation import scheduler
from tests.simulation.hosts import CLASS, happens

P = ParamSpec('P')
T = TypeVar('T')

# Statements of all databases. Any: the library does not name its keys and values.
_COMPILED: Final[dict[Any, Any]] = {}

DATABASE: Final = 'database'
"""Name of its clock."""
REAL_CLOCK: Final = 'read_real_time'
"""SQL function: seconds since the epoch, whatever the clock of the database shows."""
_JULIAN_EPOCH: Final = 2440587.5  # days
_DAY: Final = 86400.0  # seconds


@dataclass
class Faults:
    """Faults that are possible now; each is a probability."""

    commit_lost: float = 0.0
    """A transaction fails, and is not committed."""
    commit_unknown: float = 0.0
    """A transaction fails although it is committed."""
    placement: float = 0.0
    """Placement does not answer."""
    nova: float = 0.0
    """Nova does not answer; it may have received the request."""
    request_lost: float = 0.0
    """A call gets no answer, because no server has received it."""
    answer_lost: float = 0.0
    """A call gets no answer although it was executed."""

    def clear(self) -> None:
        """End all faults."""
        vars(self).update(vars(Faults()))


class SimulatedDatabase(Database):
    """SQLite with the virtual clock; other threads run between transactions only.

    Its connections stay open, as those to a database in memory do: to open them costs
    more than most transactions. A poll that finds nothing is not repeated before a job
    has changed or is due.
    """

    _version: ClassVar[int] = 0
    """Number of the changes of jobs, by all conductors."""

    def __init__(
        self, connection: str, faults: Faults, check: Callable[[], None]
    ) -> None:
        """Store the arguments.

        :param check: is called after each transaction
        """
        super().__init__(f'{connection}?mode=memory')
        self._faults = faults
        self._check = check
        self._opened: list[Any] = []  # connections of the library of SQLite
        self._idle: dict[Any, tuple[object, float]] = {}

    # Any: oslo.db has no types.
    def _new_facade(self) -> Any:
        facade = super()._new_facade()
        for side in (facade.writer, facade.reader):
            with warnings.catch_warnings():
                # The engine opens the file, and keeps one connection.
                warnings.filterwarnings('ignore', '.*uri=true', SAWarning)
                engine = side.get_engine()
            # The other pool has a connection for each thread, and closes those of ended
            # threads when it gets another one.
            engine.pool = StaticPool(
                engine.pool._creator,
                dialect=engine.dialect,
                _dispatch=engine.pool.dispatch,
            )
            engine.update_execution_options(compiled_cache=_COMPILED)
            event.listen(engine, 'do_connect', _keep_statements)
            event.listen(engine, 'connect', self._open)
        return facade

    def write(
        self,
        work: Callable[Concatenate[Any, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a transaction, whose commit may be lost or unknown."""
        poll = _POLLS.get(work)
        if poll and self._is_idle(work, args):
            return cast(T, poll.empty)
        scheduler.pause()
        if happens(self._faults.commit_lost):
            raise ServiceUnavailable(what='The database')
        before = self._count_changes()
        result = super().write(work, *args, **kwargs)
        if self._count_changes() != before:
            self._check()
        elif poll and not result:
            due = self._opened[0].execute(poll.due).fetchone()[0]
            self._idle[work] = self._describe(args), due or math.inf
        scheduler.pause()
        if happens(self._faults.commit_unknown):
            raise ServiceUnavailable(what='The database')
        return result

    def read(
        self,
        work: Callable[Concatenate[Any, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a transaction that only reads."""
        scheduler.pause()
        return super().read(work, *args, **kwargs)

    def _is_idle(self, work: object, arguments: Sequence[object]) -> bool:
        described, due = self._idle.get(work, ('', 0.0))
        return described == self._describe(arguments) and read_clock() * 1000 < due

    def _describe(self, arguments: Sequence[object]) -> object:
        clock = scheduler.find_scheduler().offsets.get(DATABASE, 0.0)
        described = (
            sorted(value.full_hosts()) if isinstance(value, HostShares) else value
            for value in arguments
        )
        return self._version, clock, *described

    @classmethod
    def count_change(cls) -> None:
        """Count a change of jobs."""
        SimulatedDatabase._version += 1

    def _count_changes(self) -> int:
        return sum(connection.total_changes for connection in self._opened)

    # Any: the library of SQLite.
    def _open(self, connection: Any, _record: Any) -> None:
        connection.create_function('julianday', 1, _julianday)
        connection.create_function('strftime', 2, _strftime)
        connection.create_function('count_job', 0, self.count_change)
        connection.create_function(REAL_CLOCK, 0, scheduler.read_real_time)
        self._opened.append(connection)


class _Poll(NamedTuple):
    """A transaction that looks for work."""

    empty: object  # that it returns if there is no work
    due: str  # query of the time, in milliseconds, at which there may be some


_POLLS: Final[Mapping[Any, _Poll]] = {
    queue.lease_jobs: _Poll(
        (),
        'SELECT min(due) FROM (SELECT run_after AS due FROM jobs '
        "WHERE state = 'waiting' UNION SELECT lease_until FROM jobs "
        'UNION SELECT deadline FROM jobs) WHERE due IS NOT NULL',
    ),
    queue.advance_jobs: _Poll(0, 'SELECT NULL'),
}


def watch_jobs(connection: sqlite3.Connection) -> None:
    """Count the changes of jobs. A renewed lease lets no job begin earlier."""
    for change in ('INSERT', 'DELETE', 'UPDATE OF state, run_after, deadline, host'):
        connection.execute(
            f'CREATE TRIGGER jobs_{change[:6]} AFTER {change} ON jobs '
            'BEGIN SELECT count_job(); END'
        )


# Any, here and below: the library of SQLite.
def _keep_statements(
    _dialect: Any, _record: Any, _arguments: Any, options: dict[str, Any]
) -> None:
    """Keep compiled statements; all threads share the connection."""
    options['cached_statements'] = 1000
    options['check_same_thread'] = False


def read_clock() -> float:
    """Return the seconds since the epoch by the clock of the database."""
    error = scheduler.find_scheduler().offsets.get(DATABASE, 0.0)
    return scheduler.read_real_time() + error


def _julianday(_now: str) -> float:
    return read_clock() / _DAY + _JULIAN_EPOCH


def _strftime(format_: str, _now: str) -> str:
    moment = datetime.fromtimestamp(read_clock(), UTC)
    fraction = f'{moment.second:02}.{moment.microsecond // 1000:03}'
    return moment.strftime(format_.replace('%f', fraction))


class Placed(NamedTuple):
    """An instance, its host, and the provider of each group."""

    instance: str
    host: str
    providers: tuple[str, ...]


class SimulatedPlacement(FakePlacement):
    """Placement that sometimes does not answer."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    def observe_requests(self, observer: Callable[[str, int | None], None]) -> None:
        """Do nothing: no request is sent."""

    def _count_call(self, call: str) -> None:
        scheduler.pause()
        if happens(self._faults.placement):
            raise ServiceUnavailable(what='Placement')
        super()._count_call(call)
        self.calls.clear()

    def schedule(
        self, groups: Sequence[int], instance: str, host: str = ''
    ) -> Placed | None:
        """Allocate the units of each group to an instance, as the scheduler does.

        :param host: empty: any
        :returns: None: no host has as many free units
        """
        chance = scheduler.find_scheduler().current.random
        free = {uuid: self._free(uuid).get(CLASS, 0) for uuid in sorted(self.providers)}
        roots = sorted({self.providers[uuid].node.root_uuid for uuid in free})
        if host:
            roots = [r for r in roots if self.providers[r].node.name == host]
        for root in chance.sample(roots, len(roots)):
            available = {
                uuid: number
                for uuid, number in free.items()
                if self.providers[uuid].node.root_uuid == root
            }
            chosen = []
            for amount in groups:
                fitting = [
                    uuid for uuid, number in available.items() if number >= amount
                ]
                if not fitting:
                    break
                chosen.append(chance.choice(fitting))
                available[chosen[-1]] -= amount
            if len(chosen) == len(groups):
                return self._allocate(groups, chosen, instance)
        return None

    def _allocate(
        self, groups: Sequence[int], chosen: Sequence[str], instance: str
    ) -> Placed:
        allocations: dict[str, dict[str, int]] = {}
        for amount, uuid in zip(groups, chosen, strict=True):
            amounts = allocations.setdefault(uuid, {CLASS: 0})
            amounts[CLASS] += amount
            self.providers[uuid].touch()
        self.consumers[instance] = Consumer(instance, 'a' * 32, 'u', 1, allocations)
        root = self.providers[chosen[0]].node.root_uuid
        return Placed(instance, self.providers[root].node.name, tuple(chosen))


@dataclass
class Server:
    """An instance of Nova."""

    host: str
    is_active: bool = False


@dataclass
class SimulatedNova(Nova):
    """Nova, with the events that it has received."""

    faults: Faults
    steps: StepsTable
    servers: dict[str, Server] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)

    def post_events(self, events: Sequence[BoundEvent]) -> tuple[EventOutcome, ...]:
        """Receive events."""
        self._answer()
        for message in events:
            status = 'completed' if message.succeeded else 'failed'
            self.receipts.append(
                Receipt(
                    time.time(),
                    message.arq_uuid,
                    message.instance_uuid,
                    status,
                    self.steps.last_step(message.arq_uuid),
                )
            )
        self._answer()
        return tuple(
            EventOutcome(message, 200 if message.instance_uuid in self.servers else 404)
            for message in events
        )

    def has_received(self, arq: str) -> bool:
        """Check whether an event of an ARQ has come."""
        return any(receipt.arq == arq for receipt in self.receipts)

    def find_missing_instances(self, uuids: Collection[str]) -> frozenset[str]:
        """Return the uuids that are no instances."""
        self._answer()
        return frozenset(set(uuids) - set(self.servers))

    def is_placed(self, uuid: str) -> bool:
        """Check whether an instance is on a host."""
        self._answer()
        return uuid in self.servers

    def is_spawned(self, uuid: str) -> bool:
        """Check whether an instance runs."""
        self._answer()
        return uuid in self.servers and self.servers[uuid].is_active

    def find_settled_node(self, uuid: str) -> str | None:
        """Return the host of an instance that runs."""
        self._answer()
        server = self.servers.get(uuid)
        return server.host if server is not None and server.is_active else None

    def _answer(self) -> None:
        scheduler.pause()
        if happens(self.faults.nova):
            raise ServiceUnavailable(what='Nova')
