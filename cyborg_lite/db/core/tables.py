# SPDX-License-Identifier: Apache-2.0
"""The database schema.

Rows never leave this package; other packages receive dataclasses of ``model``. A change
here needs a new revision in ``alembic/versions``. Tests compare both schemas.
"""

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    ColumnElement,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    and_,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedColumn, mapped_column

from cyborg_lite.db.core.column_types import (
    BIG,
    CONSTRAINT_NAMES,
    MYSQL_OPTIONS,
    UtcDateTime,
)
from cyborg_lite.model.hosts.services import AGENT

_NULL_JSON: Final = JSON(none_as_null=True)


# Any: options of `mapped_column`.
def _part_of(table: str, **options: Any) -> MappedColumn[int]:
    """Return a reference to the row with which a row is deleted."""
    return mapped_column(ForeignKey(f'{table}.id', ondelete='CASCADE'), **options)


def now() -> datetime:
    """Return the current time of this process in UTC."""
    return datetime.now(UTC)


class Base(DeclarativeBase):
    """Base of all tables."""

    metadata = MetaData(naming_convention=CONSTRAINT_NAMES)
    type_annotation_map = {datetime: UtcDateTime}  # noqa: RUF012  # SQLAlchemy's form

    id: Mapped[int] = mapped_column(primary_key=True)


class _Identified:
    """The uuid by which other processes name a row."""

    uuid: Mapped[str] = mapped_column(String(36), unique=True)


class _Timed:
    """The creation time and the time of the last change."""

    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime | None] = mapped_column(onupdate=now)


class _Numbered:
    """The generation of a row: 0, and 1 more with each change.

    A statement that changes nothing that clients see must set it to itself.
    """

    generation: Mapped[int] = mapped_column(default=0, onupdate=text('generation + 1'))


class Service(_Identified, Base):
    """A daemon: a conductor or an agent."""

    __tablename__ = 'services'
    __table_args__ = (UniqueConstraint('host', 'binary'),)

    binary: Mapped[str] = mapped_column(String(64))
    host: Mapped[str] = mapped_column(String(255))
    version: Mapped[str] = mapped_column(String(64))
    started_at: Mapped[datetime] = mapped_column(default=now)
    # By the clock of the database, so that heartbeats of all hosts are comparable.
    heartbeat_at: Mapped[datetime] = mapped_column(default=now)
    # A value of ServiceState; conductors derive UP and DOWN from heartbeat_at.
    state: Mapped[str] = mapped_column(String(8), default='up')
    digest: Mapped[str | None] = mapped_column(String(64))
    boot_id: Mapped[str | None] = mapped_column(String(64))
    # Agents: the number of the last host event that was recorded.
    last_event: Mapped[int] = mapped_column(BigInteger, default=0)
    # Agents: the time of the last full comparison of the host with Placement.
    audited_at: Mapped[datetime] = mapped_column(default=now)
    # Agents: identity of the agent that speaks for the host. NULL: not known.
    identity: Mapped[str | None] = mapped_column(String(36))
    # Agents: name of the machine of that agent. Empty: not known.
    machine: Mapped[str] = mapped_column(String(64), default='')
    # Agents: number of the last stored report; see model/inventory/host_report.py.
    report_number: Mapped[int] = mapped_column(BigInteger, default=0)

    @classmethod
    def is_agent_of(cls, hostname: Any) -> ColumnElement[bool]:
        """Return SQL that is true for the agent of a host, given as text or column."""
        return and_(cls.binary == AGENT, cls.host == hostname)


class Fault(Base):
    """A fault of a daemon that conductors have seen lately."""

    __tablename__ = 'faults'
    __table_args__ = (UniqueConstraint('kind', 'host', 'name'),)

    kind: Mapped[str] = mapped_column(String(32))  # a value of AttentionKind
    host: Mapped[str] = mapped_column(String(255))  # empty: not known
    name: Mapped[str] = mapped_column(String(64))  # of the daemon
    reason: Mapped[str] = mapped_column(Text)
    since: Mapped[datetime] = mapped_column(default=now)
    seen_at: Mapped[datetime] = mapped_column(default=now)


