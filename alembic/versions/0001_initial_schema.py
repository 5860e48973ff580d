# SPDX-License-Identifier: Apache-2.0
"""The schema of the first release.

Until 1.0.0 is declared, this revision is edited together with
``cyborg_lite/db/core/tables.py``. Names of keys and indexes follow its convention.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0001'
down_revision = None
branch_labels = None
depends_on = None

_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql')
# Ids of tables that grow with each bind or event. SQLite counts by itself in plain
# integers alone, and they have 64 bits there.
_BIG = sa.BigInteger().with_variant(sa.Integer, 'sqlite')


def upgrade() -> None:
    """Create the tables: each one after the tables that it refers to."""
    _create_services()
    _create_faults()
    _create_jobs()
    _create_leases()
    _create_notifications()
    _create_devices()
    _create_device_events()
    _create_cleanings()
    _create_reconfigurations()
    _create_deployables()
    _create_provider_traits()
    _create_allocations()
    _create_attributes()
    _create_operations()
    _create_job_operations()
    _create_device_profiles()
    _create_device_profile_names()
    _create_profile_choices()
    _create_profile_promises()
    _create_device_profile_access()
    _create_former_servers()
    _create_project_locks()
    _create_received_calls()
    _create_incarnations()
    _create_arqs()
    _create_arq_events()
    _create_usage_periods()
    _create_attach_handles()
    _create_loaded_regions()


def _create(
    name: str, id_type: sa.types.TypeEngine, *columns: sa.schema.SchemaItem
) -> None:
    op.create_table(
        name,
        sa.Column('id', id_type, primary_key=True),
        *columns,
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
    )


def _not_null(name: str, kind: sa.types.TypeEngine, *keys: object, **options: object):
    return sa.Column(name, kind, *keys, nullable=False, **options)


def _uuid() -> sa.Column:
    return _not_null('uuid', sa.String(36), unique=True)


def _times() -> tuple[sa.Column, ...]:
    return _not_null('created_at', _TIME), sa.Column('updated_at', _TIME)


def _create_services() -> None:
    _create(
        'services',
        sa.Integer,
        _uuid(),
        _not_null('binary', sa.String(64)),
        _not_null('host', sa.String(255)),
        _not_null('version', sa.String(64)),
        _not_null('started_at', _TIME),
        _not_null('heartbeat_at', _TIME),
        _not_null('state', sa.String(8)),
        sa.Column('digest', sa.String(64)),
        sa.Column('boot_id', sa.String(64)),
        _not_null('last_event', sa.BigInteger),
        _not_null('audited_at', _TIME),
        sa.Column('identity', sa.String(36)),
        _not_null('machine', sa.String(64)),
        _not_null('report_number', sa.BigInteger),
        sa.UniqueConstraint('host', 'binary'),
    )


def _create_faults() -> None:
    _create(
        'faults',
        sa.Integer,
        _not_null('kind', sa.String(32)),
        _not_null('host', sa.String(255)),
        _not_null('name', sa.String(64)),
        _not_null('reason', sa.Text),
        _not_null('since', _TIME),
        _not_null('seen_at', _TIME),
        sa.UniqueConstraint('kind', 'host', 'name'),
    )


def _create_jobs() -> None:
    _create(
        'jobs',
        _BIG,
        _uuid(),
        _not_null('kind', sa.String(32)),
        sa.Column('key', sa.String(255)),
        _not_null('payload', sa.JSON),
        _not_null('rerun_requested', sa.Integer),
        _not_null('state', sa.String(16)),
        _not_null('step', sa.String(64)),
        _not_null('attempts', sa.Integer),
        _not_null('run_after', sa.BigInteger),
        sa.Column('deadline', sa.BigInteger),
        sa.Column('owner', sa.String(255)),
        _not_null('lease', sa.Integer),
        sa.Column('lease_until', sa.BigInteger),
        _not_null('last_error', sa.String(1024)),
        sa.Column('request_id', sa.String(64)),
        _not_null('created_at', sa.BigInteger),
        sa.Column('host', sa.String(255)),
        sa.UniqueConstraint('kind', 'key'),
        sa.Index('ix_jobs_due', 'state', 'run_after'),
        sa.Index('ix_jobs_leased', 'state', 'lease_until'),
    )


def _create_leases() -> None:
    _create(
        'leases',
        sa.Integer,
        _not_null('name', sa.String(64), unique=True),
        _not_null('owner', sa.String(255)),
        _not_null('lease_until', sa.BigInteger),
    )


def _create_notifications() -> None:
    _create(
        'notifications',
        _BIG,
        _uuid(),
        _not_null('event_type', sa.String(64)),
        _not_null('payload', sa.JSON),
        _not_null('created_at', sa.BigInteger),
    )


def _create_devices() -> None:
    _create(
        'devices',
        sa.Integer,
        _uuid(),
        _not_null('hostname', sa.String(255), index=True),
        _not_null('type', sa.String(32)),
        _not_null('vendor', sa.String(255)),
        _not_null('model', sa.String(255)),
        _not_null('driver', sa.String(64)),
        _not_null('control_address', sa.String(64)),
        _not_null('hardware_id', sa.String(128)),
        sa.Column('std_board_info', sa.JSON),
        sa.Column('vendor_board_info', sa.Text),
        _not_null('status', sa.String(16)),
        _not_null('status_reason', sa.String(255)),
        _not_null('health', sa.String(16)),
        _not_null('health_reason', sa.String(255)),
        sa.Column('telemetry', sa.JSON),
        _not_null('conflict', sa.String(255)),
        _not_null('quarantine', sa.String(255)),
        _not_null('health_since', _TIME),
        sa.Column('telemetry_at', _TIME),
        *_times(),
        _not_null('generation', sa.Integer),
        sa.UniqueConstraint('hostname', 'hardware_id'),
    )


def _create_device_events() -> None:
    _create(
        'device_events',
        _BIG,
        _not_null('device_uuid', sa.String(36), index=True),
        _not_null('hostname', sa.String(255)),
        _not_null('serial', sa.String(128), index=True),
        _not_null('kind', sa.String(32)),
        _not_null('unit', sa.String(128)),
        _not_null('value', sa.String(255)),
        _not_null('reason', sa.String(255)),
        _not_null('at', _TIME, index=True),
    )


def _create_cleanings() -> None:
    _create(
        'cleanings',
        _BIG,
        _uuid(),
        _not_null(
            'device_id',
            sa.Integer,
            sa.ForeignKey('devices.id', ondelete='CASCADE'),
            index=True,
        ),
        _not_null('handle_uuid', sa.String(36), index=True),
        _not_null('unit', sa.String(128)),
        _not_null('generation', sa.Integer),
        _not_null('state', sa.String(16)),
        _not_null('actor', sa.String(255)),
        _not_null('steps', sa.JSON),
        _not_null('step_count', sa.Integer),
        _not_null('reason', sa.String(255)),
        _not_null('started_at', _TIME),
        sa.Column('finished_at', _TIME),
    )


def _create_reconfigurations() -> None:
    _create(
        'reconfigurations',
        _BIG,
        _uuid(),
        _not_null(
            'device_id',
            sa.Integer,
            sa.ForeignKey('devices.id', ondelete='CASCADE'),
            index=True,
        ),
        _not_null('hardware_set', sa.String(64)),
        _not_null('settings', sa.JSON),
        _not_null('held_ids', sa.JSON),
        _not_null('state', sa.String(16)),
        _not_null('phase', sa.String(16)),
        _not_null('tasks', sa.Integer),
        _not_null('log', sa.Text),
        _not_null('reason', sa.String(1024)),
        _not_null('actor', sa.String(255)),
        _not_null('created_at', _TIME),
        sa.Column('finished_at', _TIME),
    )


def _create_deployables() -> None:
    _create(
        'deployables',
        sa.Integer,
        _uuid(),
        _not_null('device_id', sa.Integer, sa.ForeignKey('devices.id')),
        sa.Column('parent_id', sa.Integer, sa.ForeignKey('deployables.id'), index=True),
        sa.Column('root_id', sa.Integer, sa.ForeignKey('deployables.id'), index=True),
        _not_null('name', sa.String(255), index=True),
        sa.Column('resource_class', sa.String(255)),
        _not_null('traits', sa.JSON),
        _not_null('num_accelerators', sa.Integer),
        _not_null('reserved', sa.Integer),
        sa.Column('rp_uuid', sa.String(36), unique=True),
        sa.Column('driver_name', sa.String(64)),
        sa.Column('bitstream_id', sa.String(36)),
        sa.Column('typed_attributes', sa.JSON),
        sa.Column('loadable', sa.JSON),
        *_times(),
        sa.UniqueConstraint('device_id', 'name'),
    )


def _create_provider_traits() -> None:
    _create(
        'provider_traits',
        sa.Integer,
        _not_null('rp_uuid', sa.String(36), unique=True),
        _not_null('traits', sa.JSON),
    )


def _create_allocations() -> None:
    _create(
        'audited_providers',
        sa.Integer,
        _not_null('rp_uuid', sa.String(36), unique=True),
        _not_null('generation', sa.Integer),
        _not_null('read_at', _TIME),
    )
    _create(
        'allocations',
        sa.Integer,
        _not_null('consumer_uuid', sa.String(36)),
        _not_null('rp_uuid', sa.String(36), index=True),
        _not_null('resource_class', sa.String(255)),
        _not_null('amount', sa.Integer),
        sa.Column('unowned_since', _TIME),
        sa.Column('has_server', sa.Boolean),
        sa.UniqueConstraint('consumer_uuid', 'rp_uuid', 'resource_class'),
    )


def _create_attributes() -> None:
    _create(
        'attributes',
        sa.Integer,
        _uuid(),
        _not_null('deployable_id', sa.Integer, sa.ForeignKey('deployables.id')),
        _not_null('key', sa.String(255)),
        _not_null('value', sa.Text),
        _not_null('reported', sa.Boolean),
        _not_null('hidden', sa.Boolean),
        *_times(),
        sa.UniqueConstraint('deployable_id', 'key'),
    )


def _create_operations() -> None:
    _create(
        'operations',
        _BIG,
        _uuid(),
        _not_null('kind', sa.String(16)),
        _not_null('subject_type', sa.String(32)),
        _not_null('subject_id', sa.String(255)),
        _not_null('parameters', sa.JSON),
        sa.Column('project_id', sa.String(64), index=True),
        sa.Column('user_id', sa.String(64)),
        sa.Column('request_id', sa.String(64)),
        _not_null('state', sa.String(16)),
        _not_null('progress', sa.Integer),
        _not_null('steps', sa.JSON),
        _not_null('reason', sa.String(255)),
        sa.Column('error_code', sa.String(64)),
        sa.Column('result', sa.JSON),
        _not_null('jobs', sa.Integer),
        _not_null('pending', sa.Integer),
        _not_null('outcome', sa.String(16)),
        sa.Column('started_at', _TIME),
        sa.Column('ended_at', _TIME, index=True),
        *_times(),
        sa.Index('ix_operations_subject', 'subject_id', 'kind'),
    )


def _create_job_operations() -> None:
    _create(
        'job_operations',
        _BIG,
        _not_null('operation_uuid', sa.String(36), index=True),
        _not_null('job_uuid', sa.String(36), index=True),
        _not_null('job_kind', sa.String(32)),
    )


def _create_device_profiles() -> None:
    _create(
        'device_profiles',
        sa.Integer,
        _uuid(),
        _not_null('name', sa.String(255), unique=True),
        sa.Column('description', sa.Text),
        _not_null('groups', sa.JSON),
        _not_null('enabled', sa.Boolean),
        _not_null('is_public', sa.Boolean),
        sa.Column('alternatives', sa.JSON),
        sa.Column('former_groups', sa.JSON),
        sa.Column('groups_changed_at', _TIME),
        *_times(),
        _not_null('generation', sa.Integer),
    )


def _create_device_profile_names() -> None:
    _create(
        'device_profile_names',
        sa.Integer,
        _not_null('name', sa.String(255), unique=True),
        _not_null(
            'device_profile_id',
            sa.Integer,
            sa.ForeignKey('device_profiles.id', ondelete='CASCADE'),
            index=True,
        ),
    )


def _create_profile_choices() -> None:
    _create(
        'profile_choices',
        sa.Integer,
        _not_null(
            'device_profile_id',
            sa.Integer,
            sa.ForeignKey('device_profiles.id', ondelete='CASCADE'),
            unique=True,
        ),
        _not_null('choice', sa.JSON),
        _not_null('chosen_at', sa.BigInteger),
    )


def _create_profile_promises() -> None:
    _create(
        'profile_promises',
        sa.Integer,
        _not_null(
            'device_profile_id',
            sa.Integer,
            sa.ForeignKey('device_profiles.id', ondelete='CASCADE'),
            index=True,
        ),
        _not_null('choice', sa.JSON),
        _not_null('promised_at', sa.BigInteger),
    )


def _create_device_profile_access() -> None:
    _create(
        'device_profile_access',
        sa.Integer,
        _not_null(
            'device_profile_id',
            sa.Integer,
            sa.ForeignKey('device_profiles.id', ondelete='CASCADE'),
        ),
        _not_null('project_id', sa.String(64)),
        sa.UniqueConstraint('device_profile_id', 'project_id'),
    )


def _create_former_servers() -> None:
    _create(
        'former_servers',
        sa.Integer,
        _not_null('instance_uuid', sa.String(36)),
        _not_null(
            'device_profile_id',
            sa.Integer,
            sa.ForeignKey('device_profiles.id', ondelete='CASCADE'),
            index=True,
        ),
        _not_null('released_at', _TIME),
        sa.UniqueConstraint('instance_uuid', 'device_profile_id'),
    )


def _create_project_locks() -> None:
    _create(
        'project_locks',
        sa.Integer,
        _not_null('project_id', sa.String(64), unique=True),
    )


def _create_received_calls() -> None:
    _create(
        'received_calls', sa.String(22), _not_null('received_at', _TIME, index=True)
    )


def _create_incarnations() -> None:
    _create(
        'incarnations',
        sa.Integer,
        _not_null('quarantined_at', _TIME),
        _not_null('reason', sa.String(255)),
        sa.Column('began_at', _TIME),
    )


def _create_arqs() -> None:
    _create(
        'arqs',
        _BIG,
        _uuid(),
        _not_null('state', sa.String(16), index=True),
        _not_null(
            'device_profile_id',
            sa.Integer,
            sa.ForeignKey('device_profiles.id'),
            index=True,
        ),
        _not_null('device_profile_name', sa.String(255)),
        _not_null('device_profile_group_id', sa.Integer),
        _not_null('device_profile_group', sa.JSON),
        sa.Column('project_id', sa.String(64), index=True),
        sa.Column('hostname', sa.String(255), index=True),
        sa.Column('device_rp_uuid', sa.String(36)),
        sa.Column('instance_uuid', sa.String(36)),
        sa.Column('instance_slot', sa.Integer),
        sa.Column('status_reason', sa.String(255)),
        sa.Column('error_code', sa.String(64)),
        _not_null('for_former_server', sa.Boolean),
        _not_null('generation', sa.Integer),
        _not_null('resource_class', sa.String(255)),
        sa.Column('bound_at', sa.BigInteger),
        sa.Column('alternatives', sa.JSON),
        _not_null('alternative', sa.Integer),
        *_times(),
        sa.UniqueConstraint('instance_uuid', 'instance_slot'),
    )


def _create_arq_events() -> None:
    _create(
        'arq_events',
        _BIG,
        _not_null('arq_uuid', sa.String(36), index=True),
        sa.Column('project_id', sa.String(64)),
        sa.Column('instance_uuid', sa.String(36), index=True),
        _not_null('step', sa.String(32)),
        _not_null('actor', sa.String(32)),
        sa.Column('reason', sa.String(255)),
        sa.Column('error_code', sa.String(64)),
        _not_null('at', _TIME),
    )


def _create_usage_periods() -> None:
    _create(
        'usage_periods',
        _BIG,
        _not_null('arq_uuid', sa.String(36), index=True),
        sa.Column('project_id', sa.String(64)),
        _not_null('resource_class', sa.String(255)),
        _not_null('device_profile_name', sa.String(255)),
        sa.Column('hostname', sa.String(255)),
        sa.Column('instance_uuid', sa.String(36)),
        _not_null('started_at', sa.BigInteger),
        _not_null('ended_at', sa.BigInteger),
        sa.Index('ix_usage_periods_end', 'ended_at'),
        sa.Index('ix_usage_periods_project', 'project_id', 'ended_at'),
    )


def _create_attach_handles() -> None:
    _create(
        'attach_handles',
        sa.Integer,
        _uuid(),
        _not_null('deployable_id', sa.Integer, sa.ForeignKey('deployables.id')),
        _not_null('key', sa.String(128)),
        _not_null('type', sa.String(16)),
        _not_null('info', sa.JSON),
        _not_null('needs_host', sa.Boolean),
        _not_null('managed', sa.Boolean),
        _not_null('in_use', sa.Boolean),
        _not_null('missing', sa.Boolean),
        _not_null('preparing', sa.Boolean),
        _not_null('generation', sa.Integer),
        _not_null('bind_generation', sa.Integer),
        sa.Column('arq_uuid', sa.String(36), sa.ForeignKey('arqs.uuid'), unique=True),
        sa.Column('place', sa.Integer),
        _not_null('cleaning', sa.String(16)),
        _not_null('clean_state', sa.String(16)),
        _not_null('clean_reason', sa.String(255)),
        *_times(),
        sa.UniqueConstraint('deployable_id', 'key'),
        sa.Index('ix_attach_handles_free', 'deployable_id', 'arq_uuid', 'id'),
    )


def _create_loaded_regions() -> None:
    _create(
        'loaded_regions',
        sa.Integer,
        _not_null(
            'deployable_id',
            sa.Integer,
            sa.ForeignKey('deployables.id', ondelete='CASCADE'),
            unique=True,
        ),
        sa.Column('bitstream', sa.JSON),
        _not_null('changed_by_bind', sa.Boolean),
        sa.Column('previous_bitstream', sa.JSON),
        _not_null('previous_function_id', sa.String(255)),
        _not_null('unusable_reason', sa.String(255)),
    )
