# SPDX-License-Identifier: Apache-2.0
"""Store the changes of the configuration of devices by playbooks."""

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None

_BIG: Final = sa.BigInteger().with_variant(sa.Integer, 'sqlite')
_TIME: Final = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql')


def upgrade() -> None:
    """Add the table, unless an interrupted upgrade has."""
    if sa.inspect(op.get_bind()).has_table('reconfigurations'):
        return
    op.create_table(
        'reconfigurations',
        sa.Column('id', _BIG, primary_key=True),
        sa.Column('uuid', sa.String(36), nullable=False, unique=True),
        sa.Column(
            'device_id',
            sa.Integer,
            sa.ForeignKey('devices.id', ondelete='CASCADE'),
            nullable=False,
            index=True,
        ),
        sa.Column('hardware_set', sa.String(64), nullable=False),
        sa.Column('settings', sa.JSON, nullable=False),
        sa.Column('held_ids', sa.JSON, nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('phase', sa.String(16), nullable=False),
        sa.Column('tasks', sa.Integer, nullable=False),
        sa.Column('log', sa.Text, nullable=False),
        sa.Column('reason', sa.String(1024), nullable=False),
        sa.Column('actor', sa.String(255), nullable=False),
        sa.Column('created_at', _TIME, nullable=False),
        sa.Column('finished_at', _TIME),
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
    )
