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
"""ARQs of a pair of workers, which race for these."""

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


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault with its times in seconds since the start of the schedule."""

    kind: FaultKind
    daemon: str
    peer: str  # of a connection; empty: the fault is one of the process
    start: float
    end: float
    amount: float = 0.0  # seconds of a clock step, or the share of refused commits

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


def plan(seed: int, seconds: float) -> Schedule:
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
    match kind:
        case FaultKind.CLOCK:
            hour = source.choice((3600.0, -3600.0))
            return Fault(kind, any_daemon, 'clock', start, end, hour)
        case FaultKind.TWIN:
            return Fault(kind, agent, 'twin', start, end)
        case FaultKind.REFUSE_COMMITS | FaultKind.READ_ONLY:
            return Fault(kind, conductor, 'commits', start, end, 0.4)
        case FaultKind.CUT | FaultKind.BLACKHOLE | FaultKind.LOSE:
            if any_daemon != conductor:
                return Fault(kind, any_daemon, 'broker', start, end)
            peers = 'database', 'broker', 'placement', 'nova'
            return Fault(kind, conductor, source.choice(peers), start, end)
        case _:
            return Fault(kind, any_daemon, '', start, end)
