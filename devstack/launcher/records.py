# SPDX-License-Identifier: Apache-2.0
"""Read-only queries of the database of the service."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from devstack.launcher import paths


def rows(query: str, value: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query with one parameter. Any: columns have any type."""
    address = f'{paths.DATABASE.as_uri()}?mode=ro'
    with closing(sqlite3.connect(address, uri=True)) as database:
        return database.execute(query, (value,)).fetchall()


def now() -> str:
    """Return the present UTC time in the format of SQLite."""
    return datetime.now(UTC).strftime('%F %T')


def is_placement_updated(since: str) -> bool:
    """Check whether the agent has reported and Placement is up to date.

    :param since: UTC time in the format of SQLite; earlier reports do not count
    """
    query = (
        "SELECT count(*) FROM services WHERE binary = 'cyborg-lite-agent' "
        'AND digest IS NOT NULL AND heartbeat_at >= ? '
        "AND NOT EXISTS (SELECT * FROM jobs WHERE kind = 'reconcile')"
    )
    ((count,),) = rows(query, since)
    return bool(count)
