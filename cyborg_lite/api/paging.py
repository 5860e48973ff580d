# SPDX-License-Identifier: Apache-2.0
"""Links to the next page of a collection."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from wsme import types

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.views.link import Link
from cyborg_lite.model.queries import Query


def build_next_link(call: Call, query: Query, records: Sequence[Any]) -> Any:
    """Return the links of a collection, or ``Unset`` if it has no next page.

    A full page has a next page, which is empty if the full page was the last.

    :param records: records of the page, of any class with a uuid
    """
    full = query.limit is not None and len(records) == query.limit
    if call.microversion < V2_4 or not full:
        return types.Unset
    query_string = urlencode({**call.arguments, 'marker': records[-1].uuid})
    return [Link(href=f'{call.links.build_url(call.path)}?{query_string}', rel='next')]
