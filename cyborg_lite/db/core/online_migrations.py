# SPDX-License-Identifier: Apache-2.0
"""Data migrations that run in batches while the daemons run.

A revision of the schema adds a column. A migration here fills it in existing rows. The
code reads rows of both kinds until ``cyborg-lite-dbsync upgrade --contract``, which is
refused while a migration has rows left. A migration is removed two releases later.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class OnlineMigration:
    """A change of existing rows."""

    name: str
    # Changes at most so many rows, and returns their number.
    migrate: Callable[[Session, int], int]
    # Returns whether rows are left.
    has_rows: Callable[[Session], bool]


MIGRATIONS: Final[tuple[OnlineMigration, ...]] = ()
"""All migrations, in the order in which they must run."""


def list_unfinished(session: Session) -> tuple[str, ...]:
    """Return the names of migrations that have rows left."""
    return tuple(
        migration.name for migration in MIGRATIONS if migration.has_rows(session)
    )
