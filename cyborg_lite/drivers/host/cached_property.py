# SPDX-License-Identifier: Apache-2.0
"""A property that is computed at the first read, without a lock.

``functools.cached_property`` of Python 3.11 has one lock for all objects of a class. A
read from the file of one card that hangs would block the reads of all other cards.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar('T')


class cached_property(Generic[T]):  # noqa: N801  # used as the one of the library
    """A property whose value is stored in the object."""

    # Any: the object may be of any class.
    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__
        self._name = ''

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> 'cached_property[T]': ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> 'cached_property[T] | T':
        """Return the value; two threads at the same time may both compute it."""
        if instance is None:
            return self
        value = self._compute(instance)
        vars(instance)[self._name] = value
        return value
