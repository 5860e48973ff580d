# SPDX-License-Identifier: Apache-2.0
"""Store the identity of each agent, and the attributes that admins have deleted."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None

_ADDED: Final = (
    ('services', sa.Column('identity', sa.String(36), nullable=True)),
    (
        'services',
        sa.Column('report_number', sa.BigInteger, nullable=False, server_default='0'),
    ),
    (
        'attributes',
        sa.Column('hidden', sa.Boolean, nullable=False, server_default=sa.false()),
    ),
)


def upgrade() -> None:
    """Add the columns; no existing attribute is hidden."""
    inspector = sa.inspect(op.get_bind())
    for table, column in _ADDED:
        # MariaDB commits each statement. After an interruption the next upgrade skips
        # the columns that exist already.
        names = {stored['name'] for stored in inspector.get_columns(table)}
        if column.name not in names:
            op.add_column(table, column)
