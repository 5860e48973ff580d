# SPDX-License-Identifier: Apache-2.0
"""The first schema.

Names of keys and indexes follow the convention of ``cyborg_lite/db/tables.py``.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0001'
down_revision = None
branch_labels = None
depends_on = None

_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql')


def upgrade() -> None:
    _create_services()
    _create_jobs()
    _create_devices()
    _create_deployables()
    _create_provider_traits()
    _create_attributes()
    _create_device_profiles()
    _create_device_profile_names()
    _create_device_profile_access()
    _create_arqs()
    _create_arq_events()
    _create_former_servers()
    _create_attach_handles()
    _create_loaded_regions()
    _create_program_jobs()


# Each bind adds rows to these. SQLite counts by itself in plain integers alone, and
# they have 64 bits there.
_ENDLESS = ('jobs', 'arqs', 'arq_events')
_BIG = sa.BigInteger().with_variant(sa.Integer, 'sqlite')


def _create(name: str, *columns: sa.schema.SchemaItem) -> None:
    op.create_table(
        name,
        sa.Column('id', _BIG if name in _ENDLESS else sa.Integer, primary_key=True),
        *columns,
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
    )


def _needed(name: str, kind: sa.types.TypeEngine, *rest: object, **more: object):
    return sa.Column(name, kind, *rest, nullable=False, **more)


def _uuid() -> sa.Column:
    return _needed('uuid', sa.String(36), unique=True)


def _times() -> tuple[sa.Column, ...]:
    return _needed('created_at', _TIME), sa.Column('updated_at', _TIME)


def _create_services() -> None:
    _create(
        'services',
        _uuid(),
        _needed('binary', sa.String(64)),
        _needed('host', sa.String(255)),
        _needed('version', sa.String(64)),
        _needed('started_at', _TIME),
        _needed('heartbeat_at', _TIME),
        _needed('state', sa.String(8)),
        sa.Column('digest', sa.String(64)),
        sa.Column('boot_id', sa.String(64)),
        _needed('last_event', sa.BigInteger),
        _needed('audited_at', _TIME),
        sa.UniqueConstraint('host', 'binary'),
    )


def _create_jobs() -> None:
    _create(
        'jobs',
        _uuid(),
        _needed('kind', sa.String(32)),
        sa.Column('key', sa.String(255)),
        _needed('payload', sa.JSON),
        _needed('touched', sa.Integer),
        _needed('state', sa.String(16)),
        _needed('step', sa.String(64)),
        _needed('attempts', sa.Integer),
        _needed('run_after', sa.BigInteger),
        sa.Column('deadline', sa.BigInteger),
        sa.Column('owner', sa.String(255)),
        _needed('lease', sa.Integer),
        sa.Column('lease_until', sa.BigInteger),
        _needed('last_error', sa.String(1024)),
        sa.Column('request_id', sa.String(64)),
        _needed('created_at', sa.BigInteger),
        sa.UniqueConstraint('kind', 'key'),
        sa.Index('ix_jobs_due', 'state', 'run_after'),
        sa.Index('ix_jobs_leased', 'state', 'lease_until'),
    )


def _create_devices() -> None:
    _create(
        'devices',
        _uuid(),
        _needed('hostname', sa.String(255), index=True),
        _needed('type', sa.String(32)),
        _needed('vendor', sa.String(255)),
        _needed('model', sa.String(255)),
        _needed('driver', sa.String(64)),
        _needed('address', sa.String(64)),
        _needed('hardware_id', sa.String(128)),
        sa.Column('std_board_info', sa.JSON),
        sa.Column('vendor_board_info', sa.Text),
        _needed('status', sa.String(16)),
        _needed('status_reason', sa.String(255)),
        _needed('health', sa.String(16)),
        _needed('health_reason', sa.String(255)),
        sa.Column('figures', sa.JSON),
        _needed('conflict', sa.String(255)),
        *_times(),
        sa.UniqueConstraint('hostname', 'hardware_id'),
    )


def _create_deployables() -> None:
    own_id = 'deployables.id'
    _create(
        'deployables',
        _uuid(),
        _needed('device_id', sa.Integer, sa.ForeignKey('devices.id')),
        sa.Column('parent_id', sa.Integer, sa.ForeignKey(own_id), index=True),
        sa.Column('root_id', sa.Integer, sa.ForeignKey(own_id), index=True),
        _needed('name', sa.String(255), index=True),
        sa.Column('resource_class', sa.String(255)),
        _needed('traits', sa.JSON),
        _needed('num_accelerators', sa.Integer),
        _needed('reserved', sa.Integer),
        sa.Column('rp_uuid', sa.String(36), unique=True),
        sa.Column('driver_name', sa.String(64)),
        sa.Column('bitstream_id', sa.String(36)),
        *_times(),
        sa.UniqueConstraint('device_id', 'name'),
    )


def _create_provider_traits() -> None:
    _create(
        'provider_traits',
        _needed('rp_uuid', sa.String(36), unique=True),
        _needed('traits', sa.JSON),
    )


def _create_attributes() -> None:
    _create(
        'attributes',
        _uuid(),
        _needed('deployable_id', sa.Integer, sa.ForeignKey('deployables.id')),
        _needed('key', sa.String(255)),
        _needed('value', sa.Text),
        _needed('reported', sa.Boolean),
        *_times(),
        sa.UniqueConstraint('deployable_id', 'key'),
    )


def _create_device_profiles() -> None:
    _create(
        'device_profiles',
        _uuid(),
        _needed('name', sa.String(255), unique=True),
        sa.Column('description', sa.Text),
        _needed('groups', sa.JSON),
        _needed('enabled', sa.Boolean, server_default=sa.true()),
        _needed('is_public', sa.Boolean, server_default=sa.true()),
        *_times(),
    )


def _create_device_profile_names() -> None:
    profile = sa.ForeignKey('device_profiles.id', ondelete='CASCADE')
    _create(
        'device_profile_names',
        _needed('name', sa.String(255), unique=True),
        _needed('device_profile_id', sa.Integer, profile, index=True),
    )


def _create_device_profile_access() -> None:
    profile = sa.ForeignKey('device_profiles.id', ondelete='CASCADE')
    _create(
        'device_profile_access',
        _needed('device_profile_id', sa.Integer, profile),
        _needed('project_id', sa.String(64)),
        sa.UniqueConstraint('device_profile_id', 'project_id'),
    )


def _create_arqs() -> None:
    profile = sa.ForeignKey('device_profiles.id')
    _create(
        'arqs',
        _uuid(),
        _needed('state', sa.String(16), index=True),
        _needed('device_profile_id', sa.Integer, profile, index=True),
        _needed('device_profile_name', sa.String(255)),
        _needed('device_profile_group_id', sa.Integer),
        _needed('device_profile_group', sa.JSON),
        sa.Column('project_id', sa.String(64), index=True),
        sa.Column('hostname', sa.String(255), index=True),
        sa.Column('device_rp_uuid', sa.String(36)),
        sa.Column('instance_uuid', sa.String(36)),
        sa.Column('instance_slot', sa.Integer),
        sa.Column('status_reason', sa.String(255)),
        _needed('comes_back', sa.Boolean),
        *_times(),
        sa.UniqueConstraint('instance_uuid', 'instance_slot'),
    )


def _create_former_servers() -> None:
    profile = sa.ForeignKey('device_profiles.id', ondelete='CASCADE')
    _create(
        'former_servers',
        _needed('instance_uuid', sa.String(36)),
        _needed('device_profile_id', sa.Integer, profile, index=True),
        _needed('left_at', _TIME),
        sa.UniqueConstraint('instance_uuid', 'device_profile_id'),
    )


def _create_arq_events() -> None:
    arq = sa.ForeignKey('arqs.uuid', ondelete='CASCADE')
    _create(
        'arq_events',
        _needed('arq_uuid', sa.String(36), arq, index=True),
        _needed('step', sa.String(32)),
        _needed('actor', sa.String(32)),
        sa.Column('reason', sa.String(255)),
        _needed('at', _TIME),
    )


def _create_attach_handles() -> None:
    _create(
        'attach_handles',
        _uuid(),
        _needed('deployable_id', sa.Integer, sa.ForeignKey('deployables.id')),
        _needed('key', sa.String(128)),
        _needed('type', sa.String(16)),
        _needed('info', sa.JSON),
        _needed('needs_host', sa.Boolean),
        _needed('managed', sa.Boolean),
        _needed('in_use', sa.Boolean),
        _needed('missing', sa.Boolean),
        _needed('preparing', sa.Boolean),
        _needed('turn', sa.Integer),
        sa.Column('arq_uuid', sa.String(36), sa.ForeignKey('arqs.uuid'), unique=True),
        *_times(),
        sa.UniqueConstraint('deployable_id', 'key'),
        sa.Index('ix_attach_handles_free', 'deployable_id', 'arq_uuid', 'id'),
    )


def _create_loaded_regions() -> None:
    _create(
        'loaded_regions',
        _needed(
            'deployable_id',
            sa.Integer,
            sa.ForeignKey('deployables.id', ondelete='CASCADE'),
            unique=True,
        ),
        sa.Column('loaded', sa.JSON),
        _needed('changed', sa.Boolean),
        sa.Column('earlier', sa.JSON),
        _needed('earlier_function', sa.String(255)),
        _needed('unusable', sa.String(255)),
    )


def _create_program_jobs() -> None:
    _create(
        'program_jobs',
        _uuid(),
        _needed('deployable_uuid', sa.String(36)),
        _needed('image_uuid', sa.String(36)),
        sa.Column('project_id', sa.String(64)),
        _needed('state', sa.String(16)),
        _needed('step', sa.String(16)),
        _needed('reason', sa.String(255)),
        *_times(),
    )
