# SPDX-License-Identifier: Apache-2.0
"""The page of a collection in memory that a query asks for, as the database has it."""

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
    """:param items: in order of creation
    :param values: what an item has under the name of a filter
    """
    found = [
        item
        for item in items
        if all(
            _word(values(item, key)) in wanted for key, wanted in query.filters.items()
        )
    ]
    key = query.sort_key
    if key is not None:
        if key not in sorts:
            raise InvalidInput(reason=f'Unknown sort key {key}.')
        found.sort(key=lambda item: str(getattr(item, key)))
    if query.descending:
        found.reverse()
    if query.marker is not None:
        uuids = [getattr(item, 'uuid', None) for item in found]
        if query.marker not in uuids:
            raise InvalidInput(reason=f'The marker {query.marker} is unknown.')
        found = found[uuids.index(query.marker) + 1 :]
    return tuple(found[: query.limit])


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
