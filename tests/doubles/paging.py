# SPDX-License-Identifier: Apache-2.0
"""Pages of in-memory collections, selected and sorted as in the database."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.queries import Query

T = TypeVar('T')  # a data class that has a uuid


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
    if query.marker is not None:
        uuids = [getattr(item, 'uuid', None) for item in matches]
        if query.marker not in uuids:
            raise InvalidInput(reason=f'The marker {query.marker} is unknown.')
        matches = matches[uuids.index(query.marker) + 1 :]
    return tuple(matches[: query.limit])


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