class Device(_Identified, _Timed, _Numbered, Base):
    """A device that an agent has reported."""

    __tablename__ = 'devices'
    __table_args__ = (UniqueConstraint('hostname', 'hardware_id'),)

    hostname: Mapped[str] = mapped_column(String(255), index=True)
    type: Mapped[str] = mapped_column(String(32))
    vendor: Mapped[str] = mapped_column(String(255))
    model: Mapped[str] = mapped_column(String(255))
    driver: Mapped[str] = mapped_column(String(64))
    # PCI address of the function that manages the device.
    control_address: Mapped[str] = mapped_column(String(64))
    hardware_id: Mapped[str] = mapped_column(String(128))
    std_board_info: Mapped[dict[str, str] | None] = mapped_column(JSON)
    vendor_board_info: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16), default='enabled')
    # Why the operator put the device in maintenance.
    status_reason: Mapped[str] = mapped_column(String(255), default='')
    health: Mapped[str] = mapped_column(String(16), default='ok')
    health_reason: Mapped[str] = mapped_column(String(255), default='')
    # The last telemetry; see model/devices/telemetry.py.
    telemetry: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    # The other service that manages the device, according to Placement; empty: none.
    conflict: Mapped[str] = mapped_column(String(255), default='')
    # Why no new instance gets the device until an operator decides; empty: it may.
    quarantine: Mapped[str] = mapped_column(String(255), default='')
    # Time of the last change of the health.
    health_since: Mapped[datetime] = mapped_column(default=now)
    # Time at which the telemetry was received. NULL: never.
    telemetry_at: Mapped[datetime | None]


class Deployable(_Identified, _Timed, Base):
    """A device, or a part of it that can be scheduled on its own."""

    __tablename__ = 'deployables'
    __table_args__ = (UniqueConstraint('device_id', 'name'),)

    device_id: Mapped[int] = mapped_column(ForeignKey('devices.id'))
    parent_id: Mapped[int | None] = mapped_column(
        ForeignKey('deployables.id'), index=True
    )
    root_id: Mapped[int | None] = mapped_column(
        ForeignKey('deployables.id'), index=True
    )
    name: Mapped[str] = mapped_column(String(255), index=True)
    resource_class: Mapped[str | None] = mapped_column(String(255))
    traits: Mapped[list[str]] = mapped_column(JSON)
    num_accelerators: Mapped[int] = mapped_column(default=0)
    reserved: Mapped[int] = mapped_column(default=0)
    rp_uuid: Mapped[str | None] = mapped_column(String(36), unique=True)
    driver_name: Mapped[str | None] = mapped_column(String(64))
    bitstream_id: Mapped[str | None] = mapped_column(String(36))
    # What selectors compare; see model/inventory/typed_attributes.py. NULL: none.
    typed_attributes: Mapped[list[dict[str, str]] | None] = mapped_column(_NULL_JSON)
    # Names of the attributes of bitstreams that the conductor found to fit; see
    # model/profiles/selector_keys.py. NULL: none.
    loadable: Mapped[list[str] | None] = mapped_column(_NULL_JSON)


class LoadedRegion(Base):
    """The bitstream that was loaded into a deployable, and the one before a bind.

    Not part of ``deployables``: reports of the host never change these values. The
    bitstream is stored as it was when it was checked, because its image may be deleted.
    """

    __tablename__ = 'loaded_regions'

    deployable_id: Mapped[int] = _part_of('deployables', unique=True)
    bitstream: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    # A bind loaded the bitstream. The release loads the previous one again.
    changed_by_bind: Mapped[bool] = mapped_column(default=False)
    previous_bitstream: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    previous_function_id: Mapped[str] = mapped_column(String(255), default='')
    # Why the deployable cannot be allocated; empty: it can.
    unusable_reason: Mapped[str] = mapped_column(String(255), default='')


class ProviderTraits(Base):
    """Traits that Cyborg, and no other service, has set on a provider.

    Not a column of ``deployables``: a provider can outlive the row of its device and
    then belong to the next device in the slot.
    """

    __tablename__ = 'provider_traits'

    rp_uuid: Mapped[str] = mapped_column(String(36), unique=True)
    traits: Mapped[list[str]] = mapped_column(JSON)


class AuditedProvider(Base):
    """A provider whose allocations an audit has copied into ``allocations``."""

    __tablename__ = 'audited_providers'

    rp_uuid: Mapped[str] = mapped_column(String(36), unique=True)
    # The provider generation in Placement before the copy.
    generation: Mapped[int]
    read_at: Mapped[datetime]


