# SPDX-License-Identifier: Apache-2.0
"""Jobs: work outside the database that a transaction requires, and its payloads.

Each job type has one payload class. The job table stores a payload as a JSON object.
The annotations of the class are the only place that names the keys of that object::

    NewJob(JobType.RELEASE, ReleasePayload(handle.uuid).to_json(), key=handle.uuid)
    payload = ReleasePayload.from_json(job.payload)
"""

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Final, Self, get_type_hints

from cyborg_lite.errors.jobs import InvalidJobPayload


class JobType(enum.StrEnum):
    """Job types. ``cyborg_lite/conductor`` has one handler for each."""

    BIND = 'bind'
    RELEASE = 'release'
    NOVA_EVENT = 'nova-event'
    CONNECT = 'connect'
    PLACEMENT_SYNC = 'placement-sync'
    PROGRAM = 'program'
    AUDIT = 'audit'
    CLEAN = 'clean'
    MODE = 'mode'
    SELECTORS = 'selectors'
    RECONFIGURE = 'reconfigure'


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

    type: str  # a JobType; tests use other strings
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


@dataclass(frozen=True, slots=True)
class Job:
    """A row of the job table while this process holds its lease."""

    uuid: str
    type: str  # a JobType; tests use other strings
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
    request_id: str | None = None
    host: str | None = None  # the host whose agent the job calls
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
    type: str  # a JobType, or a type of a newer conductor
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


class JobRequestKind(enum.StrEnum):
    """Work that an administrator may request."""

    AUDIT = 'audit'
    """Find ARQs whose instance or job no longer exists."""
    RECONCILE = 'reconcile'
    """Read all providers of a host from Placement again, and correct them."""
    REFRESH = 'refresh'
    """Have the agent of a host send a complete report, and reconcile the host."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request of an administrator for a job."""

    kind: JobRequestKind
    hostname: str = ''  # empty for AUDIT


@dataclass(frozen=True, slots=True)
class JobCount:
    """The number of jobs of one type in one state."""

    type: str  # a JobType, or a type of a newer conductor
    state: JobState
    count: int


@dataclass(frozen=True, slots=True)
class JobPayload:
    """Input of a job; one class for each job type.

    The annotation of a field names its key in the JSON object of the job table. A field
    that has its default 0 or False has no key, so that earlier releases can read it.
    """

    TYPE: ClassVar[JobType]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the job table stores."""
        values = (
            (entry, getattr(self, entry.name)) for entry in _list_entries(type(self))
        )
        return {
            entry.key: list(value) if isinstance(value, tuple) else value
            for entry, value in values
            if not (entry.is_omitted and value == entry.default)
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the payload from the JSON object; other keys are ignored.

        :raises InvalidJobPayload: a key is missing or has a value of another type
        """
        return cls(
            **{entry.name: entry.read(cls.TYPE, data) for entry in _list_entries(cls)}
        )


@dataclass(frozen=True, slots=True)
class _JsonType:
    """Values of a type of a field in JSON."""

    noun: str
    accepts: Callable[[Any], bool]


