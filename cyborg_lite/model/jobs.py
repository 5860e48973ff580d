# SPDX-License-Identifier: Apache-2.0
"""Jobs: work outside the database that a transaction requires, and its payloads.

Each job type has one payload class. The job table stores a payload as a JSON object::

    payload = codec.dump(ReleasePayload(handle.uuid))
    NewJob(OperationKind.RELEASE, payload, key=handle.uuid)
    payload = read_payload(ReleasePayload, job.payload)
"""

import enum
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from cyborg_lite.errors.jobs import InvalidJobPayload
from cyborg_lite.model.operations import NewOperation, OperationKind, SubjectType

HELD_IN_QUARANTINE: Final = frozenset(
    {
        OperationKind.BIND,
        OperationKind.RELEASE,
        OperationKind.PROGRAM,
        OperationKind.CLEANING,
        OperationKind.MODE,
        OperationKind.CONFIGURATION,
        OperationKind.PROVIDER_REMOVAL,
    }
)
"""Kinds of jobs that wait while the database is in quarantine.

They change what instances may use, on the word of the database.
"""


class JobState(enum.StrEnum):
    """States of a job. A job that has succeeded has no row."""

    WAITING = 'waiting'
    RUNNING = 'running'
    FAILED = 'failed'
    """Not retried any more; stored until the operator retries or cancels the job."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that runs jobs, and the length of its leases."""

    name: str  # host, process id and start time: unique for each process
    lease_ms: int


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be written in the transaction that requires the side effect."""

    type: str  # an OperationKind; tests use other strings
    payload: Mapping[str, Any] = field(
        default_factory=dict
    )  # JSON of the payload class
    # At most one unfinished job of a type has the key. None: any number of jobs.
    key: str | None = None
    limit_ms: int | None = None  # time from now to the deadline; None: no deadline
    request_id: str | None = None  # of the API request that caused the job
    # True: the job includes the work of every other job with the same key. A job that
    # is already stored takes over the payload.
    widens: bool = False
    # The host whose agent the job calls. A conductor runs only a few jobs of one host
    # at a time. None: the job calls no agent.
    host: str | None = None
    # That the job belongs to; None: no client has requested the job.
    operation: NewOperation | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A row of the job table while this process holds its lease."""

    uuid: str
    type: str  # an OperationKind; tests use other strings
    payload: Mapping[str, Any]  # JSON of the payload class
    owner: str
    lease: int  # lease number; a changed number means that the lease is lost
    attempts: int = 1
    rerun_requested: int = (
        0  # number of requests to run the job again, when it was leased
    )
    step: str = ''  # the step that an earlier worker completed
    awaited: bool = False  # the job has a deadline
    expired: bool = False  # leased after the deadline: only `expire` runs
    abandoned: bool = False  # leased after the lease of another worker ended
    cancelled: bool = False  # by an operator; implies `expired`
    age: float = 0.0  # seconds between its creation and the lease
    last_error: str = ''  # of the last attempt; empty: it did not fail
    request_id: str | None = None
    host: str | None = None  # the host whose agent the job calls
    operations: tuple[str, ...] = ()  # uuids; complete as long as no rerun is requested
    # The job replaces one that this process has just run. Nothing else has happened
    # since the transaction that wrote the job.
    is_replacement: bool = False


