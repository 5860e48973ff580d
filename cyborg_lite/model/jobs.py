# SPDX-License-Identifier: Apache-2.0
"""A job: something that must happen outside the database, and who does it now."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Kind(enum.StrEnum):
    """Those that transactions call for; see ``conductor/kinds`` for what does them."""

    BIND = 'bind'
    RELEASE = 'release'
    NOVA_EVENT = 'nova-event'
    PLACEMENT_SYNC = 'placement-sync'
    PROGRAM = 'program'
    AUDIT = 'audit'


class JobState(enum.StrEnum):
    WAITING = 'waiting'
    RUNNING = 'running'
    FAILED = 'failed'
    """Given up; kept for the operator until retried or cancelled."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that runs jobs, and how long it may be silent before it loses them."""

    name: str  # host, process id and start time: no two processes share it
    lease_ms: int


@dataclass(frozen=True, slots=True)
class NewJob:
    """What is written in the transaction that calls for the side effect."""

    kind: str  # a Kind, or a word of its own
    payload: Mapping[str, Any] = field(default_factory=dict)  # JSON, by kind
    key: str | None = None  # one unfinished job of a kind has it; None: any number
    limit_ms: int | None = None  # from now to its deadline; None: tried for ever
    request_id: str | None = None  # of the request that called for it
    # Whatever another job of that key would do, this one does, and more: one that is
    # there already takes over its payload.
    widens: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A row of the job table while this process holds its lease."""

    uuid: str
    kind: str  # a Kind, or a word of its own
    payload: Mapping[str, Any]  # JSON, by kind
    owner: str
    lease: int  # grows with every taking; a changed number means the lease is lost
    attempts: int = 1
    touched: int = 0  # how often it had been called for again when it was taken
    step: str = ''  # how far an earlier runner came
    awaited: bool = False  # it has a deadline: somebody waits for its end
    expired: bool = False  # taken after its deadline: only to be wound up
    cancelled: bool = False  # by an operator, and expired therefore
    age: float = 0.0  # seconds since it was written, when it was taken
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A row as an operator reads it. Times are seconds from now, by the database."""

    uuid: str
    kind: str  # a Kind, or the word of a newer conductor
    state: JobState
    key: str | None
    payload: Mapping[str, Any]  # JSON, by kind
    attempts: int
    step: str
    age: float
    due_in: float  # negative: since
    deadline_in: float | None  # None: tried for ever
    cancelled: bool
    owner: str | None  # None: nobody works on it
    last_error: str
    request_id: str | None


@dataclass(frozen=True, slots=True)
class JobCount:
    kind: str  # a Kind, or the word of a newer conductor
    state: JobState
    count: int
