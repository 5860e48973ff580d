# SPDX-License-Identifier: Apache-2.0
"""Store which units must be cleaned, and a record of each clean."""

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None

_BIG: Final = sa.BigInteger().with_variant(sa.Integer, 'sqlite')
_TIME: Final = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql')
_TEXTS: Final = (
    ('cleaning', 16, 'never'),
    ('clean_state', 16, 'clean'),
    ('clean_reason', 255, ''),
)


def upgrade() -> None:
    """Add the columns and the table. All existing units count as clean."""
    inspector = sa.inspect(op.get_bind())
    # MariaDB commits each statement. After an interruption the next upgrade skips what
    # exists already.
    names = {column['name'] for column in inspector.get_columns('attach_handles')}
    for name, length, default in _TEXTS:
        if name not in names:
            kind = sa.String(length)
            column = sa.Column(name, kind, nullable=False, server_default=default)
            op.add_column('attach_handles', column)
    if not inspector.has_table('cleanings'):
        _create_cleanings()


def _create_cleanings() -> None:
    op.create_table(
        'cleanings',
        sa.Column('id', _BIG, primary_key=True),
        sa.Column('uuid', sa.String(36), nullable=False, unique=True),
        sa.Column(
            'device_id',
            sa.Integer,
            sa.ForeignKey('devices.id', ondelete='CASCADE'),
            nullable=False,
            index=True,
        ),
        sa.Column('handle_uuid', sa.String(36), nullable=False, index=True),
        sa.Column('unit', sa.String(128), nullable=False),
        sa.Column('generation', sa.Integer, nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('actor', sa.String(255), nullable=False),
        sa.Column('steps', sa.JSON, nullable=False),
        sa.Column('step_count', sa.Integer, nullable=False),
        sa.Column('reason', sa.String(255), nullable=False),
        sa.Column('started_at', _TIME, nullable=False),
        sa.Column('finished_at', _TIME),
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
    )
