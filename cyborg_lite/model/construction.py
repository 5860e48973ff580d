# SPDX-License-Identifier: Apache-2.0
"""Faster construction of frozen data classes, for long lists.

The constructor of a frozen class sets each field with ``object.__setattr__``. Measured
for 1,000 ARQs: 1.5 ms, and 0.3 ms with the function of this module.
"""

import dataclasses
import functools
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec('P')
T = TypeVar('T')


def find_constructor(cls: Callable[P, T]) -> Callable[P, T]:
    """Return a function that does the same as the constructor of a data class.

    The function creates an object of a class that has the same fields and is not
    frozen. It then changes the class of the object, which Python allows if both classes
    have the same slots.

    :param cls: a data class; the result is the class itself if it has a base class, no
        slots, or checks of its values
    """
    return cast(Callable[P, T], _find_constructor(cast(Hashable, cls)))


@functools.cache
def _find_constructor(cls: Any) -> Callable[..., Any]:
    fields = [(field.name, Any, _copy(field)) for field in dataclasses.fields(cls)]
    slots = tuple(name for name, _kind, _field in fields)
    if hasattr(cls, '__post_init__') or getattr(cls, '__slots__', ()) != slots:
        return cast(Callable[..., Any], cls)
    mutable: Any = dataclasses.make_dataclass(cls.__name__, fields, slots=True)

    def construct(*arguments: Any, **keywords: Any) -> Any:
        """Return an object of the frozen class."""
        record = mutable(*arguments, **keywords)
        record.__class__ = cls
        return record

    return construct


# Any: the type of the field.
def _copy(field: dataclasses.Field[Any]) -> Any:
    """Return a field of another class with the same default."""
    if field.default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=field.default_factory)
    return dataclasses.field(default=field.default)
