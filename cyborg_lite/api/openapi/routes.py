# SPDX-License-Identifier: Apache-2.0
"""Routes of the API document, from ``ROUTES`` and the policy rules.

A policy rule names the operations that it guards. A new route appears in the document
as soon as a rule names it.
"""

import dataclasses
import enum
import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from oslo_policy.policy import DocumentedRuleDefault

from cyborg_lite import policies
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.call.validation import Schema
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, V2_5, Microversion
from cyborg_lite.api.routes import ROUTES

_WITHOUT_RULE: Final = ('/', '/v2', '/v2/openapi.json')


@dataclass(frozen=True, slots=True)
class Route:
    """An HTTP method of a path, with the arguments of its decorators.

    See ``expose.py``. The docstring of the method is the summary and the description.
    """

    method: str
    path: str
    summary: str
    description: str
    resource: type[Resource]
    views: tuple[type[Any], ...]  # possible responses; empty: no body
    status: int
    accepted: tuple[type[Any], ...]  # views that are returned with 202
    errors: Collection[int]
    since: Microversion = MINIMUM
    hidden: bool = False  # True: older microversions answer 405
    rule: str | None = None  # None: no authentication
    service_for: str | None = None
    arguments: Collection[str] = ()
    words: Mapping[str, type[enum.StrEnum]] = field(default_factory=dict)
    newer: Mapping[str, Microversion] = field(default_factory=dict)
    filters: Collection[str] = ()
    body: Schema | None = None
    selectable: Collection[type[Any]] = ()  # views whose fields may be selected
    precondition: bool = False  # True: If-Match is evaluated

    @property
    def operation_id(self) -> str:
        """Id of the operation, which is unique in the document."""
        words = re.findall(r'[a-z0-9]+', self.path.lower())
        return '_'.join([self.method.lower(), *words])


def list_routes(version: Microversion) -> Iterator[Route]:
    """Yield the routes that a microversion supports, in the order of the rules."""
    for route in _list_all_routes():
        if route.since <= version:
            newer = {n: since for n, since in route.newer.items() if since <= version}
            yield dataclasses.replace(
                route,
                newer=newer,
                words=route.words if version >= V2_5 else {},
                selectable=route.selectable if version >= V2_5 else (),
                precondition=route.precondition and version >= V2_5,
            )


def _list_all_routes() -> Iterator[Route]:
    for path in _WITHOUT_RULE:
        yield _build_route('GET', path)
    for rule in policies.list_rules():
        if isinstance(rule, DocumentedRuleDefault):
            for operation in rule.operations:
                method, path = operation['method'], operation['path']
                yield _build_route(method, path)


def _build_route(method: str, path: str) -> Route:
    resource = ROUTES[path]
    handler = getattr(resource, resource.find_method(method, MAXIMUM))
    names = (name for name in Route.__slots__ if hasattr(handler, name))
    facts: dict[str, Any] = {name: getattr(handler, name) for name in names}
    # Without docstrings (python -OO) the document has no texts.
    summary, _, description = (inspect.getdoc(handler) or '').partition('\n\n')
    return Route(method, path, summary, description, resource, **facts)
