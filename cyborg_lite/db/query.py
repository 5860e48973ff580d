# SPDX-License-Identifier: Apache-2.0
"""The part of a collection that a client wants, in one SELECT."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVarTuple

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Integer,
    Row,
    Select,
    and_,
    false,
    or_,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from cyborg_lite.db.reading import all_rows
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import is_storable, shown

Columns = TypeVarTuple('Columns')

_INT32: Final = range(-(2**31), 2**31)


@dataclass(frozen=True, slots=True)
class Collection:
    """Which table it is, and by which names clients may filter and sort it."""

    table: Any  # a class of `tables` that has the columns `id` and `uuid`
    filters: Mapping[str, ColumnElement[Any] | InstrumentedAttribute[Any]]
    sorts: Mapping[str, InstrumentedAttribute[Any]]


def page(
    session: Session, wanted: Select[*Columns], query: Query, collection: Collection
) -> Sequence[Row[*Columns]]:
    """The rows of ``wanted`` that fit, in a total order: equal ones by their age.

    Nothing in that order is met twice or passed over while others come and go.

    :raises InvalidInput: an unknown filter, sort key or marker, or no integer where
        one is due
    """
    chosen = narrowed(wanted, query, collection)
    rows: Sequence[Row[*Columns]] = all_rows(session, chosen, collection.table)
    # Only an unknown marker makes us ask twice: else a page costs one SELECT.
    if query.marker is not None and not rows:
        _check_marker(session, query.marker, collection.table)
    return rows


def narrowed(
    wanted: Select[*Columns], query: Query, collection: Collection
) -> Select[*Columns]:
    """``wanted`` with the filters, the order and the limits of the query."""
    for name, values in query.filters.items():
        wanted = wanted.where(_fits(name, values, collection))
    key = _sort_column(query, collection)
    if query.marker is not None:
        mark = aliased(collection.table)
        wanted = wanted.join(mark, mark.uuid == query.marker)
        wanted = wanted.where(_beyond(key, mark, collection.table, query.descending))
    order = _order(key, collection.table)
    if query.descending:
        order = [column.desc() for column in order]
    return wanted.order_by(*order).limit(query.limit)


def _fits(
    name: str, values: Sequence[str], collection: Collection
) -> ColumnElement[bool]:
    try:
        column = collection.filters[name]
    except KeyError:
        raise InvalidInput(reason=f'Unknown filter {shown(name)}.') from None
    if isinstance(column.type, Integer):
        return column.in_([_integer(name, value) for value in values])
    if isinstance(column.type, Boolean):
        return column.in_([value == 'true' for value in values])
    # The others no row has, and a database may complain of the question itself.
    storable = [value for value in values if is_storable(value)]
    return column.in_(storable) if storable else false()


def _integer(name: str, value: str) -> int:
    try:
        number = int(value)
    except ValueError:
        number = _INT32.stop
    if number not in _INT32:
        raise InvalidInput(reason=f'{name} must be an integer of 32 bits.')
    return number


def _sort_column(
    query: Query, collection: Collection
) -> InstrumentedAttribute[Any] | None:
    if query.sort_key is None:
        return None
    try:
        return collection.sorts[query.sort_key]
    except KeyError:
        raise InvalidInput(
            reason=f'Unknown sort key {shown(query.sort_key)}.'
        ) from None


def _order(
    key: InstrumentedAttribute[Any] | None, table: Any
) -> list[ColumnElement[Any]]:
    if key is None:
        return [table.id]
    # Databases disagree on where NULL belongs; here it is the last.
    nulls = [key.is_(None)] if key.nullable else []
    return [*nulls, key.expression, table.id]


def _beyond(
    key: InstrumentedAttribute[Any] | None, mark: Any, table: Any, descending: bool
) -> ColumnElement[bool]:
    """True of the rows that come after the marker's."""
    newer: ColumnElement[bool] = (
        table.id < mark.id if descending else table.id > mark.id
    )
    if key is None:
        return newer
    of_mark = getattr(mark, key.key)
    if descending:
        later = or_(key < of_mark, and_(key.is_not(None), of_mark.is_(None)))
    else:
        later = or_(key > of_mark, and_(key.is_(None), of_mark.is_not(None)))
    equal = or_(key == of_mark, and_(key.is_(None), of_mark.is_(None)))
    return or_(later, and_(equal, newer))


def _check_marker(session: Session, marker: str, table: Any) -> None:
    if session.scalar(select(table.id).where(table.uuid == marker)) is None:
        reason = f'The marker {shown(marker)} is not in the collection.'
        raise InvalidInput(reason=reason)
