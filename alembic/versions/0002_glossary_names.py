# SPDX-License-Identifier: Apache-2.0
"""Rename columns to the terms of the glossary."""

import sqlalchemy as sa
from alembic import op

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None

# By table: the name in revision 0001 and the new name.
_RENAMED = {
    'arqs': {'comes_back': 'for_former_server'},
    'attach_handles': {'turn': 'generation'},
    'devices': {'address': 'control_address', 'figures': 'telemetry'},
    'former_servers': {'left_at': 'released_at'},
    'jobs': {'touched': 'rerun_requested'},
    'loaded_regions': {
        'loaded': 'bitstream',
        'changed': 'changed_by_bind',
        'earlier': 'previous_bitstream',
        'earlier_function': 'previous_function_id',
        'unusable': 'unusable_reason',
    },
}


def upgrade() -> None:
    """Rename the columns; this changes no row."""
    inspector = sa.inspect(op.get_bind())
    for table, columns in _RENAMED.items():
        present = {column['name'] for column in inspector.get_columns(table)}
        for old, new in columns.items():
            # MariaDB commits each statement. After an interruption the next upgrade
            # skips the columns that already have their new names.
            if old in present:
                # All supported databases have this statement. It changes no row, and
                # keeps type, default, nullability and constraints.
                op.execute(f'ALTER TABLE {table} RENAME COLUMN {old} TO {new}')
