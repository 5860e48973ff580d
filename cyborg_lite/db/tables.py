# SPDX-License-Identifier: Apache-2.0
"""The schema. Rows of it never leave this package; ``alembic/`` must agree with it."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    true,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

# Explicit names, so that a later migration can drop what an earlier one made.
_NAMES = {
    'ix': 'ix_%(column_0_label)s',
    'uq': 'uq_%(table_name)s_%(column_0_N_name)s',
    'fk': 'fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s',
    'pk': 'pk_%(table_name)s',
}

# For the ids of rows that come with each bind. SQLite counts by itself in plain
# integers alone, and they have 64 bits there.
_BIG = BigInteger().with_variant(Integer, 'sqlite')


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC in Python, naive UTC with microseconds in every database."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        if dialect.name in ('mysql', 'mariadb'):
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(DateTime())

    def process_bind_param(
        self, value: datetime | None, dialect: Dialect
    ) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


def now() -> datetime:
    return datetime.now(UTC)


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {datetime: UtcDateTime}  # noqa: RUF012  # SQLAlchemy's form


class _Timed:
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime | None] = mapped_column(onupdate=now)


class Service(Base):
    __tablename__ = 'services'
    __table_args__ = (UniqueConstraint('host', 'binary'),)

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(String(36), unique=True)
    binary: Mapped[str] = mapped_column(String(64))
    host: Mapped[str] = mapped_column(String(255))
    version: Mapped[str] = mapped_column(String(64))
    started_at: Mapped[datetime] = mapped_column(default=now)
    # Times by the clock of the database: they are compared with one another.
    heartbeat_at: Mapped[datetime] = mapped_column(default=now)
    # Found out by comparing, see liveness.py; up or down.
    state: Mapped[str] = mapped_column(String(8), default='up')
    digest: Mapped[str | None] = mapped_column(String(64))
    boot_id: Mapped[str | None] = mapped_column(String(64))
    # Of an agent: the last event of its journal that was heard.
    last_event: Mapped[int] = mapped_column(BigInteger, default=0)
    # Of an agent: when its host was last compared with Placement in full.
    audited_at: Mapped[datetime] = mapped_column(default=now)


class Device(_Timed, Base):
    __tablename__ = 'devices'
    __table_args__ = (UniqueConstraint('hostname', 'hardware_id'),)

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(String(36), unique=True)
    hostname: Mapped[str] = mapped_column(String(255), index=True)
    type: Mapped[str] = mapped_column(String(32))
    vendor: Mapped[str] = mapped_column(String(255))
    model: Mapped[str] = mapped_column(String(255))
    driver: Mapped[str] = mapped_column(String(64))
    address: Mapped[str] = mapped_column(String(64))
    hardware_id: Mapped[str] = mapped_column(String(128))
    std_board_info: Mapped[dict[str, str] | None] = mapped_column(JSON)
    vendor_board_info: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16), default='enabled')
    # Of a maintenance, by who began it.
    status_reason: Mapped[str] = mapped_column(String(255), default='')
    health: Mapped[str] = mapped_column(String(16), default='ok')
    health_reason: Mapped[str] = mapped_column(String(255), default='')
    # The last that its driver told; see usage.py in model.
    figures: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    # Who else manages it, by what Placement shows; empty: nobody.
    conflict: Mapped[str] = mapped_column(String(255), default='')


class Deployable(_Timed, Base):
    __tablename__ = 'deployables'
    __table_args__ = (UniqueConstraint('device_id', 'name'),)

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(String(36), unique=True)
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


class LoadedRegion(Base):
    """What was loaded into a deployable, and what its next release brings back.

    Apart from the deployable: nothing of this comes from the reports of its host. A
    bitstream is kept as it was when it was checked: its image may be gone by then.
    """

    __tablename__ = 'loaded_regions'

    id: Mapped[int] = mapped_column(primary_key=True)
    deployable_id: Mapped[int] = mapped_column(
        ForeignKey('deployables.id', ondelete='CASCADE'), unique=True
    )
    loaded: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    # By a bind: what was there before it, which its release loads again.
    changed: Mapped[bool] = mapped_column(default=False)
    earlier: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    earlier_function: Mapped[str] = mapped_column(String(255), default='')
    # Why nobody can be given it; empty: it can be.
    unusable: Mapped[str] = mapped_column(String(255), default='')


class ProviderTraits(Base):
    """Traits that Placement was told of a provider by us, and nobody else.

    Not a column of deployables: a provider may outlive the row of its card, and be
    taken up by the next card in the slot.
    """

    __tablename__ = 'provider_traits'

    id: Mapped[int] = mapped_column(primary_key=True)
    rp_uuid: Mapped[str] = mapped_column(String(36), unique=True)
    traits: Mapped[list[str]] = mapped_column(JSON)


class Attribute(_Timed, Base):
    __tablename__ = 'attributes'
    __table_args__ = (UniqueConstraint('deployable_id', 'key'),)

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(String(36), unique=True)
    deployable_id: Mapped[int] = mapped_column(ForeignKey('deployables.id'))
    key: Mapped[str] = mapped_column(String(255))
    value: Mapped[str] = mapped_column(Text)
    # By the driver: it goes when the driver says it no more. Else an admin added it.
    reported: Mapped[bool] = mapped_column(default=False)


class DeviceProfile(_Timed, Base):
    __tablename__ = 'device_profiles'

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(String(36), unique=True)
    name: Mapped[str] = mapped_column(String(255), unique=True)
    description: Mapped[str | None] = mapped_column(Text)
    groups: Mapped[list[dict[str, str]]] = mapped_column(JSON)
    enabled: Mapped[bool] = mapped_column(default=True, server_default=true())
    is_public: Mapped[bool] = mapped_column(default=True, server_default=true())


class DeviceProfileName(Base):
    """A name that a profile had; flavors may still say it. It goes with its profile.

    Not a name of any other profile: see profile_names.py.
    """

    __tablename__ = 'device_profile_names'

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(255), unique=True)
    device_profile_id: Mapped[int] = mapped_column(
        ForeignKey('device_profiles.id', ondelete='CASCADE'), index=True
    )


class DeviceProfileAccess(Base):
    """A project that sees a profile which is not public; it goes with its profile."""

    __tablename__ = 'device_profile_access'
    __table_args__ = (UniqueConstraint('device_profile_id', 'project_id'),)

    id: Mapped[int] = mapped_column(primary_key=True)
    device_profile_id: Mapped[int] = mapped_column(
        ForeignKey('device_profiles.id', ondelete='CASCADE')
    )
    project_id: Mapped[str] = mapped_column(String(64))


class FormerServer(Base):
    """A server that gave accelerators of a profile back, and may come for others.

    See returning.py. It goes with its profile.
    """

    __tablename__ = 'former_servers'
    __table_args__ = (UniqueConstraint('instance_uuid', 'device_profile_id'),)

    id: Mapped[int] = mapped_column(primary_key=True)
    instance_uuid: Mapped[str] = mapped_column(String(36))
    device_profile_id: Mapped[int] = mapped_column(
        ForeignKey('device_profiles.id', ondelete='CASCADE'), index=True
    )
    left_at: Mapped[datetime] = mapped_column(default=now)


class Arq(_Timed, Base):
    __tablename__ = 'arqs'
    # `instance_slot` is the place of a request among those of its instance. Two sets
    # that are bound to one instance at once both want slot 0, and one of them loses.
    __table_args__ = (UniqueConstraint('instance_uuid', 'instance_slot'),)

    id: Mapped[int] = mapped_column(_BIG, primary_key=True)
    uuid: Mapped[str] = mapped_column(String(36), unique=True)
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
    # Made when its profile was disabled: only for a server that had the profile.
    comes_back: Mapped[bool] = mapped_column(default=False)


class ArqEvent(Base):
    """A step in the life of a request; it goes with its request."""

    __tablename__ = 'arq_events'

    id: Mapped[int] = mapped_column(_BIG, primary_key=True)
    arq_uuid: Mapped[str] = mapped_column(
        ForeignKey('arqs.uuid', ondelete='CASCADE'), index=True
    )
    step: Mapped[str] = mapped_column(String(32))
    actor: Mapped[str] = mapped_column(String(32))
    reason: Mapped[str | None] = mapped_column(String(255))
    at: Mapped[datetime] = mapped_column(default=now)


class AttachHandle(_Timed, Base):
    __tablename__ = 'attach_handles'
    __table_args__ = (
        UniqueConstraint('deployable_id', 'key'),
        Index('ix_attach_handles_free', 'deployable_id', 'arq_uuid', 'id'),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(String(36), unique=True)
    deployable_id: Mapped[int] = mapped_column(ForeignKey('deployables.id'))
    key: Mapped[str] = mapped_column(String(128))
    type: Mapped[str] = mapped_column(String(16))
    info: Mapped[dict[str, str]] = mapped_column(JSON)
    needs_host: Mapped[bool] = mapped_column(default=False)
    managed: Mapped[bool] = mapped_column(default=True)
    # In use by somebody whom we do not know.
    in_use: Mapped[bool] = mapped_column(default=False)
    # Gone from the host while an ARQ holds it; the row goes when the ARQ does.
    missing: Mapped[bool] = mapped_column(default=False)
    # A job works on it on its host; until that ends nobody else may touch it there.
    preparing: Mapped[bool] = mapped_column(default=False)
    # How often it was given to somebody: tells its host which orders are out of date.
    turn: Mapped[int] = mapped_column(default=0)
    # The owner. Unique and a foreign key: the schema itself forbids to give one
    # handle to two requests, two to one, or to forget a request that holds one.
    arq_uuid: Mapped[str | None] = mapped_column(ForeignKey('arqs.uuid'), unique=True)


class Job(Base):
    """Times are milliseconds since the epoch, by the clock of the database."""

    __tablename__ = 'jobs'
    __table_args__ = (
        UniqueConstraint('kind', 'key'),
        Index('ix_jobs_due', 'state', 'run_after'),
        Index('ix_jobs_leased', 'state', 'lease_until'),
    )

    id: Mapped[int] = mapped_column(_BIG, primary_key=True)
    uuid: Mapped[str] = mapped_column(String(36), unique=True)
    kind: Mapped[str] = mapped_column(String(32))
    key: Mapped[str | None] = mapped_column(String(255))
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)
    # Grows when the same job is called for again while it runs: it runs once more.
    touched: Mapped[int] = mapped_column(default=0)
    state: Mapped[str] = mapped_column(String(16), default='waiting')
    step: Mapped[str] = mapped_column(String(64), default='')
    attempts: Mapped[int] = mapped_column(default=0)
    run_after: Mapped[int] = mapped_column(BigInteger)
    # 0: an operator cancelled it.
    deadline: Mapped[int | None] = mapped_column(BigInteger)
    owner: Mapped[str | None] = mapped_column(String(255))
    lease: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[int | None] = mapped_column(BigInteger)
    last_error: Mapped[str] = mapped_column(String(1024), default='')
    request_id: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[int] = mapped_column(BigInteger)


class ProgramJob(_Timed, Base):
    """Programming by hand, for whoever follows it; outlives the row of the job."""

    __tablename__ = 'program_jobs'

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(String(36), unique=True)
    # No foreign key: what became of it is told even when its card has gone.
    deployable_uuid: Mapped[str] = mapped_column(String(36))
    image_uuid: Mapped[str] = mapped_column(String(36))
    project_id: Mapped[str | None] = mapped_column(String(64))
    state: Mapped[str] = mapped_column(String(16))
    step: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(String(255), default='')


# Whatever the database was created with: every character has room, and names that
# differ by the case of a letter are two, as on the other databases.
_MYSQL = {
    'mysql_engine': 'InnoDB',
    'mysql_charset': 'utf8mb4',
    'mysql_collate': 'utf8mb4_bin',
}
for _table in Base.metadata.tables.values():
    _table.dialect_kwargs.update(_MYSQL)
