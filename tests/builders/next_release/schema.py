# SPDX-License-Identifier: Apache-2.0
"""Two revisions of the schema after the newest one: an expansion and a contraction."""

import shutil
from pathlib import Path
from typing import Final

from cyborg_lite.db.core import migration

NEWEST: Final = migration.head_revision()
EXPANSION: Final = f'{int(NEWEST) + 1:04}'
CONTRACTION: Final = f'{int(NEWEST) + 2:04}'

_EXPANSION: Final = f"""
'''Add the label and the slot of devices, and the origin of jobs.'''

import sqlalchemy as sa
from alembic import op

revision = '{EXPANSION}'
down_revision = '{NEWEST}'


def upgrade():
    inspector = sa.inspect(op.get_bind())
    added = ('devices', 'label'), ('devices', 'slot'), ('jobs', 'origin')
    for table, name in added:
        # MariaDB commits each statement: an interrupted revision runs again.
        if name not in {{column['name'] for column in inspector.get_columns(table)}}:
            op.add_column(table, sa.Column(name, sa.String(64)))
"""
_CONTRACTION: Final = f"""
'''Remove the column that the origin of jobs replaces.'''

import sqlalchemy as sa
from alembic import op

revision = '{CONTRACTION}'
down_revision = '{EXPANSION}'
phase = 'contract'


def upgrade():
    columns = sa.inspect(op.get_bind()).get_columns('jobs')
    if 'request_id' in {{column['name'] for column in columns}}:
        op.drop_column('jobs', 'request_id')
"""


def add_revisions(folder: Path) -> None:
    """Write both revisions into a folder of migrations."""
    versions = folder / 'versions'
    (versions / f'{EXPANSION}_add_labels.py').write_text(_EXPANSION)
    (versions / f'{CONTRACTION}_drop_request_ids.py').write_text(_CONTRACTION)


def copy_migrations(folder: Path) -> Path:
    """Write the migrations of the next release into a new folder."""
    ignored = shutil.ignore_patterns('__pycache__')
    shutil.copytree(migration.script_location(), folder, ignore=ignored)
    add_revisions(folder)
    return folder
