# SPDX-License-Identifier: Apache-2.0
"""Store which device profile another one extends, and its own groups."""

import sqlalchemy as sa
from alembic import op

revision = '0012'
down_revision = '0011'
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table, unless an interrupted upgrade has. No profile extends another."""
    if sa.inspect(op.get_bind()).has_table('device_profile_parents'):
        return
    op.create_table(
        'device_profile_parents',
        sa.Column('id', sa.Integer, primary_key=True),
        sa.Column(
            'device_profile_id',
            sa.Integer,
            sa.ForeignKey('device_profiles.id', ondelete='CASCADE'),
            nullable=False,
            unique=True,
        ),
        sa.Column(
            'parent_id',
            sa.Integer,
            sa.ForeignKey('device_profiles.id'),
            nullable=False,
            index=True,
        ),
        sa.Column('own_groups', sa.JSON, nullable=False),
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
    )
