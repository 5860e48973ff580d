# SPDX-License-Identifier: Apache-2.0
"""Count the changes of devices, attributes and device profiles."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = '0011'
down_revision = '0010'
branch_labels = None
depends_on = None

_TABLES: Final = ('devices', 'attributes', 'device_profiles')


def upgrade() -> None:
    """Add the column to the tables that an interrupted upgrade has not changed."""
    for table in _TABLES:
        inspector = sa.inspect(op.get_bind())
        if 'generation' not in {c['name'] for c in inspector.get_columns(table)}:
            op.add_column(
                table,
                sa.Column('generation', sa.Integer, nullable=False, server_default='0'),
            )