class HostShares:
    """The number of jobs that one process runs for each host.

    A host that does not answer keeps its jobs running until they time out. The limit
    leaves workers for other hosts.
    """

    def __init__(self, limit: int, hosts: Iterable[str | None] = ()) -> None:
        """Count the hosts of running jobs.

        :param limit: number of jobs of one host that may run at a time
        :param hosts: of the running jobs; None: the job calls no host
        """
        self._limit = limit
        self._numbers = Counter(host for host in hosts if host is not None)

    def full_hosts(self) -> tuple[str, ...]:
        """Return the hosts of which no other job may start."""
        return tuple(
            host for host, number in self._numbers.items() if number >= self._limit
        )

    def take(self, host: str | None) -> bool:
        """Count a job of the host, if it may start; return whether it may."""
        if host is None:
            return True
        if self._numbers[host] >= self._limit:
            return False
        self._numbers[host] += 1
        return True


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as shown to operators. Times are in seconds."""

    uuid: str
    type: str  # an OperationKind, or a kind of a newer conductor
    state: JobState
    key: str | None
    payload: Mapping[str, Any]  # JSON of the payload class
    attempts: int
    step: str
    age: float  # since the job was created
    due_in: float  # from now; negative if the job is overdue
    deadline_in: float | None  # from now; None: no deadline
    cancelled: bool
    owner: str | None  # None: the job is not running
    last_error: str
    request_id: str | None


@dataclass(frozen=True, slots=True)
class JobCount:
    """The number of jobs of one type in one state."""

    type: str  # an OperationKind, or a kind of a newer conductor
    state: JobState
    count: int


@dataclass(frozen=True, slots=True)
class JobPayload:
    """Input of a job; one class for each job type."""

    TYPE: ClassVar[OperationKind]
    OMITS_DEFAULTS: ClassVar[bool] = True  # in the job table


_GENERATION: Final = 'generation'
_ALTERNATIVES: Final = 'has_alternatives'

CALLER_KEY: Final = 'caller'
"""Key of the caller in the payload of a job of any type."""
CALLER_FIELDS: Final = ('global_request_id', 'user_id', 'project_id')

# In order of preference; see `name_subject`.
_SUBJECTS: Final = {
    'instance_uuid': SubjectType.INSTANCE,
    'hostname': SubjectType.HOST,
    'deployable_uuid': SubjectType.DEPLOYABLE,
    'handle_uuid': SubjectType.HANDLE,
    'device_uuid': SubjectType.DEVICE,
}
# The key of a job of the type is one value of its payload.
_JOB_KEYS: Final[Mapping[str, str]] = {
    OperationKind.RELEASE: 'handle_uuid',
    OperationKind.CLEANING: 'handle_uuid',
    OperationKind.RECONCILE: 'hostname',
    OperationKind.MODE: 'device_uuid',
    OperationKind.CONFIGURATION: 'device_uuid',
    OperationKind.PROVIDER_REMOVAL: 'hostname',
}


@dataclass(frozen=True, slots=True)
class BindPayload(JobPayload):
    """The ARQs of one instance to bind, and their providers."""

    TYPE = OperationKind.BIND

    instance_uuid: str
    arq_uuids: tuple[str, ...]
    provider_uuids: tuple[str, ...]
    # Named by an admin in the bind. It overrides the project that Placement records
    # for the instance. None: not named.
    project_id: str | None = None
    generation: int = 0  # of the bind; 0: by an earlier release
    # The group of an ARQ has alternatives in its profile.
    has_alternatives: bool = False


@dataclass(frozen=True, slots=True)
class NovaEventPayload(JobPayload):
    """The ARQs of one instance whose binds have ended in the same way."""

    TYPE = OperationKind.NOVA_EVENT

    instance_uuid: str
    arq_uuids: tuple[str, ...]
    succeeded: bool
    generation: int = 0  # of the bind; 0: of any


@dataclass(frozen=True, slots=True)
class ConnectPayload(JobPayload):
    """The bound ARQs of one instance whose drivers wait until it is spawned."""

    TYPE = OperationKind.CONNECT

    instance_uuid: str
    arq_uuids: tuple[str, ...]
    generation: int = 0  # of the bind; 0: of any


@dataclass(frozen=True, slots=True)
class ReleasePayload(JobPayload):
    """The attach handle that its host must clean."""

    TYPE = OperationKind.RELEASE

    handle_uuid: str


@dataclass(frozen=True, slots=True)
class PlacementSyncPayload(JobPayload):
    """The host whose providers Placement must have."""

    TYPE = OperationKind.RECONCILE

    hostname: str
    # True: read all providers of the host from Placement again.
    deep: bool = False


@dataclass(frozen=True, slots=True)
class AuditPayload(JobPayload):
    """The input of an audit."""

    TYPE = OperationKind.AUDIT

    applies: bool = False  # True: an administrator wants the remedies applied


@dataclass(frozen=True, slots=True)
class ProviderRemovalPayload(JobPayload):
    """The removed host whose detached providers are deleted from Placement."""

    TYPE = OperationKind.PROVIDER_REMOVAL

    hostname: str


@dataclass(frozen=True, slots=True)
class ProgramPayload(JobPayload):
    """The image to load, and the deployable that it is loaded into."""

    TYPE = OperationKind.PROGRAM

    deployable_uuid: str
    image_uuid: str
    # True: the image replaces all regions of the card.
    is_shell: bool


@dataclass(frozen=True, slots=True)
class CleanPayload(JobPayload):
    """The attach handle to clean, and who has started the cleaning run."""

    TYPE = OperationKind.CLEANING

    handle_uuid: str
    actor: str


@dataclass(frozen=True, slots=True)
class ModePayload(JobPayload):
    """The device whose mode is changed, and the mode to set."""

    TYPE = OperationKind.MODE

    device_uuid: str
    mode: str


@dataclass(frozen=True, slots=True)
class ReconfigurePayload(JobPayload):
    """The device whose configuration is changed, and the record of the change."""

    TYPE = OperationKind.CONFIGURATION

    device_uuid: str
    record_uuid: str


def job_key(kind: str, payload: Mapping[str, Any]) -> str | None:
    """Return the key of a job with the payload, or None if the job type has no key."""
    return payload.get(_JOB_KEYS.get(kind, ''))


def add_bind_generation(
    job: NewJob, generation: int, *, has_alternatives: bool
) -> NewJob:
    """Return a bind job that names the generation of its bind.

    :param has_alternatives: the group of an ARQ has alternatives
    """
    payload = {**job.payload, _GENERATION: generation}
    if has_alternatives:
        payload[_ALTERNATIVES] = True
    return replace(job, payload=payload)


def read_caller(payload: Mapping[str, Any]) -> dict[str, str]:
    """Return the caller of the request that caused a job of any type.

    :returns: values by name of a field; empty for a job without a request, and for jobs
        of earlier releases
    """
    caller = payload.get(CALLER_KEY)
    if not isinstance(caller, dict):
        return {}
    return {
        name: value
        for name, value in caller.items()
        if name in CALLER_FIELDS and isinstance(value, str)
    }


def read_bind_generation(payload: Mapping[str, Any]) -> int:
    """Return the generation of the bind that a payload of any job type belongs to.

    :returns: 0 if the payload names none
    :raises InvalidJobPayload: the generation is not a number
    """
    generation = payload.get(_GENERATION, 0)
    if type(generation) is not int:
        reason = 'the generation is not a number'
        raise InvalidJobPayload(type=OperationKind.BIND, reason=reason)
    return generation


def name_subject(payload: Mapping[str, Any]) -> tuple[SubjectType, str]:
    """Return the main object of a payload of any job type, and its type."""
    for key, subject in _SUBJECTS.items():
        if key in payload:
            return subject, str(payload[key])
    return SubjectType.NONE, ''
