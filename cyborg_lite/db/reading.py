# SPDX-License-Identifier: Apache-2.0
"""Rows that somebody else wrote, and that are not what they should be.

One of them must not take a whole collection from everybody: it is left out, and the log
says which one it is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from oslo_log import log
from sqlalchemy import Row, Select
from sqlalchemy.orm import Session

from cyborg_lite.model.queries import Query

LOG = log.getLogger(__name__)

T = TypeVar('T')
# The first column is a class of `tables`, or `Unreadable`.
Rows = Sequence[Row[*tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """In the place of a row with a value that its column could not have."""

    id: int
    uuid: str
    __tablename__: str
    error: Exception


# Any: the types of the columns; a class of `tables`.
def all_rows(session: Session, wanted: Select[*tuple[Any, ...]], table: Any) -> Any:
    """The rows of a SELECT, and ``Unreadable`` where there is none to be had.

    SQLite keeps as JSON or as a time whatever it is given, and the library reads all
    rows or none: then they are read one by one.
    """
    try:
        return session.execute(wanted).all()
    except (ValueError, TypeError):
        keys = (table.id, table.uuid)
        found = wanted.with_only_columns(*keys, maintain_column_froms=True)
        return [_row(session, wanted, table, *key) for key in session.execute(found)]


def _row(
    session: Session, wanted: Select[*tuple[Any, ...]], table: Any, key: int, uuid: str
) -> Any:
    try:
        return session.execute(wanted.where(table.id == key)).one()
    except (ValueError, TypeError) as error:
        return (Unreadable(key, uuid, table.__tablename__, error),)


def readable(rows: Rows, make: Callable[..., T]) -> Iterator[T]:
    """What is made of each row; the others are logged.

    :param make: takes the columns of one; raises where it makes no sense
    """
    for row in rows:
        try:
            if isinstance(row[0], Unreadable):
                raise row[0].error
            yield make(*row)
        except (ValueError, TypeError, AttributeError) as error:
            LOG.error(
                'Row %s of table %s makes no sense and is not shown; correct or '
                'delete it: %s',
                row[0].id,
                row[0].__tablename__,
                error,
            )


def filled(
    query: Query, read: Callable[[Query], tuple[Rows, Iterable[T]]]
) -> tuple[T, ...]:
    """A page as long as the query allows, with others in the place of what is left out.

    A client takes a page that is not full for the last one.

    :param read: reads one page: its rows, and what could be made of them
    """
    rows, made = read(query)
    found = list(made)
    while query.limit is not None and len(found) < query.limit == len(rows):
        following = replace(query, marker=rows[-1][0].uuid)
        rows, made = read(following)
        found += made
    return tuple(found[: query.limit])


def texts(mapping: Mapping[str, Any]) -> dict[str, str]:
    """Of JSON, where all values should be texts and clients count on it."""
    return {key: str(value) for key, value in mapping.items()}
