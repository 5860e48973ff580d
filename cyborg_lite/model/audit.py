# SPDX-License-Identifier: Apache-2.0
"""What an audit finds: devices that are held for nobody, and requests nobody wants."""

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cyborg_lite.model.arqs import State


class Trouble(enum.StrEnum):
    SERVER_GONE = 'server-gone'
    NO_ALLOCATION = 'no-allocation'
    NEVER_BOUND = 'never-bound'
    BIND_LOST = 'bind-lost'
    NOT_RELEASED = 'not-released'
    RELEASE_FAILED = 'release-failed'


class Remedy(enum.StrEnum):
    DELETE = 'delete the request and release what it holds'
    END_BIND = 'fail the bind, give back what it holds and tell Nova'
    RELEASE = 'release the device anew'


WITH_DEVICE: Final = frozenset({State.BOUND, State.PROVISIONING, State.BIND_FAILED})
"""States in which a request belongs to a server, and no job works on it."""

LEFT_OVER: Final = frozenset(
    {State.INITIAL, State.UNBOUND, State.UNBIND_FAILED, State.DELETING}
)
"""States in which a request that holds nothing may be all that its creator left."""

MAY_HOLD: Final = WITH_DEVICE - {State.BIND_FAILED} | {State.BIND_STARTED}
"""States in which a request holds a handle with good reason."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A request as it was read; it is touched only while it is still the same."""

    id: int
    uuid: str
    state: State
    touched_at: datetime
    instance_uuid: str | None = None
    hostname: str | None = None
    device_rp_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    trouble: Trouble
    suspect: Suspect
    reason: str
    remedy: Remedy | None = None  # None: only a person can decide
    handle_uuid: str | None = None
    job_uuid: str | None = None  # of the release that has failed


@dataclass(frozen=True, slots=True)
class Report:
    findings: tuple[Finding, ...]
    doubts: tuple[str, ...] = ()  # what could not be found out, and why
