# SPDX-License-Identifier: Apache-2.0
"""Serves the methods of an RPC interface with the methods of services.

A service marks each method that implements a declared one::

    @serves(Conductor.list_devices)
    def list(self, query: Query) -> tuple[DeviceRecord, ...]:

The type checker compares the signatures. A method that does not need the context of the
request has no parameter for it.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from oslo_log import log

from cyborg_lite.errors.base import CyborgError
from cyborg_lite.rpc.arguments import dump_answer
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.methods import Interface

LOG = log.getLogger(__name__)

P = ParamSpec('P')
R = TypeVar('R')
S = TypeVar('S')  # the service

_MARK = 'rpc_name'


class _Mark(Protocol[P, R]):
    """Marks a method of a service that has the declared arguments and answer."""

    @overload
    def __call__(
        self, method: Callable[Concatenate[S, RequestContext, P], R], /
    ) -> Callable[Concatenate[S, RequestContext, P], R]: ...

    @overload
    def __call__(
        self, method: Callable[Concatenate[S, P], R], /
    ) -> Callable[Concatenate[S, P], R]: ...


# Any, here and below: services, arguments and answers of any class, JSON values.
def serves(declared: Callable[Concatenate[Any, RequestContext, P], R]) -> _Mark[P, R]:
    """Mark the method that implements a method of ``Conductor``."""
    mark: _Mark[P, R] = _mark(declared)
    return mark


def serves_host(
    declared: Callable[Concatenate[Any, RequestContext, str, P], R],
) -> _Mark[P, R]:
    """Mark the method that implements a method of ``Agents`` on one host."""
    mark: _Mark[P, R] = _mark(declared)
    return mark


def _mark(declared: Callable[..., Any]) -> Any:
    def mark(method: Any) -> Any:
        """Store the name of the declared method at the method, which stays as it is."""
        setattr(method, _MARK, declared.__name__)
        return method

    return mark


class Dispatcher:
    """Calls the services of an interface."""

    def __init__(self, interface: Interface, services: Iterable[object]) -> None:
        """Find the methods of the services.

        :raises LookupError: a method implements none of the interface
        """
        self.interface = interface
        self._functions: dict[str, tuple[Callable[..., Any], bool]] = {}
        for name, function in _list_functions(services):
            if name not in interface.methods:
                raise LookupError(f'{interface.topic} has no method {name}')
            takes_context = 'context' in inspect.signature(function).parameters
            self._functions[name] = function, takes_context

    def list_missing(self) -> tuple[str, ...]:
        """Return the names of the methods that no service implements."""
        return tuple(sorted(self.interface.methods.keys() - self._functions.keys()))

    def implements(self, name: str) -> bool:
        """Check whether a service implements a method."""
        return name in self._functions

    def call(
        self, name: str, context: RequestContext, arguments: Mapping[str, Any]
    ) -> Any:
        """Call the service that implements a method; return the answer as JSON.

        An unexpected error is logged, and the caller does not get its text.

        :param arguments: JSON values, not checked yet
        :raises CyborgError: the error of the service
        :raises MalformedData: the arguments are not those of the method
        """
        method = self.interface.methods[name]
        function, takes_context = self._functions[name]
        first = (context,) if takes_context else ()
        try:
            answer = function(*first, **method.load_arguments(arguments))
            return dump_answer(method.answer, answer)
        except CyborgError:
            raise
        except Exception:
            # One request must not end the server.
            LOG.exception('%s failed', name)
            raise CyborgError from None


def _list_functions(
    services: Iterable[object],
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield each marked method with the name of the method that it implements."""
    for service in services:
        for name, function in inspect.getmembers(type(service), callable):
            declared = getattr(function, _MARK, None)
            if declared is not None:
                yield declared, getattr(service, name)
