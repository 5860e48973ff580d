# SPDX-License-Identifier: Apache-2.0
"""Content of responses that is converted to JSON without WSME.

WSME checks and converts each value on its own, which takes most of the time of a list
with many objects. The classes of ``views`` still describe such a response in the API
document, and a test compares each response with it.
"""

from datetime import datetime
from typing import Any

from wsme import types

from cyborg_lite.api.links import Links

Content = dict[str, Any]
"""A JSON object; its values are of any type of JSON."""


def build_content(**fields: Any) -> Content:
    """Return a JSON object without the fields that are ``Unset``.

    :param fields: JSON values, and times
    """
    return {
        name: value.isoformat() if type(value) is datetime else value
        for name, value in fields.items()
        if value is not types.Unset
    }


def render_time(time: datetime | None) -> str | None:
    """Return a time as text; None stays None."""
    return None if time is None else time.isoformat()


def build_self_link(links: Links, path: str) -> list[Content]:
    """Return the list with the ``self`` link of an object."""
    return [{'href': links.build_url(path), 'rel': 'self'}]


def render_links(links: Any) -> Any:
    """Return the result of ``paging.build_next_link`` as JSON, or ``Unset``."""
    if links is types.Unset:
        return links
    return [{'href': link.href, 'rel': link.rel} for link in links]