class Allocation(Base):
    """An allocation in Placement, as the last audit of its provider has read it."""

    __tablename__ = 'allocations'
    __table_args__ = (UniqueConstraint('consumer_uuid', 'rp_uuid', 'resource_class'),)

    consumer_uuid: Mapped[str] = mapped_column(String(36))
    rp_uuid: Mapped[str] = mapped_column(String(36), index=True)
    resource_class: Mapped[str] = mapped_column(String(255))
    amount: Mapped[int]
    # NULL, both: an ARQ explains the allocation, or no audit has confirmed that none
    # does. See UnownedAllocation.
    unowned_since: Mapped[datetime | None]
    has_server: Mapped[bool | None]


class Attribute(_Identified, _Timed, Base):
    """A key and a value that describe a deployable."""

    __tablename__ = 'attributes'
    __table_args__ = (UniqueConstraint('deployable_id', 'key'),)

    deployable_id: Mapped[int] = mapped_column(ForeignKey('deployables.id'))
    key: Mapped[str] = mapped_column(String(255))
    value: Mapped[str] = mapped_column(Text)
    # True: the driver reports it, and it is deleted when the driver stops doing so.
    # False: an admin or a load has added it.
    reported: Mapped[bool] = mapped_column(default=False)
    # An admin has deleted it. The row prevents that a host report creates it again.
    hidden: Mapped[bool] = mapped_column(default=False)


class DeviceProfile(_Identified, _Timed, _Numbered, Base):
    """A device profile."""

    __tablename__ = 'device_profiles'

    name: Mapped[str] = mapped_column(String(255), unique=True)
    description: Mapped[str | None] = mapped_column(Text)
    groups: Mapped[list[dict[str, str]]] = mapped_column(JSON)
    enabled: Mapped[bool] = mapped_column(default=True)
    is_public: Mapped[bool] = mapped_column(default=True)
    # For each group the groups that may be used instead. NULL: no group has any.
    alternatives: Mapped[list[list[dict[str, str]]] | None] = mapped_column(_NULL_JSON)
    # The groups before their last change, and the time of it. Nova may have scheduled
    # instances by them whose ARQs it creates now.
    former_groups: Mapped[list[dict[str, str]] | None] = mapped_column(_NULL_JSON)
    groups_changed_at: Mapped[datetime | None]


class ProfileChoice(Base):
    """The last choice of the alternatives of a device profile; see alternatives.py.

    Not columns of the profile: a choice is no change of the profile.
    """

    __tablename__ = 'profile_choices'

    device_profile_id: Mapped[int] = _part_of('device_profiles', unique=True)
    choice: Mapped[list[int]] = mapped_column(JSON)  # the index for each group
    chosen_at: Mapped[int] = mapped_column(BigInteger)  # ms of the database clock


class ProfilePromise(Base):
    """A choice that Nova has read, and for which it has not created ARQs yet."""

    __tablename__ = 'profile_promises'

    device_profile_id: Mapped[int] = _part_of('device_profiles', index=True)
    choice: Mapped[list[int]] = mapped_column(JSON)  # the index for each group
    promised_at: Mapped[int] = mapped_column(BigInteger)  # ms of the database clock


class DeviceProfileName(Base):
    """A former name of a device profile, which flavors may still contain.

    No other profile can take the name; see profiles.py. The row is deleted with
    its profile.
    """

    __tablename__ = 'device_profile_names'

    name: Mapped[str] = mapped_column(String(255), unique=True)
    device_profile_id: Mapped[int] = _part_of('device_profiles', index=True)


class DeviceProfileAccess(Base):
    """A project that may use a private device profile; deleted with the profile."""

    __tablename__ = 'device_profile_access'
    __table_args__ = (UniqueConstraint('device_profile_id', 'project_id'),)

    device_profile_id: Mapped[int] = _part_of('device_profiles')
    project_id: Mapped[str] = mapped_column(String(64))


class FormerServer(Base):
    """An instance that has released the accelerators of a device profile.

    It may need new ones when it is unshelved or evacuated; see
    device_profiles/former_servers.py. The row is deleted with its profile.
    """

    __tablename__ = 'former_servers'
    __table_args__ = (UniqueConstraint('instance_uuid', 'device_profile_id'),)

    instance_uuid: Mapped[str] = mapped_column(String(36))
    device_profile_id: Mapped[int] = _part_of('device_profiles', index=True)
    released_at: Mapped[datetime] = mapped_column(default=now)


