# SPDX-License-Identifier: Apache-2.0
"""Insert rows, or change those that are there, in one statement.

Reading first would leave a gap in which another process does the same.
"""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Insert
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.orm import InstrumentedAttribute, Session

from cyborg_lite.db.change import Values, change

Columns = Sequence[InstrumentedAttribute[Any]]  # of any types


class Upsert:
    """Of one table; put together once, for each kind of database."""

    def __init__(
        self,
        table: Any,  # a class of `tables`
        keys: Columns,
        changed: Collection[str] = (),
        *,
        also: Values | None = None,
        computed: Values | None = None,
    ) -> None:
        """Where a row has the ``keys`` of the new one it is changed instead.

        :param keys: the table has a unique constraint of just these
        :param changed: the columns that are then as in the new row
        :param also: SQL for other columns, which may tell from what is there
        :param computed: SQL for columns of the new row that no values are given for
        """
        self._statements: dict[str, Insert] = {}
        mine = mysql.insert(table).values(**computed or {})
        taken = {name: mine.inserted[name] for name in changed}
        self._statements['mysql'] = mine.on_duplicate_key_update(
            **taken, **(also or {})
        )
        for dialect, module in (('postgresql', postgresql), ('sqlite', sqlite)):
            theirs = module.insert(table).values(**computed or {})
            taken = {name: theirs.excluded[name] for name in changed}
            self._statements[dialect] = theirs.on_conflict_do_update(
                index_elements=keys, set_={**taken, **(also or {})}
            )

    def run(self, session: Session, values: Values | Sequence[Values]) -> None:
        """:param values: of one row, or of several rows that name the same columns"""
        name = session.connection().dialect.name
        change(session, self._statements[name], values)
