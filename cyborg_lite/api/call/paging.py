# SPDX-License-Identifier: Apache-2.0
"""Pages of a collection: the query of a request, and the link to the next page."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

from wsme import types

from cyborg_lite.api.call import arguments
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_4, V2_5
from cyborg_lite.model import cursors, uuids
from cyborg_lite.model.queries import Page, Query

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
        cursor = marker
        # A conductor of an earlier release ignores the cursor.
        values = {**values, _MARKER: cursors.decode(cursor).uuid}
    query = arguments.build_query(values, detailed, **filters)
    return replace(query, cursor=cursor, needs_cursor=query.limit is not None)


def build_next_link(call: Call, query: Query, records: Sequence[Any]) -> Any:
    """Return the links of a collection, or ``Unset`` if it has no next page.

    A full page has a next page, which is empty if the full page was the last.

    :param records: records of the page, of any class with a uuid
    """
    cursor = records.cursor if isinstance(records, Page) else None
    full = query.limit is not None and len(records) == query.limit
    if call.microversion < V2_4 or not (full or cursor):
        return types.Unset
    arguments_of_link = {**call.arguments, _MARKER: cursor or records[-1].uuid}
    href = f'{call.links.build_url(call.path)}?{urlencode(arguments_of_link)}'
    return [{'href': href, 'rel': 'next'}]