class Arq(_Identified, _Timed, Base):
    """An ARQ (accelerator request)."""

    __tablename__ = 'arqs'
    # `instance_slot` numbers the ARQs of an instance. If two sets of ARQs are bound to
    # one instance at the same time, only one set can get slot 0.
    __table_args__ = (UniqueConstraint('instance_uuid', 'instance_slot'),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    state: Mapped[str] = mapped_column(String(16), index=True)
    device_profile_id: Mapped[int] = mapped_column(
        ForeignKey('device_profiles.id'), index=True
    )
    device_profile_name: Mapped[str] = mapped_column(String(255))
    device_profile_group_id: Mapped[int] = mapped_column(Integer)
    device_profile_group: Mapped[dict[str, str]] = mapped_column(JSON)
    project_id: Mapped[str | None] = mapped_column(String(64), index=True)
    hostname: Mapped[str | None] = mapped_column(String(255), index=True)
    device_rp_uuid: Mapped[str | None] = mapped_column(String(36))
    instance_uuid: Mapped[str | None] = mapped_column(String(36))
    instance_slot: Mapped[int | None] = mapped_column(Integer)
    status_reason: Mapped[str | None] = mapped_column(String(255))
    # The code of the error with this text. It stands for the text for tenants.
    error_code: Mapped[str | None] = mapped_column(String(64))
    # Created while its profile was disabled: only an instance that had accelerators of
    # the profile before may use it.
    for_former_server: Mapped[bool] = mapped_column(default=False)
    # Raised when a bind is accepted; see attach_handles.py. 0: never bound.
    generation: Mapped[int] = mapped_column(default=0)
    # The class of the unit that the ARQ requests. Empty: none, it is a companion.
    resource_class: Mapped[str] = mapped_column(String(255))
    # Start of the use of the unit; milliseconds as in `usage_periods`. NULL: no use.
    bound_at: Mapped[int | None] = mapped_column(BigInteger)
    # The groups of which the ARQ may request a unit, in order of preference;
    # `device_profile_group` is one of them. NULL: it is the only group.
    alternatives: Mapped[list[dict[str, str]] | None] = mapped_column(_NULL_JSON)
    # Index of `device_profile_group` in `alternatives`.
    alternative: Mapped[int] = mapped_column(Integer, default=0)


class ArqEvent(Base):
    """A step in the history of an ARQ. Outlives the ARQ."""

    __tablename__ = 'arq_events'

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    # No foreign key: the history of a deleted ARQ can be read.
    arq_uuid: Mapped[str] = mapped_column(String(36), index=True)
    # Those of the ARQ at this step.
    project_id: Mapped[str | None] = mapped_column(String(64))
    instance_uuid: Mapped[str | None] = mapped_column(String(36), index=True)
    step: Mapped[str] = mapped_column(String(32))
    actor: Mapped[str] = mapped_column(String(32))
    reason: Mapped[str | None] = mapped_column(String(255))
    error_code: Mapped[str | None] = mapped_column(String(64))
    at: Mapped[datetime] = mapped_column(default=now)


class AttachHandle(_Identified, _Timed, Base):
    """An attach handle: the unit that one ARQ can own."""

    __tablename__ = 'attach_handles'
    __table_args__ = (
        UniqueConstraint('deployable_id', 'key'),
        Index('ix_attach_handles_free', 'deployable_id', 'arq_uuid', 'id'),
    )

    deployable_id: Mapped[int] = mapped_column(ForeignKey('deployables.id'))
    key: Mapped[str] = mapped_column(String(128))
    type: Mapped[str] = mapped_column(String(16))
    info: Mapped[dict[str, str]] = mapped_column(JSON)
    needs_host: Mapped[bool] = mapped_column(default=False)
    managed: Mapped[bool] = mapped_column(default=True)
    # In use by a consumer other than Cyborg.
    in_use: Mapped[bool] = mapped_column(default=False)
    # No longer on the host. The row exists until its ARQ releases the handle.
    missing: Mapped[bool] = mapped_column(default=False)
    # A job prepares or loads the device on the host; no other job may start there.
    preparing: Mapped[bool] = mapped_column(default=False)
    # Number of claims so far. The agent ignores calls with an older generation.
    generation: Mapped[int] = mapped_column(default=0)
    # Generation of the bind that has claimed the handle last.
    bind_generation: Mapped[int] = mapped_column(default=0)
    # The owner. Unique and a foreign key: the schema itself prevents that an ARQ owns
    # two handles, or is deleted while it owns one.
    arq_uuid: Mapped[str | None] = mapped_column(ForeignKey('arqs.uuid'), unique=True)
    # First slot of the unit on an elastic card, chosen by the last claim. NULL: the
    # card was not elastic.
    place: Mapped[int | None]
    # When the unit is cleaned, as the driver reports it; a value of CleaningPolicy.
    cleaning: Mapped[str] = mapped_column(String(16), default='never')
    # A value of CleanState. While an ARQ owns the handle it is `clean`.
    clean_state: Mapped[str] = mapped_column(String(16), default='clean')
    clean_reason: Mapped[str] = mapped_column(String(255), default='')


class Cleaning(_Identified, Base):
    """A cleaning run of one unit; deleted with its device. It names no user."""

    __tablename__ = 'cleanings'

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    device_id: Mapped[int] = _part_of('devices', index=True)
    # No foreign key: the record stays if the handle is deleted.
    handle_uuid: Mapped[str] = mapped_column(String(36), index=True)
    unit: Mapped[str] = mapped_column(String(128))  # key of the handle
    generation: Mapped[int]  # of the handle
    state: Mapped[str] = mapped_column(String(16))  # a value of CleaningState
    actor: Mapped[str] = mapped_column(String(255))
    steps: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    step_count: Mapped[int] = mapped_column(default=0)
    reason: Mapped[str] = mapped_column(String(255), default='')
    started_at: Mapped[datetime] = mapped_column(default=now)
    finished_at: Mapped[datetime | None]


class Reconfiguration(_Identified, Base):
    """A change of the configuration of a device by playbooks; deleted with it."""

    __tablename__ = 'reconfigurations'

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    device_id: Mapped[int] = _part_of('devices', index=True)
    hardware_set: Mapped[str] = mapped_column(String(64))
    settings: Mapped[dict[str, Any]] = mapped_column(JSON)
    # Ids of the devices that the change holds; empty: it has not begun.
    held_ids: Mapped[list[int]] = mapped_column(JSON)
    state: Mapped[str] = mapped_column(String(16))  # of ReconfigurationState
    phase: Mapped[str] = mapped_column(String(16), default='')  # of Phase, or empty
    tasks: Mapped[int] = mapped_column(default=0)  # number of tasks that have ended
    log: Mapped[str] = mapped_column(Text, default='')
    reason: Mapped[str] = mapped_column(String(1024), default='')
    actor: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime] = mapped_column(default=now)
    finished_at: Mapped[datetime | None]


