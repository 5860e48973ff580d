# SPDX-License-Identifier: Apache-2.0
"""The check of the schema at the start of a conductor.

It does not import Alembic, which takes 12 MB of memory.
"""

from typing import Final

from sqlalchemy import inspect, text
from sqlalchemy.orm import Session

from cyborg_lite.errors.daemons import SchemaOutdated

REQUIRED_REVISION: Final = '0001'
"""The newest revision that adds something. The conductor runs without later ones."""

_VERSION_TABLE: Final = 'alembic_version'  # of Alembic


def check_revision(session: Session) -> None:
    """Check that the schema has at least the revision that this version requires.

    A later revision is that of a later version, which keeps the tables of this version
    during a rolling upgrade.

    :raises SchemaOutdated: the database has no schema, or that of an earlier version
    """
    current = None
    # The classes of Alembic would log two lines.
    if inspect(session.connection()).has_table(_VERSION_TABLE):
        statement = text(f'SELECT version_num FROM {_VERSION_TABLE}')
        current = session.execute(statement).scalar()
    if current is None or current < REQUIRED_REVISION:
        raise SchemaOutdated(current=current or 'none', head=REQUIRED_REVISION)