_NUMBER: Final = _JsonType('a number', lambda value: type(value) is int)
_JSON_TYPES: Final[Mapping[Any, _JsonType]] = {
    str: _JsonType('a string', lambda value: isinstance(value, str)),
    str | None: _JsonType(
        'a string', lambda value: value is None or isinstance(value, str)
    ),
    bool: _JsonType('a boolean', lambda value: isinstance(value, bool)),
    int: _NUMBER,
    tuple[str, ...]: _JsonType(
        'a list of strings',
        lambda value: (
            isinstance(value, list) and all(isinstance(text, str) for text in value)
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A field of a payload class, and its key in JSON."""

    name: str
    key: str
    default: Any  # MISSING: there is none
    json_type: _JsonType

    @property
    def is_omitted(self) -> bool:
        """Check whether the key is absent while the field has its default."""
        return self.default is not MISSING and self.default is not None

    def read(self, job_type: JobType, data: Mapping[str, Any]) -> Any:
        """Return the value of the field.

        :raises InvalidJobPayload: the key is missing or has a value of another type
        """
        if self.is_omitted and self.key not in data:
            return self.default
        value = _read_value(job_type, data, self.key, self.json_type)
        return tuple(value) if isinstance(value, list) else value


def _read_value(
    job_type: JobType, data: Mapping[str, Any], key: str, json_type: _JsonType
) -> Any:
    if key not in data:
        raise InvalidJobPayload(type=job_type, reason=f'{key} is missing')
    if not json_type.accepts(data[key]):
        raise InvalidJobPayload(type=job_type, reason=f'{key} is not {json_type.noun}')
    return data[key]


_ENTRIES: Final[dict[JobType, tuple[_Entry, ...]]] = {}


def _list_entries(payload_class: type[JobPayload]) -> tuple[_Entry, ...]:
    """Return the fields of a payload class; they are read from it once."""
    if payload_class.TYPE not in _ENTRIES:
        _ENTRIES[payload_class.TYPE] = _read_entries(payload_class)
    return _ENTRIES[payload_class.TYPE]


def _read_entries(payload_class: type[JobPayload]) -> tuple[_Entry, ...]:
    hints = get_type_hints(payload_class, include_extras=True)
    return tuple(
        _Entry(
            item.name,
            hints[item.name].__metadata__[0],
            item.default,
            _JSON_TYPES[hints[item.name].__origin__],
        )
        for item in fields(payload_class)
    )


_INSTANCE: Final = 'instance'
_ARQS: Final = 'arqs'
_PROVIDERS: Final = 'providers'
_PROJECT: Final = 'project'
_SUCCEEDED: Final = 'succeeded'
_HANDLE: Final = 'handle'
_HOST: Final = 'host'
_DEEP: Final = 'deep'
_DEPLOYABLE: Final = 'deployable'
_IMAGE: Final = 'image'
_SHELL: Final = 'shell'
_GENERATION: Final = 'generation'
_ACTOR: Final = 'actor'
_DEVICE: Final = 'device'
_MODE: Final = 'mode'
_RECORD: Final = 'record'
_ALTERNATIVES: Final = 'alternatives'

CALLER_KEY: Final = 'caller'
"""Key of the caller in the payload of a job of any type."""
CALLER_FIELDS: Final = ('global_request_id', 'user_id', 'project_id')

# In order of preference; see `describe_payload`.
_SUBJECTS: Final = (_INSTANCE, _HOST, _DEPLOYABLE, _HANDLE, _DEVICE)
# The key of a job of the type is one value of its payload.
_JOB_KEYS: Final[Mapping[str, str]] = {
    JobType.RELEASE: _HANDLE,
    JobType.CLEAN: _HANDLE,
    JobType.PLACEMENT_SYNC: _HOST,
    JobType.MODE: _DEVICE,
    JobType.RECONFIGURE: _DEVICE,
}


@dataclass(frozen=True, slots=True)
class BindPayload(JobPayload):
    """The ARQs of one instance to bind, and their providers."""

    TYPE = JobType.BIND

    instance_uuid: Annotated[str, _INSTANCE]
    arq_uuids: Annotated[tuple[str, ...], _ARQS]
    provider_uuids: Annotated[tuple[str, ...], _PROVIDERS]
    # Named by an admin in the bind. It overrides the project that Placement records
    # for the instance. None: not named.
    project_id: Annotated[str | None, _PROJECT] = None
    generation: Annotated[int, _GENERATION] = 0  # of the bind; 0: by an earlier release
    # The group of an ARQ has alternatives in its profile.
    has_alternatives: Annotated[bool, _ALTERNATIVES] = False


@dataclass(frozen=True, slots=True)
class NovaEventPayload(JobPayload):
    """The ARQs of one instance whose binds have ended in the same way."""

    TYPE = JobType.NOVA_EVENT

    instance_uuid: Annotated[str, _INSTANCE]
    arq_uuids: Annotated[tuple[str, ...], _ARQS]
    succeeded: Annotated[bool, _SUCCEEDED]
    generation: Annotated[int, _GENERATION] = 0  # of the bind; 0: of any


@dataclass(frozen=True, slots=True)
class ConnectPayload(JobPayload):
    """The bound ARQs of one instance whose drivers wait until it is spawned."""

    TYPE = JobType.CONNECT

    instance_uuid: Annotated[str, _INSTANCE]
    arq_uuids: Annotated[tuple[str, ...], _ARQS]
    generation: Annotated[int, _GENERATION] = 0  # of the bind; 0: of any


@dataclass(frozen=True, slots=True)
class ReleasePayload(JobPayload):
    """The attach handle that its host must clean."""

    TYPE = JobType.RELEASE

    handle_uuid: Annotated[str, _HANDLE]


@dataclass(frozen=True, slots=True)
class PlacementSyncPayload(JobPayload):
    """The host whose providers Placement must have."""

    TYPE = JobType.PLACEMENT_SYNC

    hostname: Annotated[str, _HOST]
    # True: read all providers of the host from Placement again.
    deep: Annotated[bool, _DEEP] = False


@dataclass(frozen=True, slots=True)
class ProgramPayload(JobPayload):
    """The image to load, and the deployable that it is loaded into."""

    TYPE = JobType.PROGRAM

    deployable_uuid: Annotated[str, _DEPLOYABLE]
    image_uuid: Annotated[str, _IMAGE]
    # True: the image replaces all regions of the card.
    is_shell: Annotated[bool, _SHELL]


@dataclass(frozen=True, slots=True)
class CleanPayload(JobPayload):
    """The attach handle to clean, and who has started the clean."""

    TYPE = JobType.CLEAN

    handle_uuid: Annotated[str, _HANDLE]
    actor: Annotated[str, _ACTOR]


@dataclass(frozen=True, slots=True)
class ModePayload(JobPayload):
    """The device whose mode is changed, and the mode to set."""

    TYPE = JobType.MODE

    device_uuid: Annotated[str, _DEVICE]
    mode: Annotated[str, _MODE]


@dataclass(frozen=True, slots=True)
class ReconfigurePayload(JobPayload):
    """The device whose configuration is changed, and the record of the change."""

    TYPE = JobType.RECONFIGURE

    device_uuid: Annotated[str, _DEVICE]
    record_uuid: Annotated[str, _RECORD]


@dataclass(frozen=True, slots=True)
class AuditPayload(JobPayload):
    """The input of an audit, which has no parameters."""

    TYPE = JobType.AUDIT


@dataclass(frozen=True, slots=True)
class SelectorsPayload(JobPayload):
    """The input of an evaluation of all selectors, which has no parameters."""

    TYPE = JobType.SELECTORS


def job_key(kind: str, payload: Mapping[str, Any]) -> str | None:
    """Return the key of a job with the payload, or None if the job type has no key."""
    return payload.get(_JOB_KEYS.get(kind, ''))


def add_bind_generation(
    job: NewJob, generation: int, *, has_alternatives: bool
) -> NewJob:
    """Return a bind job that names the generation of its bind.

    :param has_alternatives: the group of an ARQ has alternatives
    """
    payload = {**job.payload, **_generation_to_json(generation)}
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

    :returns: 0 if the payload names none, as those of earlier releases
    :raises InvalidJobPayload: the generation is not a number
    """
    if _GENERATION not in payload:
        return 0
    return int(_read_value(JobType.BIND, payload, _GENERATION, _NUMBER))


def _generation_to_json(generation: int) -> dict[str, int]:
    return {_GENERATION: generation} if generation else {}


def describe_payload(payload: Mapping[str, Any]) -> str | None:
    """Return the main object of a payload of any job type, such as 'host node1'.

    :returns: None if the payload names no object
    """
    for key in _SUBJECTS:
        if key in payload:
            return f'{key} {payload[key]}'
    return None
