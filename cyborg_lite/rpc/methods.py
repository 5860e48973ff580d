# SPDX-License-Identifier: Apache-2.0
"""The methods of the RPC interfaces, read from their declarations."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cyborg_lite.errors.daemons import MalformedData
from cyborg_lite.rpc.arguments import dump_argument, load_argument
from cyborg_lite.rpc.interface import Agents, Conductor
from cyborg_lite.rpc.terms import FIRST_VERSION, Terms, find_terms
from cyborg_lite.rpc.upgrade_levels import parse_level

# Parameters before the arguments: ``self`` and ``context``, and the host of an agent.
_BEFORE_ARGUMENTS: Final = 2
_BEFORE_ARGUMENTS_OF_HOST: Final = 3

_NO_DEFAULT: Final = inspect.Parameter.empty

Arguments = dict[str, Any]  # JSON values by name of the parameter


# Any, in this class: annotations, values of any class, and JSON values.
@dataclass(frozen=True, slots=True)
class Method:
    """A method of an interface. Its parameters are those that are sent."""

    name: str
    terms: Terms
    annotations: Mapping[str, Any]  # by parameter
    defaults: Mapping[str, Any]  # by parameter that has one
    answer: Any  # annotation

    def find_version(self, arguments: Iterable[str]) -> str:
        """Return the lowest interface version that can serve a call.

        :param arguments: names of the passed ones
        """
        added = self.terms.added
        if not added:
            return self.terms.since
        versions = [added[name] for name in arguments if name in added]
        return max((self.terms.since, *versions), key=parse_level)

    def dump_arguments(
        self, values: Iterable[Any], keywords: Mapping[str, Any]
    ) -> Arguments:
        """Return the arguments of a call that differ from their defaults."""
        arguments = {**dict(zip(self.annotations, values, strict=False)), **keywords}
        defaults, is_compressed = self.defaults, self.terms.is_compressed
        return {
            name: dump_argument(value, is_compressed=is_compressed)
            for name, value in arguments.items()
            if name not in defaults or value != defaults[name]
        }

    def load_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a received call.

        :raises MalformedData: an argument is unknown, missing or malformed
        """
        annotations, is_compressed = self.annotations, self.terms.is_compressed
        for name in annotations.keys() - arguments.keys() - self.defaults.keys():
            raise MalformedData(reason=f'{self.name} lacks {name}')
        for name in arguments.keys() - annotations.keys():
            raise MalformedData(reason=f'{self.name} has no argument {name}')
        return {
            name: load_argument(annotations[name], data, is_compressed=is_compressed)
            for name, data in arguments.items()
        }


@dataclass(frozen=True, slots=True)
class Interface:
    """A declared interface with its methods."""

    topic: str
    methods: Mapping[str, Method]
    version: str  # of the newest method or parameter


def read_interface(
    topic: str, declaration: type[Any], *, is_addressed: bool = False
) -> Interface:
    """Return an interface with the methods that a class declares.

    :param is_addressed: True: the first argument is the host of the server, which is
        not sent
    """
    skipped = _BEFORE_ARGUMENTS_OF_HOST if is_addressed else _BEFORE_ARGUMENTS
    methods = {
        name: _read_method(name, function, skipped)
        for name, function in vars(declaration).items()
        if inspect.isfunction(function) and not name.startswith('_')
    }
    versions = {
        version
        for method in methods.values()
        for version in (method.terms.since, *method.terms.added.values())
    }
    newest = max(versions, key=parse_level, default=FIRST_VERSION)
    return Interface(topic, methods, newest)


def _read_method(name: str, function: Callable[..., object], skipped: int) -> Method:
    signature = inspect.signature(function)
    parameters = [*signature.parameters.values()][skipped:]
    return Method(
        name,
        find_terms(function),
        {item.name: item.annotation for item in parameters},
        {
            item.name: item.default
            for item in parameters
            if item.default is not _NO_DEFAULT
        },
        signature.return_annotation,
    )


CONDUCTOR: Final = read_interface('cyborg_lite.conductor', Conductor)
AGENTS: Final = read_interface('cyborg_lite.agent', Agents, is_addressed=True)

HOST: Final = 'host'
"""Argument in which each agent names its own host."""

SHORT_METHODS: Final = frozenset(
    name for name, method in CONDUCTOR.methods.items() if method.terms.is_short
)
"""Methods whose messages do not name the host: their signatures do."""
