# SPDX-License-Identifier: Apache-2.0
"""Number the binds of an ARQ, so that a job of an earlier bind changes nothing."""

import sqlalchemy as sa
from alembic import op

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None

_ADDED = {'arqs': 'generation', 'attach_handles': 'bind_generation'}


def upgrade() -> None:
    """Add the columns; existing rows get 0, as binds of earlier releases have."""
    inspector = sa.inspect(op.get_bind())
    for table, name in _ADDED.items():
        # MariaDB commits each statement. After an interruption the next upgrade skips
        # the columns that exist already.
        if name not in {column['name'] for column in inspector.get_columns(table)}:
            column = sa.Column(name, sa.Integer, nullable=False, server_default='0')
            op.add_column(table, column)
