# SPDX-License-Identifier: Apache-2.0
"""Errors in signed replies: the name of the class and the fields of the text."""

from importlib import import_module
from typing import Any

from cyborg_lite import errors
from cyborg_lite.errors.base import CyborgError


# Any: values of JSON.
def dump(error: CyborgError) -> list[Any]:
    """Return an error as a JSON list."""
    fields = {
        name: value if isinstance(value, int | float | str | list) else str(value)
        for name, value in error.kwargs.items()
    }
    return [type(error).__name__, fields]


def load(value: Any) -> CyborgError:
    """Return the error of a reply; CyborgError if its class is not known."""
    name, fields = value
    kinds = (getattr(import_module(module), name, None) for module in errors.MODULES)
    kind = next(filter(None, kinds), None)
    if not (isinstance(kind, type) and issubclass(kind, CyborgError)):
        return CyborgError()
    try:
        return kind(**fields)
    except LookupError:  # the text of this release has other fields
        return CyborgError()
