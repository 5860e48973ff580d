# SPDX-License-Identifier: Apache-2.0
"""Pages of a collection: the query of a request, and the link to the next page."""

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final
from urllib.parse import urlencode

from wsme import types

from cyborg_lite.api.call import arguments
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_4, V2_5
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model import cursors, uuids
from cyborg_lite.model.queries import Page, Query
from cyborg_lite.model.text import format_value

_MARKER: Final = 'marker'


def build_query(
    call: Call, detailed: bool = False, /, **filters: tuple[str, ...] | None
) -> Query:
    """Return the query for a page of a collection.

    Since 2.5 the marker may be a cursor.

    :param detailed: also load the fields that microversion 2.4 shows
    :param filters: as of ``arguments.build_query``
    :raises InvalidInput: an argument of ``arguments.PAGING`` is invalid
    """
    values, cursor = call.arguments, None
    if call.microversion < V2_5:
        return arguments.build_query(values, detailed, **filters)
    marker = values.get(_MARKER)
    if marker is not None and uuids.normalize_uuid(marker) is None:
        cursors.decode(marker)  # refuses other texts
        cursor, values = marker, {k: v for k, v in values.items() if k != _MARKER}
    query = arguments.build_query(values, detailed, **filters)
    return replace(query, cursor=cursor, needs_cursor=query.limit is not None)


def build_history_query(call: Call) -> Query:
    """Return the query for a page of a history, which starts with the latest step."""
    return replace(build_query(call), descending=True)


# Any: a record with a uuid.
def select_page(query: Query, records: Sequence[Any], *sorts: str) -> Sequence[Any]:
    """Return a page of a list that is computed, whose markers are uuids only.

    :param sorts: attributes that may be the sort key
    :raises InvalidInput: the sort key or the marker is unknown
    """
    key, start = query.sort_key, 0
    if key not in (None, *sorts):
        raise InvalidInput(reason=f'Unknown sort key {format_value(key)}.')
    if key is not None:
        read = attrgetter(key)
        # As in a stored list, None is last.
        records = sorted(records, key=lambda item: (read(item) is None, read(item)))
    if query.descending:
        records = records[::-1]
    if query.marker is not None or query.cursor is not None:
        uuids = [record.uuid for record in records]
        if query.marker not in uuids:
            raise InvalidInput(reason='The marker is not in the collection.')
        start = uuids.index(query.marker) + 1
    return records[start:][: query.limit]


def build_next_link(call: Call, query: Query, records: Sequence[Any]) -> Any:
    """Return the links of a collection, or ``Unset`` if it has no next page.

    A full page has a next page, which is empty if the full page was the last.

    :param records: records of the page; without a uuid they need a cursor
    """
    cursor = records.cursor if isinstance(records, Page) else None
    full = query.limit is not None and len(records) == query.limit
    marker = cursor or (getattr(records[-1], 'uuid', None) if full else None)
    if call.microversion < V2_4 or not marker:
        return types.Unset
    arguments_of_link = {**call.arguments, _MARKER: marker}
    href = f'{call.links.build_url(call.path)}?{urlencode(arguments_of_link)}'
    return [{'href': href, 'rel': 'next'}]
