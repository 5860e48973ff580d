# SPDX-License-Identifier: Apache-2.0
"""Store alternatives of device profiles, their choice, and the one of each ARQ."""

import sqlalchemy as sa
from alembic import op

revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the table. Nothing that exists has alternatives."""
    _add_column('device_profiles', sa.Column('alternatives', sa.JSON))
    _add_column('arqs', sa.Column('alternatives', sa.JSON))
    _add_column(
        'arqs', sa.Column('alternative', sa.Integer, nullable=False, server_default='0')
    )
    if not sa.inspect(op.get_bind()).has_table('profile_choices'):
        _create_choices()


def _add_column(table: str, column: 'sa.Column[object]') -> None:
    """Add a column, unless an interrupted upgrade has: MariaDB commits each one."""
    columns = sa.inspect(op.get_bind()).get_columns(table)
    if column.name not in {present['name'] for present in columns}:
        op.add_column(table, column)


def _create_choices() -> None:
    op.create_table(
        'profile_choices',
        sa.Column('id', sa.Integer, primary_key=True),
        sa.Column(
            'device_profile_id',
            sa.Integer,
            sa.ForeignKey('device_profiles.id', ondelete='CASCADE'),
            nullable=False,
            unique=True,
        ),
        sa.Column('choice', sa.JSON, nullable=False),
        sa.Column('chosen_at', sa.BigInteger, nullable=False),
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
    )
