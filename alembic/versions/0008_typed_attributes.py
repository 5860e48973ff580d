# SPDX-License-Identifier: Apache-2.0
"""Store the typed attributes of deployables."""

import sqlalchemy as sa
from alembic import op

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Existing deployables have no typed attributes."""
    inspector = sa.inspect(op.get_bind())
    names = {column['name'] for column in inspector.get_columns('deployables')}
    # MariaDB commits each statement. After an interruption the column exists already.
    if 'typed_attributes' not in names:
        op.add_column('deployables', sa.Column('typed_attributes', sa.JSON))
