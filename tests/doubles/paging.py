# SPDX-License-Identifier: Apache-2.0
"""Pages of in-memory collections, selected and sorted as in the database."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Final, TypeVar

from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model import cursors
from cyborg_lite.model.cursors import Cursor
from cyborg_lite.model.queries import Page, Query

T = TypeVar('T')  # a data class that has a uuid

# Numbers of objects by uuid, in the order in which they were listed first.
_NUMBERS: Final[defaultdict[str, int]] = defaultdict(count(1).__next__)


def page(
    items: Iterable[T],
    query: Query,
    values: Callable[[T, str], Any] = getattr,  # of any type
    sorts: frozenset[str] = frozenset({'uuid', 'created_at', 'updated_at'}),
) -> tuple[T, ...]:
    """Return the page of a collection that a query selects.

    :param items: in order of creation
    :param values: returns the value of an item for the name of a filter
    """
    items = tuple(items)
    for item in items:
        _number(item)
    matches = [
        item
        for item in items
        if all(
            str(getattr(item, 'name', '')).startswith(allowed)
            if key == 'name_prefix'
            else _word(values(item, key)) in allowed
            for key, allowed in query.filters.items()
        )
    ]
    key = query.sort_key
    if key is not None:
        if key not in sorts:
            raise InvalidInput(reason=f'Unknown sort key {key}.')
        matches.sort(key=lambda item: str(getattr(item, key)))
    if query.descending:
        matches.reverse()
    records = _skip_earlier(matches, query)[: query.limit]
    if not query.needs_cursor:
        return tuple(records)
    is_full = records and len(records) == query.limit
    cursor = cursors.encode(_locate(records[-1], query)) if is_full else None
    return Page.build(records, cursor)


def _skip_earlier(items: list[T], query: Query) -> list[T]:
    """Return the items after the cursor or the marker."""
    if query.cursor is not None:
        return [item for item in items if _is_after(item, query)]
    if query.marker is None:
        return items
    uuids = [getattr(item, 'uuid', None) for item in items]
    if query.marker not in uuids:
        raise InvalidInput(reason=f'The marker {query.marker} is unknown.')
    return items[uuids.index(query.marker) + 1 :]


def _locate(item: object, query: Query) -> Cursor:
    uuid = str(getattr(item, 'uuid', ''))
    value = None if query.sort_key is None else str(getattr(item, query.sort_key))
    name = type(item).__name__.lower()
    return Cursor(name, query.sort_key, query.descending, value, _number(item), uuid)


def _number(item: object) -> int:
    """Return the number of an object, which it gets when it is listed first."""
    return _NUMBERS[str(getattr(item, 'uuid', ''))]


def _is_after(item: object, query: Query) -> bool:
    cursor = cursors.decode(query.cursor or '')
    own = _locate(item, query)
    places = [(place.sort_key, place.descending) for place in (cursor, own)]
    if places[0] != places[1] or cursor.collection != own.collection:
        raise InvalidInput(reason='The marker is of another list.')
    keys = [(str(place.value), place.row) for place in (own, cursor)]
    return keys[0] < keys[1] if query.descending else keys[0] > keys[1]


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