class Job(_Identified, Base):
    """A job that is waiting, running or failed.

    Times are milliseconds since the epoch, by the clock of the database.
    """

    __tablename__ = 'jobs'
    __table_args__ = (
        UniqueConstraint('kind', 'key'),
        Index('ix_jobs_due', 'state', 'run_after'),
        Index('ix_jobs_leased', 'state', 'lease_until'),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    kind: Mapped[str] = mapped_column(String(32))
    key: Mapped[str | None] = mapped_column(String(255))
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)
    # Number of requests for the same job since it was created. If the number grows
    # while the job runs, the job runs once more.
    rerun_requested: Mapped[int] = mapped_column(default=0)
    state: Mapped[str] = mapped_column(String(16), default='waiting')
    step: Mapped[str] = mapped_column(String(64), default='')
    attempts: Mapped[int] = mapped_column(default=0)
    run_after: Mapped[int] = mapped_column(BigInteger)
    # 0: an operator has cancelled the job. NULL: no deadline.
    deadline: Mapped[int | None] = mapped_column(BigInteger)
    owner: Mapped[str | None] = mapped_column(String(255))
    lease: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[int | None] = mapped_column(BigInteger)
    last_error: Mapped[str] = mapped_column(String(1024), default='')
    request_id: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[int] = mapped_column(BigInteger)
    # The host whose agent the job calls. NULL: none.
    host: Mapped[str | None] = mapped_column(String(255))


class JobOperation(Base):
    """An operation that a job works for. Outlives the job."""

    __tablename__ = 'job_operations'

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    operation_uuid: Mapped[str] = mapped_column(String(36), index=True)
    job_uuid: Mapped[str] = mapped_column(String(36), index=True)
    # A bind row becomes an event row, which does not work for the operation.
    job_kind: Mapped[str] = mapped_column(String(32))


