# SPDX-License-Identifier: Apache-2.0
"""Store the use of units, events of devices, notifications and project locks."""

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None

_BIG: Final = sa.BigInteger().with_variant(sa.Integer, 'sqlite')
_TIME: Final = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql')
_COLUMNS: Final = (
    ('devices', 'health_since', _TIME),
    ('devices', 'telemetry_at', _TIME),
    ('arqs', 'resource_class', sa.String(255)),
    ('arqs', 'bound_at', sa.BigInteger),
)


def upgrade() -> None:
    """Add columns and tables. ``online_data_migrations`` fills the columns of ARQs."""
    inspector = sa.inspect(op.get_bind())
    # MariaDB commits each statement. After an interruption the next upgrade skips what
    # exists already.
    for table, name, kind in _COLUMNS:
        if name not in {column['name'] for column in inspector.get_columns(table)}:
            op.add_column(table, sa.Column(name, kind))
    for name, create in (
        ('usage_periods', _create_usage_periods),
        ('device_events', _create_device_events),
        ('notifications', _create_notifications),
        ('leases', _create_leases),
        ('project_locks', _create_project_locks),
    ):
        if not inspector.has_table(name):
            create()


def _create_table(name: str, *items: sa.schema.SchemaItem) -> None:
    op.create_table(
        name,
        *items,
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
    )


def _create_usage_periods() -> None:
    _create_table(
        'usage_periods',
        sa.Column('id', _BIG, primary_key=True),
        sa.Column('arq_uuid', sa.String(36), nullable=False, index=True),
        sa.Column('project_id', sa.String(64)),
        sa.Column('resource_class', sa.String(255), nullable=False),
        sa.Column('device_profile_name', sa.String(255), nullable=False),
        sa.Column('hostname', sa.String(255)),
        sa.Column('instance_uuid', sa.String(36)),
        sa.Column('started_at', sa.BigInteger, nullable=False),
        sa.Column('ended_at', sa.BigInteger, nullable=False),
        sa.Index('ix_usage_periods_end', 'ended_at'),
        sa.Index('ix_usage_periods_project', 'project_id', 'ended_at'),
    )


def _create_device_events() -> None:
    _create_table(
        'device_events',
        sa.Column('id', _BIG, primary_key=True),
        sa.Column('device_uuid', sa.String(36), nullable=False, index=True),
        sa.Column('hostname', sa.String(255), nullable=False),
        sa.Column('kind', sa.String(32), nullable=False),
        sa.Column('unit', sa.String(128), nullable=False),
        sa.Column('value', sa.String(255), nullable=False),
        sa.Column('reason', sa.String(255), nullable=False),
        sa.Column('at', _TIME, nullable=False, index=True),
    )


def _create_notifications() -> None:
    _create_table(
        'notifications',
        sa.Column('id', _BIG, primary_key=True),
        sa.Column('uuid', sa.String(36), nullable=False, unique=True),
        sa.Column('event_type', sa.String(64), nullable=False),
        sa.Column('payload', sa.JSON, nullable=False),
        sa.Column('created_at', sa.BigInteger, nullable=False),
    )


def _create_leases() -> None:
    _create_table(
        'leases',
        sa.Column('id', sa.Integer, primary_key=True),
        sa.Column('name', sa.String(64), nullable=False, unique=True),
        sa.Column('owner', sa.String(255), nullable=False),
        sa.Column('lease_until', sa.BigInteger, nullable=False),
    )


def _create_project_locks() -> None:
    _create_table(
        'project_locks',
        sa.Column('id', sa.Integer, primary_key=True),
        sa.Column('project_id', sa.String(64), nullable=False, unique=True),
    )
