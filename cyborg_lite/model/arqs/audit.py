# SPDX-License-Identifier: Apache-2.0
"""Results of an audit: ARQs and handles whose instance or job no longer exists."""

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cyborg_lite.model.arqs.arqs import State


class AuditProblem(enum.StrEnum):
    """Problems that an audit can report."""

    SERVER_GONE = 'server-gone'
    NO_ALLOCATION = 'no-allocation'
    MORE_THAN_ALLOCATED = 'more-than-allocated'
    NEVER_BOUND = 'never-bound'
    BIND_LOST = 'bind-lost'
    NOT_RELEASED = 'not-released'
    RELEASE_FAILED = 'release-failed'


class Remedy(enum.StrEnum):
    """Actions of an audit, as shown to operators."""

    DELETE = 'delete the ARQ and release its attach handle'
    END_BIND = 'fail the bind, release its attach handles and notify Nova'
    RELEASE = 'release the attach handle again'
    CLEAR = 'delete the allocation in Placement'


STATES_WITH_INSTANCE: Final = frozenset(
    {State.BOUND, State.PROVISIONING, State.BIND_FAILED}
)
"""States in which an ARQ belongs to an instance, and no job is running for it."""

LEFTOVER_STATES: Final = frozenset(
    {State.INITIAL, State.UNBOUND, State.UNBIND_FAILED, State.DELETING}
)
"""States in which an ARQ without a handle may be abandoned by its creator."""

STATES_WITH_HANDLE: Final = STATES_WITH_INSTANCE - {State.BIND_FAILED} | {
    State.BIND_STARTED
}
"""States in which an ARQ may use its attach handle; in others a job releases it."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """An ARQ as it was read. A remedy applies only while the ARQ is unchanged."""

    id: int
    uuid: str
    state: State
    touched_at: datetime
    instance_uuid: str | None = None
    hostname: str | None = None
    device_rp_uuid: str | None = None
    resource_class: str = ''  # of its unit; empty: it needs none


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """Problem of an ARQ, and its remedy."""

    problem: AuditProblem
    suspect: Suspect
    reason: str
    remedy: Remedy | None = None  # None: the operator must decide
    handle_uuid: str | None = None
    job_uuid: str | None = None  # of the failed release


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The findings of one audit."""

    findings: tuple[AuditFinding, ...]
    failed_checks: tuple[str, ...] = ()  # each with its reason
