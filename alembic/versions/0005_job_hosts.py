# SPDX-License-Identifier: Apache-2.0
"""Store the host whose agent a job calls."""

import sqlalchemy as sa
from alembic import op

revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. The hosts of existing jobs are unknown, so they have no limit."""
    inspector = sa.inspect(op.get_bind())
    # MariaDB commits each statement. After an interruption the next upgrade finds the
    # column.
    names = {column['name'] for column in inspector.get_columns('jobs')}
    if 'host' not in names:
        op.add_column('jobs', sa.Column('host', sa.String(255), nullable=True))
