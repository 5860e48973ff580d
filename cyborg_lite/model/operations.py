# SPDX-License-Identifier: Apache-2.0
"""Operations: work that a client has requested, from the request to its end.

An operation is written in the transaction that accepts the request, and ends in the
transaction that ends its jobs. Its row outlives the jobs.
"""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import uuid4


class OperationKind(enum.StrEnum):
    """Kinds of operations and of their jobs, in requests, responses and the database.

    ``cyborg_lite/conductor`` has one handler for each, except for ``refresh`` and
    ``forget``, whose jobs are of the kind ``reconcile``.
    """

    BIND = 'bind'
    RELEASE = 'release'
    PROGRAM = 'program'
    MODE = 'mode'
    CONFIGURATION = 'configuration'
    CLEANING = 'cleaning'
    AUDIT = 'audit'
    """Find ARQs whose instance or job no longer exists."""
    RECONCILE = 'reconcile'
    """Read all providers of a host from Placement again, and correct them."""
    REFRESH = 'refresh'
    """Have the agent of a host send a complete report, and reconcile the host."""
    FORGET = 'forget'
    # Only work of the service itself.
    NOVA_EVENT = 'nova-event'
    CONNECT = 'connect'
    SELECTORS = 'selectors'
    PROVIDER_REMOVAL = 'provider-removal'


REQUESTABLE: Final = (
    OperationKind.AUDIT,
    OperationKind.RECONCILE,
    OperationKind.REFRESH,
)
"""Kinds that ``POST /v2/operations`` starts."""


class OperationState(enum.StrEnum):
    """States of an operation."""

    WAITING = 'waiting'
    RUNNING = 'running'
    SUCCEEDED = 'succeeded'
    FAILED = 'failed'
    CANCELLED = 'cancelled'


class SubjectType(enum.StrEnum):
    """Types of the objects of operations, and of what waits for an operator."""

    INSTANCE = 'instance'
    ARQ = 'accelerator_request'
    DEVICE = 'device'
    DEPLOYABLE = 'deployable'
    HANDLE = 'attach_handle'
    HOST = 'host'
    OPERATION = 'operation'
    SERVICE = 'service'
    DEVICE_PROFILE = 'device_profile'
    DATABASE = 'database'
    NONE = ''


UNFINISHED: Final = (OperationState.WAITING, OperationState.RUNNING)


@dataclass(frozen=True, slots=True)
class NewOperation:
    """An operation to be written with its jobs."""

    kind: str  # an OperationKind, or the kind of a newer conductor
    subject_type: SubjectType = SubjectType.NONE
    subject_id: str = ''
    # What the client requested, as JSON. Clients of the project read it.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    project_id: str | None = None  # that reads the operation; None: administrators
    user_id: str | None = None
    request_id: str | None = None
    uuid: str = field(default_factory=lambda: str(uuid4()))
    # True: the operation has failed, and its job does the work again.
    is_retry: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as clients read it."""

    uuid: str
    kind: str  # an OperationKind, or the kind of a newer conductor
    state: OperationState
    subject_type: SubjectType
    subject_id: str
    parameters: Mapping[str, Any]
    project_id: str | None
    user_id: str | None
    request_id: str | None
    progress: int  # in percent
    steps: tuple[Mapping[str, str], ...]  # keys: name, at, reason; maybe error_code
    reason: str  # of a failure or a delay; empty: neither
    error_code: str | None
    result: Mapping[str, Any] | None
    created_at: datetime
    updated_at: datetime | None = None  # None: never updated
    started_at: datetime | None = None  # None: not yet
    ended_at: datetime | None = None  # None: not yet

    def list_arqs(self) -> Collection[str]:
        """Return the uuids of the ARQs of a bind or release."""
        return tuple(self.parameters.get('arqs', ()))

    @property
    def has_ended(self) -> bool:
        """Return True if the state does not change any more, except by a retry."""
        return self.state not in UNFINISHED