class Operation(_Identified, _Timed, Base):
    """An operation: what clients read of jobs. Outlives the rows of its jobs."""

    __tablename__ = 'operations'
    __table_args__ = (Index('ix_operations_subject', 'subject_id', 'kind'),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))  # a value of OperationKind
    subject_type: Mapped[str] = mapped_column(String(32))  # a value of SubjectType
    subject_id: Mapped[str] = mapped_column(String(255))
    parameters: Mapped[dict[str, Any]] = mapped_column(JSON)
    # The project that reads the operation. NULL: only administrators read it.
    project_id: Mapped[str | None] = mapped_column(String(64), index=True)
    user_id: Mapped[str | None] = mapped_column(String(64))
    request_id: Mapped[str | None] = mapped_column(String(64))
    state: Mapped[str] = mapped_column(String(16), default='waiting')
    progress: Mapped[int] = mapped_column(default=0)  # percent
    steps: Mapped[list[dict[str, str]]] = mapped_column(JSON, default=list)
    reason: Mapped[str] = mapped_column(String(255), default='')
    error_code: Mapped[str | None] = mapped_column(String(64))
    result: Mapped[dict[str, Any] | None] = mapped_column(_NULL_JSON)
    # The numbers of its jobs: all, and those that have not ended.
    jobs: Mapped[int] = mapped_column(default=0)
    pending: Mapped[int] = mapped_column(default=0)
    # The state after the end of the pending jobs, if all of them succeed.
    outcome: Mapped[str] = mapped_column(String(16), default='succeeded')
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None] = mapped_column(index=True)


class UsagePeriod(Base):
    """A period in which an ARQ had a unit, after its end. Outlives the ARQ.

    Times are milliseconds since the epoch, by the clock of the database.
    """

    __tablename__ = 'usage_periods'
    __table_args__ = (
        Index('ix_usage_periods_end', 'ended_at'),
        Index('ix_usage_periods_project', 'project_id', 'ended_at'),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    arq_uuid: Mapped[str] = mapped_column(String(36), index=True)
    project_id: Mapped[str | None] = mapped_column(String(64))
    resource_class: Mapped[str] = mapped_column(String(255))
    device_profile_name: Mapped[str] = mapped_column(String(255))
    hostname: Mapped[str | None] = mapped_column(String(255))
    instance_uuid: Mapped[str | None] = mapped_column(String(36))
    started_at: Mapped[int] = mapped_column(BigInteger)
    ended_at: Mapped[int] = mapped_column(BigInteger)


class DeviceEvent(Base):
    """A step in the history of a device. Outlives the device."""

    __tablename__ = 'device_events'

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    # No foreign key: the history of a removed device can be read.
    device_uuid: Mapped[str] = mapped_column(String(36), index=True)
    hostname: Mapped[str] = mapped_column(String(255))
    # Serial number of the device, whatever host it is in; empty: it has none.
    serial: Mapped[str] = mapped_column(String(128), default='', index=True)
    kind: Mapped[str] = mapped_column(String(32))  # a value of DeviceEventKind
    unit: Mapped[str] = mapped_column(String(128), default='')  # empty: all units
    value: Mapped[str] = mapped_column(String(255), default='')
    reason: Mapped[str] = mapped_column(String(255), default='')
    at: Mapped[datetime] = mapped_column(default=now, index=True)


class Notification(_Identified, Base):
    """A notification that is not sent yet. The row is deleted when it is sent."""

    __tablename__ = 'notifications'

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    event_type: Mapped[str] = mapped_column(String(64))
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[int] = mapped_column(BigInteger)  # milliseconds, as of a job


class Lease(Base):
    """Work that only one conductor does at a time."""

    __tablename__ = 'leases'

    name: Mapped[str] = mapped_column(String(64), unique=True)
    owner: Mapped[str] = mapped_column(String(255))
    lease_until: Mapped[int] = mapped_column(BigInteger)  # milliseconds, as of a job


class Incarnation(Base):
    """An incarnation of the database after a restore; see model/hosts/incarnations.py.

    The database of a new deployment has no row: its incarnation is 0.
    """

    __tablename__ = 'incarnations'

    # Larger than the incarnation that any daemon remembers.
    quarantined_at: Mapped[datetime] = mapped_column(default=now)
    reason: Mapped[str] = mapped_column(String(255))
    # NULL: the quarantine goes on.
    began_at: Mapped[datetime | None]


class ReceivedCall(Base):
    """A signed call that has changed the database, so that no repetition does."""

    __tablename__ = 'received_calls'

    # Its signature.
    id: Mapped[str] = mapped_column(  # type: ignore[assignment]  # other ids are int
        String(22), primary_key=True
    )
    received_at: Mapped[datetime] = mapped_column(index=True)


class ProjectLock(Base):
    """A row that calls lock to create ARQs of one project one after the other."""

    __tablename__ = 'project_locks'

    project_id: Mapped[str] = mapped_column(String(64), unique=True)


for _table in Base.metadata.tables.values():
    _table.dialect_kwargs.update(MYSQL_OPTIONS)
