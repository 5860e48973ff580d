# SPDX-License-Identifier: Apache-2.0
"""What the API answers: the routes of the policy rules, and those without a rule.

A rule names the operations that it guards; the way to what answers them is that of a
request. So the document shows a new route as soon as its rule names it.
"""

import dataclasses
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from oslo_policy.policy import DocumentedRuleDefault

from cyborg_lite import policies
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, V2_4, Microversion
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.validation import Schema

_WITHOUT_RULE: Final = {
    '/': 'Find the versions of the API.',
    '/v2': 'Find the microversions.',
    '/v2/openapi.json': 'Show this document.',
}


@dataclass(frozen=True, slots=True)
class Route:
    """A method of a path, with what its controller says of it; see ``expose.py``."""

    method: str
    path: str
    summary: str
    resource: type[Resource]
    since: Microversion
    hidden: bool  # older clients are told that there is no such method
    views: tuple[type[Any], ...]  # what an answer may be; empty: it has no body
    status: int
    accepted: type[Any] | None  # what is answered with 202 in their place
    errors: Collection[int]
    rule: str | None = None  # None: nobody is asked who they are
    service_for: str | None = None
    arguments: Collection[str] = ()
    newer: Collection[str] = ()
    filters: Collection[str] = ()
    body: Schema | None = None


def routes(root: Resource, version: Microversion) -> Iterator[Route]:
    """What a client that speaks the version can ask for, in the order of the rules."""
    for route in _routes(root):
        if route.since <= version:
            newer = route.newer if version >= V2_4 else ()
            yield dataclasses.replace(route, newer=newer)


def _routes(root: Resource) -> Iterator[Route]:
    for path, summary in _WITHOUT_RULE.items():
        yield _route(root, 'GET', path, summary)
    for rule in policies.list_rules():
        if isinstance(rule, DocumentedRuleDefault):
            for operation in rule.operations:
                where = operation['method'], operation['path']
                yield _route(root, *where, rule.description)


def _route(root: Resource, method: str, path: str, summary: str) -> Route:
    resource = root
    for segment in path.strip('/').split('/'):
        resource = resource.below(segment) if segment else resource
    handler = resource.handler(method, MAXIMUM)
    hidden = method in resource.since
    shown = (name for name in Route.__slots__ if hasattr(handler, name))
    facts: dict[str, Any] = {name: getattr(handler, name) for name in shown}
    facts['since'] = resource.since.get(method, facts.get('since', MINIMUM))
    return Route(method, path, summary, type(resource), hidden=hidden, **facts)
