# SPDX-License-Identifier: Apache-2.0
"""Jobs: work outside the database that a transaction requires, and its payloads.

Each job type has one payload class. The job table stores a payload as a JSON object.
``to_json`` and ``from_json`` of the payload class are the only code that knows the keys
of that object::

    NewJob(JobType.RELEASE, ReleasePayload(handle.uuid).to_json(), key=handle.uuid)
    payload = ReleasePayload.from_json(job.payload)
"""

import enum
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, Self

from cyborg_lite.exceptions import InvalidJobPayload


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

    kind: str  # a JobType; tests use other strings
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
    kind: str  # a JobType; tests use other strings
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
    """A job as shown to operators. Times are in seconds from now."""

    uuid: str
    kind: str  # a JobType, or a type of a newer conductor
    state: JobState
    key: str | None
    payload: Mapping[str, Any]  # JSON of the payload class
    attempts: int
    step: str
    age: float
    due_in: float  # negative if the job is overdue
    deadline_in: float | None  # None: no deadline
    cancelled: bool
    owner: str | None  # None: the job is not running
    last_error: str
    request_id: str | None


@dataclass(frozen=True, slots=True)
class JobCount:
    """The number of jobs of one type in one state."""

    kind: str  # a JobType, or a type of a newer conductor
    state: JobState
    count: int


