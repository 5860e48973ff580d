# SPDX-License-Identifier: Apache-2.0
"""The query argument ``fields``: a client reads some fields of an object only.

A response always has the links of its objects, as in the Bare Metal API.
"""

import difflib
from collections.abc import Collection, Iterable
from typing import Any, Final

from wsme import types

from cyborg_lite.api.call.arguments import split_list
from cyborg_lite.api.microversion import Microversion
from cyborg_lite.api.views.shapes import has_field
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.text import format_value

ARGUMENT: Final = 'fields'
LINKS: Final = 'links'


def list_fields(view: type[Any], version: Microversion) -> list[str]:
    """Return the names of the fields that a view has at a microversion."""
    return [
        attribute.name
        for attribute in types.list_attributes(view)
        if has_field(attribute.datatype, version)
    ]


def parse_fields(
    text: str, views: Iterable[type[Any]], version: Microversion
) -> frozenset[str]:
    """Return the fields that a client requests, and the links.

    :param text: names, separated by commas
    :param views: possible views of the object
    :raises InvalidInput: no view has a field; the error has the nearest valid one
    """
    valid = {name for view in views for name in list_fields(view, version)}
    names = split_list(text)
    if not names:
        raise InvalidInput(reason=f'{ARGUMENT} must name a field.')
    for name in names:
        _check_field(name, valid)
    return frozenset((*names, LINKS))


def _check_field(name: str, valid: Collection[str]) -> None:
    if name in valid:
        return
    nearest = difflib.get_close_matches(name, sorted(valid), 1)
    advice = (
        f'Did you mean {nearest[0]}?'
        if nearest
        else f'Valid fields: {", ".join(sorted(valid))}.'
    )
    raise InvalidInput(reason=f'Unknown field {format_value(name)}. {advice}')
