# SPDX-License-Identifier: Apache-2.0
"""Records of a history: operations of clients, steps of the service and of the hosts.

All times are seconds since the epoch by the real-time clock of this machine.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

REMOVED = 'Removed'
"""State of an ARQ whose row is deleted; its reads are answered with 404."""


class Kind(enum.StrEnum):
    """Operations of clients on an ARQ."""

    CREATE = 'create'
    BIND = 'bind'
    UNBIND = 'unbind'
    DELETE = 'delete'
    DELETE_INSTANCE = 'delete instance of'
    READ = 'read'


@dataclass(frozen=True, slots=True)
class Operation:
    """Operation of a client on an ARQ."""

    kind: Kind
    arq: str
    start: float
    end: float | None  # None: the answer was lost
    status: int | None = None  # None: the answer was lost
    instance: str = ''  # bind, deletion by instance and read: empty: none
    state: str = ''  # read: the state of the answer; empty: no ARQ in the answer
    has_handle: bool = False  # read: the answer shows an attach handle

    @property
    def time(self) -> float:
        return self.start

    def __str__(self) -> str:
        end = 'answer lost' if self.end is None else f'until {self.end:.3f}'
        answer = '' if self.status is None else f' -> {self.status}'
        parts = [self.kind.value, self.arq]
        if self.instance:
            parts.append(f'instance {self.instance}')
        if self.state:
            parts.append(f'state {self.state}')
        return f'{self.start:.3f} client {" ".join(parts)}{answer}, {end}'


@dataclass(frozen=True, slots=True)
class Step:
    """Change of an ARQ in the database."""

    number: int  # order in the database, together with the numbers of claims
    time: float  # of the statement; the transaction may end later
    arq: str
    previous: str  # state before; empty: the ARQ is created
    state: str
    generation: int = 0
    instance: str = ''
    hostname: str = ''

    def __str__(self) -> str:
        return (
            f'{self.time:.3f} #{self.number} ARQ {self.arq}: '
            f'{self.previous or "none"} -> {self.state}, generation {self.generation}, '
            f'instance {self.instance or "none"}, host {self.hostname or "none"}'
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """Change of the owner of an attach handle in the database."""

    number: int
    time: float
    hostname: str
    handle: str  # key on the host
    previous: str  # owner before; empty: none
    arq: str  # owner; empty: none

    def __str__(self) -> str:
        return (
            f'{self.time:.3f} #{self.number} handle {self.hostname} {self.handle}: '
            f'owner {self.previous or "none"} -> {self.arq or "none"}'
        )


@dataclass(frozen=True, slots=True)
class Receipt:
    """Event that Nova has accepted."""

    time: float
    arq: str
    instance: str
    status: str
    last_step: int  # number of the last step of the ARQ that was visible at this time

    def __str__(self) -> str:
        return (
            f'{self.time:.3f} Nova receives {self.status} of ARQ {self.arq} for '
            f'instance {self.instance}; the last visible step is #{self.last_step}'
        )


class HostAction(enum.StrEnum):
    """Actions of the driver on a host."""

    PREPARE = 'prepares'
    REFUSE = 'refuses to prepare'
    RELEASE = 'releases'


@dataclass(frozen=True, slots=True)
class HostStep:
    """Action of a driver on an attach handle."""

    time: float  # end of a preparation, start of a release
    hostname: str
    handle: str
    action: HostAction
    arq: str

    def __str__(self) -> str:
        return (
            f'{self.time:.3f} host {self.hostname} {self.action.value} '
            f'{self.handle} for ARQ {self.arq}'
        )


Record = Operation | Step | Claim | Receipt | HostStep


@dataclass
class History:
    """Complete history of a run, in any order."""

    operations: list[Operation] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    host_steps: list[HostStep] = field(default_factory=list)
    is_settled: bool = True
    """All faults have ended and no job is left: each promise must be fulfilled."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Part of a history that no correct service can produce."""

    rule: str
    text: str
    records: Sequence[Record]

    def __str__(self) -> str:
        records = sorted(self.records, key=lambda record: record.time)
        return '\n'.join([f'{self.rule}: {self.text}', *(f'  {r}' for r in records)])
