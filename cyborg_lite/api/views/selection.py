# SPDX-License-Identifier: Apache-2.0
"""Views without the fields that a client does not request by ``fields``."""

from typing import TypeVar

from wsme import types

from cyborg_lite.api.views.content import Content
from cyborg_lite.api.views.view import View

V = TypeVar('V', bound=View)


def select_content(content: Content, fields: frozenset[str] | None) -> Content:
    """Return the requested fields of an object.

    :param fields: None: all fields
    """
    if fields is None:
        return content
    return {name: value for name, value in content.items() if name in fields}


def select_view(view: V, fields: frozenset[str] | None) -> V:
    """Return a view whose other fields are ``Unset``, and therefore omitted.

    :param fields: the requested fields; None: all fields
    """
    if fields is not None:
        for attribute in types.list_attributes(type(view)):
            if attribute.name not in fields:
                setattr(view, attribute.name, types.Unset)
    return view
