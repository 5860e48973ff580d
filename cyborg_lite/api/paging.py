# SPDX-License-Identifier: Apache-2.0
"""Where the next page of a collection is, for clients that follow links."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from wsme import types

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.views.link import Link
from cyborg_lite.model.queries import Query


def next_page(call: Call, query: Query, found: Sequence[Any]) -> Any:
    """The links of a collection, or what leaves them out: there is no next page.

    A page that is full may be the last one all the same; the next is empty then.

    :param found: records that have a uuid, of any one type
    """
    full = query.limit is not None and len(found) == query.limit
    if call.microversion < V2_4 or not full:
        return types.Unset
    asked = urlencode({**call.arguments, 'marker': found[-1].uuid})
    return [Link(href=f'{call.links.to(call.path)}?{asked}', rel='next')]
