# SPDX-License-Identifier: Apache-2.0
"""What the service has written down, read from its database itself."""

import sqlite3
from contextlib import closing
from typing import Any

from devstack.launcher import places


def rows(query: str, value: str) -> list[tuple[Any, ...]]:
    """Of a query with one parameter; Any: columns are of any type."""
    address = f'{places.DATABASE.as_uri()}?mode=ro'
    with closing(sqlite3.connect(address, uri=True)) as database:
        return database.execute(query, (value,)).fetchall()


def placement_knows(since: str) -> bool:
    """Whether the agent has told its devices since then, and Placement was told.

    :param since: UTC, as SQLite has it
    """
    query = (
        "SELECT count(*) FROM services WHERE binary = 'cyborg-lite-agent' "
        'AND digest IS NOT NULL AND heartbeat_at >= ? '
        "AND NOT EXISTS (SELECT * FROM jobs WHERE kind = 'placement-sync')"
    )
    ((known,),) = rows(query, since)
    return bool(known)
