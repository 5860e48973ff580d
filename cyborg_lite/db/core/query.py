# SPDX-License-Identifier: Apache-2.0
"""Pages of a collection: filter, sort and limit in SQL, and skip unreadable rows.

A row with an invalid value must not make its whole collection unreadable. Such a row is
left out of the page, and the log names it.

A function that takes a query raises ``InvalidInput`` for an unknown filter, sort key or
marker.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypeVar, TypeVarTuple

from oslo_log import log
from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Connection,
    Integer,
    Select,
    and_,
    false,
    func,
    literal,
    or_,
    select,
    true,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from cyborg_lite.db.core.column_types import UtcDateTime
from cyborg_lite.db.core.records import AnyRow
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.daemons import MalformedData
from cyborg_lite.model import cursors
from cyborg_lite.model.cursors import Cursor
from cyborg_lite.model.queries import Page, Query
from cyborg_lite.model.text import format_value, is_storable

LOG = log.getLogger(__name__)

T = TypeVar('T')
R = TypeVar('R')
Columns = TypeVarTuple('Columns')
# Rows of a ``Record`` with a uuid. Any: ``UnreadableRow`` replaces some of them.
Rows = Sequence[Any]

# Rows of a page, and the function that converts one of them.
ConvertibleRows = tuple[Rows, Callable[[Any], R]]

_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)
_EVERY_ROW: Final = true()
_SORT_VALUE: Final = 'sort_value'  # column with the value of the sort key


@dataclass(frozen=True, slots=True)
class Collection:
    """Rows of a table, and the names by which clients may filter and sort them."""

    # A class of `tables` that has the column `id`. Without a column `uuid` the list has
    # no sort keys, and only cursors are markers.
    table: Any
    filters: Mapping[str, ColumnElement[Any] | InstrumentedAttribute[Any]]
    sorts: Mapping[str, InstrumentedAttribute[Any]] = field(default_factory=dict)
    # Columns of text by the filter for their first characters.
    prefixes: Mapping[str, InstrumentedAttribute[Any]] = field(default_factory=dict)
    # SQL that is true for the rows that the caller may see. A marker of another row is
    # unknown.
    visible: ColumnElement[bool] = _EVERY_ROW


# Any: a class of `tables`; SQL of any type.
def name_columns(table: Any, *names: str, **computed: Any) -> dict[str, Any]:
    """Return the columns by name, with further filters or sort keys."""
    return {name: getattr(table, name) for name in names} | computed


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """Replaces a row in which a column has a value that its type does not allow."""

    row_id: int
    uuid: str  # empty: the table has no uuids
    error: Exception


def select_page(
    session: Session,
    statement: Select[*tuple[Any, ...]],
    query: Query,
    collection: Collection,
) -> Rows:
    """Return the rows of ``statement`` that match the query, in a total order.

    Rows with equal sort keys are ordered by creation. Consecutive pages neither repeat
    nor skip a row when other rows are added or deleted in between.

    :raises InvalidInput: an unknown filter, sort key or marker, a cursor of another
        list, or not an integer where one is required
    """
    chosen = apply_query(statement.where(collection.visible), query, collection)
    key = _sort_column(query, collection)
    if query.needs_cursor and key is not None:
        chosen = chosen.add_columns(key.label(_SORT_VALUE))
    rows = fetch_rows(session, chosen, collection.table)
    # Only an empty page after a marker costs a second SELECT.
    if query.cursor is None and query.marker is not None and not rows:
        mark = _select_marker(query.marker, collection)
        if session.scalar(mark) is None:
            reason = (
                f'The marker {format_value(query.marker)} is not in the collection.'
            )
            raise InvalidInput(reason=reason)
    return rows


def apply_query(
    statement: Select[*Columns], query: Query, collection: Collection
) -> Select[*Columns]:
    """Return ``statement`` with the filters, the order and the limit of the query.

    :raises InvalidInput: an unknown filter or sort key, a cursor of another list, or
        not an integer
    """
    for name, values in query.filters.items():
        statement = statement.where(_filter(name, values, collection))
    key = _sort_column(query, collection)
    if query.cursor is not None:
        statement = statement.where(_is_after_cursor(key, query, collection))
    elif query.marker is not None:
        if not hasattr(collection.table, 'uuid'):
            raise _invalid_cursor()
        mark = aliased(collection.table)
        marker_id = _select_marker(query.marker, collection)
        statement = statement.join(mark, mark.id == marker_id.scalar_subquery())
        statement = statement.where(
            _is_after_marker(key, mark, collection.table, query.descending)
        )
    order = _order(key, collection.table)
    if query.descending:
        order = [column.desc() for column in order]
    return statement.order_by(*order).limit(query.limit)


def _filter(
    name: str, values: Sequence[str], collection: Collection
) -> ColumnElement[bool]:
    if name in collection.prefixes:
        prefixed = collection.prefixes[name]
        return or_(false(), *(_has_prefix(prefixed, value) for value in values))
    try:
        column = collection.filters[name]
    except KeyError:
        raise InvalidInput(reason=f'Unknown filter {format_value(name)}.') from None
    if isinstance(column.type, Integer):
        return column.in_([_parse_integer(name, value) for value in values])
    if isinstance(column.type, Boolean):
        return column.in_([value == 'true' for value in values])
    # No row contains other values, and some databases reject them in a query.
    storable = [value for value in values if is_storable(value)]
    return column.in_(storable) if storable else false()


def _has_prefix(column: InstrumentedAttribute[Any], prefix: str) -> ColumnElement[bool]:
    """Return SQL that is true for texts with the prefix, in the same case.

    LIKE ignores the case on SQLite. Comparisons ignore spaces at the end on MariaDB.
    """
    if not is_storable(prefix):
        return false()
    return and_(
        column.startswith(prefix, autoescape=True),
        func.substr(column, 1, len(prefix)) == prefix,
    )


def _parse_integer(name: str, value: str) -> int:
    try:
        number = int(value)
    except ValueError:
        number = _INT32.stop
    if number not in _INT32:
        raise InvalidInput(reason=f'{name} must be a 32-bit integer.')
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
            reason=f'Unknown sort key {format_value(query.sort_key)}.'
        ) from None


def _order(
    key: InstrumentedAttribute[Any] | None, table: Any
) -> list[ColumnElement[Any]]:
    if key is None:
        return [table.id]
    # The position of NULL differs between databases. Here NULL is always last.
    nulls = [key.is_(None)] if key.nullable else []
    return [*nulls, key.expression, table.id]


def _is_after_marker(
    key: InstrumentedAttribute[Any] | None, mark: Any, table: Any, descending: bool
) -> ColumnElement[bool]:
    newer: ColumnElement[bool] = (
        table.id < mark.id if descending else table.id > mark.id
    )
    if key is None:
        return newer
    marker_key = getattr(mark, key.key)
    if descending:
        later = or_(key < marker_key, and_(key.is_not(None), marker_key.is_(None)))
    else:
        later = or_(key > marker_key, and_(key.is_(None), marker_key.is_not(None)))
    equal = or_(key == marker_key, and_(key.is_(None), marker_key.is_(None)))
    return or_(later, and_(equal, newer))


def _is_after_cursor(
    key: InstrumentedAttribute[Any] | None, query: Query, collection: Collection
) -> ColumnElement[bool]:
    cursor = _parse_cursor(query, collection)
    number = collection.table.id
    newer: ColumnElement[bool] = (
        number < cursor.row if query.descending else number > cursor.row
    )
    if key is None:
        return newer
    value = _parse_position(key.type, cursor.value)
    if value is None:
        # NULL is last, or first in a list that is descending.
        equal = and_(key.is_(None), newer)
        return or_(key.is_not(None), equal) if query.descending else equal
    position = literal(value, key.type)
    equal = and_(key == position, newer)
    if query.descending:
        return or_(key < position, equal)
    return or_(key > position, key.is_(None), equal)


def _parse_cursor(query: Query, collection: Collection) -> Cursor:
    """Return the cursor of the query."""
    cursor = cursors.decode(query.cursor or '')
    position = (cursor.collection, cursor.sort_key, cursor.descending)
    expected = (collection.table.__tablename__, query.sort_key, query.descending)
    if position != expected:
        raise InvalidInput(
            reason='The marker is of another list, sort_key or sort_dir. Follow the '
            'next link, or start without a marker.'
        )
    _check_range(collection.table.id.type, cursor.row)
    return cursor


# Any: a type of SQLAlchemy; a value of the column.
def _parse_position(kind: Any, value: cursors.Value) -> Any:
    """Return the value of a cursor as a value of its column."""
    if value is None:
        return None
    if isinstance(kind, UtcDateTime):
        return _parse_time(value)
    expected: type = str
    if isinstance(kind, Boolean):
        expected = bool
    elif isinstance(kind, Integer):
        expected = int
    if type(value) is not expected:
        raise _invalid_cursor()
    if type(value) is int:
        _check_range(kind, value)
    return value


def _parse_time(value: cursors.Value) -> datetime:
    try:
        time = datetime.fromisoformat(str(value))
    except ValueError:
        raise _invalid_cursor() from None
    # The other years have times that leave the range of the type in another zone.
    if time.tzinfo is None or not datetime.min.year < time.year < datetime.max.year:
        raise _invalid_cursor()
    return time


def _check_range(kind: Any, number: int) -> None:
    """Check that a database accepts the number as a value of a column."""
    if number not in (_INT64 if isinstance(kind, BigInteger) else _INT32):
        raise _invalid_cursor()


def _invalid_cursor() -> InvalidInput:
    return InvalidInput(
        reason='The marker has an invalid position. Follow the next link, or start '
        'without a marker.'
    )


def _select_marker(marker: str, collection: Collection) -> Select[int]:
    """Return the SELECT of the id of the marker, if the caller may see its row.

    The SELECT must not refer to the row of the list that it is compared with.
    """
    table = collection.table
    is_marker = table.uuid == marker
    return select(table.id).where(is_marker, collection.visible).correlate(None)


# Any: a class of `tables`.
def fetch_rows(
    session: Session, statement: Select[*tuple[Any, ...]], table: Any
) -> Rows:
    """Return the rows of a SELECT, with ``UnreadableRow`` for rows that cannot be read.

    SQLite stores any value in a column of type JSON or DATETIME. SQLAlchemy then fails
    to read the whole result, so the rows are read one at a time.
    """
    connection = session.connection()
    try:
        return connection.execute(statement).all()
    except (ValueError, TypeError):
        keys = statement.with_only_columns(
            table.id, getattr(table, 'uuid', literal('')), maintain_column_froms=True
        )
        return [
            _fetch_row(connection, statement.where(table.id == key), key, uuid)
            for key, uuid in connection.execute(keys).all()
        ]


def _fetch_row(
    connection: Connection, statement: Select[*tuple[Any, ...]], key: int, uuid: str
) -> AnyRow | UnreadableRow:
    try:
        return connection.execute(statement).one()
    except (ValueError, TypeError) as error:
        return UnreadableRow(key, uuid, error)


# Any: a class of `tables`.
def convert_rows(rows: Rows, table: Any, convert: Callable[[Any], T]) -> Iterator[T]:
    """Yield the converted rows. Log rows that cannot be converted and skip them.

    :param convert: takes a row; raises if a value is invalid
    """
    return (record for _, record in _pair_rows(rows, table, convert))


def _pair_rows(
    rows: Rows, table: Any, convert: Callable[[Any], T]
) -> Iterator[tuple[AnyRow, T]]:
    for row in rows:
        try:
            if isinstance(row, UnreadableRow):
                raise row.error
            yield row, convert(row)
        except (ValueError, TypeError, AttributeError, MalformedData) as error:
            LOG.error(
                'Row %s of table %s has an invalid value and is not shown. Correct or '
                'delete the row: %s',
                row.row_id,
                table.__tablename__,
                error,
            )


def list_page(
    session: Session,
    statement: Select[*tuple[Any, ...]],
    query: Query,
    collection: Collection,
    convert: Callable[[Any], R],
) -> tuple[R, ...]:
    """Return a page of the rows of ``statement``, converted; see ``select_page``."""

    def read(page: Query) -> ConvertibleRows[R]:
        return select_page(session, statement, page, collection), convert

    return fill_page(query, collection, read)


def fill_page(
    query: Query, collection: Collection, read: Callable[[Query], ConvertibleRows[R]]
) -> tuple[R, ...]:
    """Return a page that is as long as the query allows, despite skipped rows.

    Clients treat a page that is shorter than the limit as the last page.

    :param read: reads one page: its rows, and the function that converts a row
    :returns: a ``Page`` if the query needs a cursor
    """
    rows, convert = read(query)
    pairs, last = list(_pair_rows(rows, collection.table, convert)), rows
    while query.limit is not None and len(pairs) < query.limit == len(last):
        last, convert = _read_following(query, collection, rows, read)
        pairs += _pair_rows(last, collection.table, convert)
        rows = [*rows, *last]
    pairs = pairs[: query.limit]
    items = tuple(record for _, record in pairs)
    if not query.needs_cursor:
        return items
    has_next = pairs and len(pairs) == query.limit
    row = pairs[-1][0] if has_next else None
    return Page.build(items, _build_cursor(row, query, collection))


def _read_following(
    query: Query,
    collection: Collection,
    rows: Rows,
    read: Callable[[Query], ConvertibleRows[R]],
) -> ConvertibleRows[R]:
    """Return the page after the last of the rows that is still stored.

    The rows after it have been deleted since their SELECT, so that none is repeated.
    The client has not chosen these markers, so a deleted one must not be its error.
    """
    if query.sort_key is None:
        cursor = _build_cursor(rows[-1], query, collection)
        return read(replace(query, marker=None, cursor=cursor))
    for row in reversed(rows):
        try:
            return read(replace(query, marker=row.uuid, cursor=None))
        except InvalidInput:
            continue
    return read(query)


def _build_cursor(
    row: AnyRow | UnreadableRow | None, query: Query, collection: Collection
) -> str | None:
    """Return the position of a row in the list of the query.

    :returns: None if there is no row, or if its value is too long
    """
    if row is None:
        return None
    value = None if query.sort_key is None else getattr(row, _SORT_VALUE)
    return cursors.encode(
        Cursor(
            collection=collection.table.__tablename__,
            sort_key=query.sort_key,
            descending=query.descending,
            value=value.isoformat() if isinstance(value, datetime) else value,
            row=row.row_id,
        )
    )


def as_strings(mapping: Mapping[str, Any]) -> dict[str, str]:
    """Return a JSON object with all values converted to strings.

    Clients rely on strings, and the database accepts any JSON.
    """
    return {key: str(value) for key, value in mapping.items()}
