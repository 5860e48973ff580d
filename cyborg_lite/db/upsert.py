# SPDX-License-Identifier: Apache-2.0
"""Insert rows, or change those that are there, in one statement.

Reading first would leave a gap in which another process does the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.orm import InstrumentedAttribute, Session

from cyborg_lite.db.change import Values, change


def upsert(  # noqa: PLR0913  # each is a part of the one statement
    session: Session,
    table: Any,  # a class of `tables`
    values: Values,
    keys: tuple[InstrumentedAttribute[Any], ...],
    changed: Values,
    computed: Values | None = None,
) -> None:
    """Insert ``values``; if a row has their ``keys``, set ``changed`` there instead.

    :param computed: SQL for further columns, whose parameters are in ``values``
    """
    name = session.get_bind().dialect.name
    if name == 'mysql':
        mine = mysql.insert(table).values(**computed or {})
        change(session, mine.on_duplicate_key_update(**changed), values)
        return
    theirs = (postgresql if name == 'postgresql' else sqlite).insert(table)
    theirs = theirs.values(**computed or {})
    there = theirs.on_conflict_do_update(index_elements=keys, set_=changed)
    change(session, there, values)


def upsert_all(
    session: Session,
    table: Any,  # as above
    rows: Sequence[Mapping[str, Any]],  # column values; all name the same columns
    key: InstrumentedAttribute[Any],
) -> None:
    """Insert each of ``rows``, or replace what the row of its ``key`` says."""
    rest = [name for name in rows[0] if name != key.key]
    # In one order for all: two transactions must not wait for each other.
    ordered = sorted(rows, key=lambda row: row[key.key])
    name = session.get_bind().dialect.name
    if name == 'mysql':
        mine = mysql.insert(table).values(ordered)
        new = {column: mine.inserted[column] for column in rest}
        change(session, mine.on_duplicate_key_update(**new))
        return
    theirs = (postgresql if name == 'postgresql' else sqlite).insert(table)
    theirs = theirs.values(ordered)
    new = {column: theirs.excluded[column] for column in rest}
    change(session, theirs.on_conflict_do_update(index_elements=[key], set_=new))