class JobPayload(Protocol):
    """The input of a job; one class for each job type."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the job table stores."""
        ...

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the payload from the JSON object.

        :raises InvalidJobPayload: a key is missing or has a value of another type
        """
        ...


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
}


@dataclass(frozen=True, slots=True)
class BindPayload:
    """The ARQs of one instance to bind, and their providers."""

    instance_uuid: str
    arq_uuids: tuple[str, ...]
    provider_uuids: tuple[str, ...]
    # Named by an admin in the bind. It overrides the project that Placement records
    # for the instance. None: not named.
    project_id: str | None = None
    generation: int = 0  # of the bind; 0: written by an earlier release

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the job table stores."""
        return {
            _INSTANCE: self.instance_uuid,
            _ARQS: list(self.arq_uuids),
            _PROVIDERS: list(self.provider_uuids),
            _PROJECT: self.project_id,
            **_generation_to_json(self.generation),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the payload from the JSON object.

        :raises InvalidJobPayload: a key is missing or has a value of another type
        """
        reader = _Reader(JobType.BIND, data)
        return cls(
            instance_uuid=reader.read_text(_INSTANCE),
            arq_uuids=reader.read_texts(_ARQS),
            provider_uuids=reader.read_texts(_PROVIDERS),
            project_id=reader.read_optional_text(_PROJECT),
            generation=read_bind_generation(data),
        )


@dataclass(frozen=True, slots=True)
class NovaEventPayload:
    """The ARQs of one instance whose binds have ended in the same way."""

    instance_uuid: str
    arq_uuids: tuple[str, ...]
    succeeded: bool
    generation: int = 0  # of the bind; 0: of any

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the job table stores."""
        return {
            _INSTANCE: self.instance_uuid,
            _ARQS: list(self.arq_uuids),
            _SUCCEEDED: self.succeeded,
            **_generation_to_json(self.generation),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the payload from the JSON object.

        :raises InvalidJobPayload: a key is missing or has a value of another type
        """
        reader = _Reader(JobType.NOVA_EVENT, data)
        return cls(
            instance_uuid=reader.read_text(_INSTANCE),
            arq_uuids=reader.read_texts(_ARQS),
            succeeded=reader.read_flag(_SUCCEEDED),
            generation=read_bind_generation(data),
        )


@dataclass(frozen=True, slots=True)
class ConnectPayload:
    """The bound ARQs of one instance whose drivers wait until it is spawned."""

    instance_uuid: str
    arq_uuids: tuple[str, ...]
    generation: int = 0  # of the bind; 0: of any

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the job table stores."""
        return {
            _INSTANCE: self.instance_uuid,
            _ARQS: list(self.arq_uuids),
            **_generation_to_json(self.generation),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the payload from the JSON object.

        :raises InvalidJobPayload: a key is missing or has a value of another type
        """
        reader = _Reader(JobType.CONNECT, data)
        return cls(
            reader.read_text(_INSTANCE),
            reader.read_texts(_ARQS),
            read_bind_generation(data),
        )


@dataclass(frozen=True, slots=True)
class ReleasePayload:
    """The attach handle that its host must clean."""

    handle_uuid: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the job table stores."""
        return {_HANDLE: self.handle_uuid}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the payload from the JSON object.

        :raises InvalidJobPayload: a key is missing or has a value of another type
        """
        return cls(_Reader(JobType.RELEASE, data).read_text(_HANDLE))


@dataclass(frozen=True, slots=True)
class PlacementSyncPayload:
    """The host whose providers Placement must have."""

    hostname: str
    deep: bool = False  # True: read all providers of the host from Placement again

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the job table stores."""
        return {_HOST: self.hostname, **({_DEEP: True} if self.deep else {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the payload from the JSON object.

        :raises InvalidJobPayload: a key is missing or has a value of another type
        """
        reader = _Reader(JobType.PLACEMENT_SYNC, data)
        deep = _DEEP in data and reader.read_flag(_DEEP)
        return cls(hostname=reader.read_text(_HOST), deep=deep)


@dataclass(frozen=True, slots=True)
class ProgramPayload:
    """The image to load, and the deployable that it is loaded into."""

    deployable_uuid: str
    image_uuid: str
    is_shell: bool  # True: the image replaces all regions of the card

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the job table stores."""
        return {
            _DEPLOYABLE: self.deployable_uuid,
            _IMAGE: self.image_uuid,
            _SHELL: self.is_shell,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the payload from the JSON object.

        :raises InvalidJobPayload: a key is missing or has a value of another type
        """
        reader = _Reader(JobType.PROGRAM, data)
        return cls(
            deployable_uuid=reader.read_text(_DEPLOYABLE),
            image_uuid=reader.read_text(_IMAGE),
            is_shell=reader.read_flag(_SHELL),
        )


@dataclass(frozen=True, slots=True)
class CleanPayload:
    """The attach handle to clean, and who has started the clean."""

    handle_uuid: str
    actor: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the job table stores."""
        return {_HANDLE: self.handle_uuid, _ACTOR: self.actor}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the payload from the JSON object.

        :raises InvalidJobPayload: a key is missing or has a value of another type
        """
        reader = _Reader(JobType.CLEAN, data)
        return cls(reader.read_text(_HANDLE), reader.read_text(_ACTOR))


@dataclass(frozen=True, slots=True)
class ModePayload:
    """The device whose mode is changed, and the mode to set."""

    device_uuid: str
    mode: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the job table stores."""
        return {_DEVICE: self.device_uuid, _MODE: self.mode}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the payload from the JSON object.

        :raises InvalidJobPayload: a key is missing or has a value of another type
        """
        reader = _Reader(JobType.MODE, data)
        return cls(reader.read_text(_DEVICE), reader.read_text(_MODE))


@dataclass(frozen=True, slots=True)
class AuditPayload:
    """The input of an audit, which has no parameters."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the job table stores."""
        return {}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the payload from the JSON object; all keys are ignored."""
        return cls()


def job_key(kind: str, payload: Mapping[str, Any]) -> str | None:
    """Return the key of a job with the payload, or None if the job type has no key."""
    return payload.get(_JOB_KEYS.get(kind, ''))


def add_bind_generation(job: NewJob, generation: int) -> NewJob:
    """Return a bind job that names the generation of its bind."""
    payload = {**job.payload, **_generation_to_json(generation)}
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
    generation = payload.get(_GENERATION, 0)
    if type(generation) is not int:
        reason = f'{_GENERATION} is not a number'
        raise InvalidJobPayload(type=JobType.BIND, reason=reason)
    return generation


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


class _Reader:
    """Reads values of a payload and checks their types."""

    def __init__(self, job_type: JobType, data: Mapping[str, Any]) -> None:
        self._job_type = job_type
        self._data = data

    def read_text(self, key: str) -> str:
        """Return a string."""
        value = self._read(key)
        if not isinstance(value, str):
            raise self._error(f'{key} is not a string')
        return value

    def read_optional_text(self, key: str) -> str | None:
        """Return a string, or None for null."""
        return None if self._read(key) is None else self.read_text(key)

    def read_texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        values = self._read(key)
        if not isinstance(values, list) or not all(
            isinstance(value, str) for value in values
        ):
            raise self._error(f'{key} is not a list of strings')
        return tuple(values)

    def read_flag(self, key: str) -> bool:
        """Return a boolean."""
        value = self._read(key)
        if not isinstance(value, bool):
            raise self._error(f'{key} is not a boolean')
        return value

    def _read(self, key: str) -> Any:
        """Return the JSON value of a key."""
        if key not in self._data:
            raise self._error(f'{key} is missing')
        return self._data[key]

    def _error(self, reason: str) -> InvalidJobPayload:
        return InvalidJobPayload(type=self._job_type, reason=reason)
