# SPDX-License-Identifier: Apache-2.0
"""Schedules of operations and faults; a seed always gives the same schedule."""

import enum
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

HOSTS: Final = 3
CONDUCTORS: Final = 3
APIS: Final = 2
WORKERS: Final = 6
SLOTS: Final = 3
"""Slots of a pair of workers, which race for the ARQs in these."""

SECONDS: Final = 20.0  # of operations and faults
FIXED_SEEDS: Final = {'mariadb': (14,), 'postgresql': (13,)}
"""Seeds of the fixed runs; their schedules have all kinds of faults together."""

_ACTIONS: Final = 2000  # more than a worker performs in an hour
_LONGEST_PAUSE: Final = 0.5  # seconds between actions of a worker


class ActionKind(enum.StrEnum):
    """Actions of a worker; the values are the weights of a draw below."""

    BIND = 'bind'
    REBIND = 'rebind'
    UNBIND = 'unbind'
    DELETE = 'delete'
    DELETE_INSTANCE = 'delete instance'
    READ = 'read'
    EDIT_PROFILE = 'edit profile'
    SWITCH_DEVICE = 'switch device'
    CHANGE_REPORT = 'change report'


_WEIGHTS: Final = {
    ActionKind.BIND: 6,
    ActionKind.REBIND: 8,
    ActionKind.UNBIND: 2,
    ActionKind.DELETE: 2,
    ActionKind.DELETE_INSTANCE: 4,
    ActionKind.READ: 8,
    ActionKind.EDIT_PROFILE: 1,
    ActionKind.SWITCH_DEVICE: 1,
    ActionKind.CHANGE_REPORT: 1,
}


@dataclass(frozen=True, slots=True)
class Action:
    """Action of a worker."""

    kind: ActionKind
    slot: int
    host: int
    api: int
    pause: float  # seconds before the action
    waits: bool  # a bind: until Nova has received its end


class FaultKind(enum.StrEnum):
    """Faults of a daemon or of one of its connections."""

    KILL = 'kill'
    STOP = 'stop'
    CLOCK = 'clock'
    CUT = 'cut'
    BLACKHOLE = 'blackhole'
    LOSE = 'lose'
    REFUSE_COMMITS = 'refuse commits'
    READ_ONLY = 'read-only'
    TWIN = 'twin'
    DUPLICATE = 'duplicate messages'
    DELAY = 'delay messages'
    FULL_DISK = 'full disk'


_CONNECTION_FAULTS: Final = {FaultKind.CUT, FaultKind.BLACKHOLE, FaultKind.LOSE}
_PROCESS_FAULTS: Final = {
    FaultKind.KILL: ('any', '', 0.0),
    FaultKind.STOP: ('any', '', 0.0),
    FaultKind.TWIN: ('agent', 'twin', 0.0),
    FaultKind.FULL_DISK: ('agent', 'disk', 1.0),
    FaultKind.REFUSE_COMMITS: ('conductor', 'commits', 0.4),
    FaultKind.READ_ONLY: ('conductor', 'commits', 1.0),
    FaultKind.DUPLICATE: ('any', 'messages', 0.5),
    FaultKind.DELAY: ('any', 'messages', 1.5),
}
"""Kind of the daemon, name of the target, and amount."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault with its times in seconds since the start of the schedule."""

    kind: FaultKind
    daemon: str
    peer: str  # of a connection; empty: the fault is one of the process
    start: float
    end: float
    amount: float = 0.0  # seconds of a clock step or delay, or the share that is hit

    @property
    def target(self) -> tuple[str, str]:
        return self.daemon, self.peer

    def __str__(self) -> str:
        target = f'{self.daemon}{" to " if self.peer else ""}{self.peer}'
        return f'{self.start:.1f}-{self.end:.1f} s {self.kind} {target}'


@dataclass(frozen=True, slots=True)
class Schedule:
    """Actions of the workers and faults of a run."""

    seed: int
    seconds: float
    workers: tuple[tuple[Action, ...], ...]
    faults: tuple[Fault, ...]
    delay: float  # seconds that a host needs to prepare a handle


def plan(seed: int, seconds: float = SECONDS) -> Schedule:
    """Return the schedule of a seed."""
    source = random.Random(seed)
    workers = tuple(
        tuple(_draw_action(source) for _ in range(_ACTIONS)) for _ in range(WORKERS)
    )
    faults = tuple(_draw_faults(source, seconds))
    # A bind on a slow host is often overtaken by the next operation on its ARQ.
    delay = source.choice((0.0, 0.5, 1.5))
    return Schedule(seed, seconds, workers, faults, delay)


def _draw_action(source: random.Random) -> Action:
    (kind,) = source.choices(list(_WEIGHTS), weights=list(_WEIGHTS.values()))
    return Action(
        kind,
        slot=source.randrange(SLOTS),
        host=source.randrange(HOSTS),
        api=source.randrange(APIS),
        pause=source.uniform(0, _LONGEST_PAUSE),
        waits=source.random() < 0.5,
    )


def _draw_faults(source: random.Random, seconds: float) -> Iterator[Fault]:
    """Yield faults that overlap, but never two at the same target."""
    busy: dict[tuple[str, str], float] = {}
    start = source.uniform(0.5, 2)
    while start < seconds:
        fault = _draw_fault(source, start)
        if busy.get(fault.target, 0) < start:
            busy[fault.target] = fault.end
            yield fault
        start += source.uniform(0.5, 3)


def _draw_fault(source: random.Random, start: float) -> Fault:
    conductor = f'conductor{source.randrange(CONDUCTORS)}'
    agent = f'agent{source.randrange(HOSTS)}'
    api = f'api{source.randrange(APIS)}'
    any_daemon = source.choice((conductor, conductor, conductor, agent, api))
    # Longer than the lease of a job, and shorter than the deadline of a bind.
    end = start + source.uniform(1, 6)
    kind = source.choice(list(FaultKind))
    if kind is FaultKind.CLOCK:
        hour = source.choice((3600.0, -3600.0))
        return Fault(kind, any_daemon, 'clock', start, end, hour)
    if kind in _CONNECTION_FAULTS:
        peers = 'database', 'broker', 'placement', 'nova'
        peer = source.choice(peers) if any_daemon == conductor else 'broker'
        return Fault(kind, any_daemon, peer, start, end)
    daemons = {'conductor': conductor, 'agent': agent, 'any': any_daemon}
    daemon, target, amount = _PROCESS_FAULTS[kind]
    return Fault(kind, daemons[daemon], target, start, end, amount)
