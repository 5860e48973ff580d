# SPDX-License-Identifier: Apache-2.0
"""Routes of the API document, from ``ROUTES`` and the policy rules.

A controller names the rule of each operation. The document has the order of the rules.
"""

import dataclasses
import enum
import inspect
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from oslo_policy import policy

from cyborg_lite import policies
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.call.validation import Schema
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, V2_5, Microversion
from cyborg_lite.api.routes import ROUTES
from cyborg_lite.policies.rules import RULES

_VERBS: Final = {'PATCH': 'update', 'DELETE': 'delete'}
# Operations whose method and path do not say what they do.
_IDS: Final = {
    'GET /': 'list_versions',
    'GET /v2': 'show_version',
    'GET /v2/openapi.json': 'show_api_document',
    'PATCH /v2/accelerator_requests': 'bind_accelerator_requests',
    'PATCH /v2/accelerator_requests/{uuid}': 'bind_accelerator_request',
    'POST /v2/device_profiles/{device_profile}/access': 'grant_device_profile_access',
    'DELETE /v2/device_profiles/{device_profile}/access': (
        'revoke_device_profile_access'
    ),
}


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
    until: Microversion | None = None  # None: MAXIMUM
    hidden: bool = False  # True: older microversions answer 405
    rule: str | None = None  # None: no authentication
    service_for: str | None = None
    arguments: Collection[str] = ()
    words: Mapping[str, type[enum.StrEnum]] = field(default_factory=dict)
    newer: Mapping[str, Microversion] = field(default_factory=dict)
    older: Mapping[str, Microversion] = field(default_factory=dict)
    filters: Collection[str] = ()
    body: Schema | None = None
    selectable: Collection[type[Any]] = ()  # views whose fields may be selected
    precondition: bool = False  # True: If-Match is evaluated

    @property
    def operation_id(self) -> str:
        """Verb and noun, which are unique in the document: ``show_device_modes``."""
        return _IDS.get(f'{self.method} {self.path}') or _name_operation(
            self.method, self.path
        )


def _name_operation(method: str, path: str) -> str:
    segments = path.split('/')[2:]
    nouns = [
        segment.removesuffix('s') if following.startswith('{') else segment
        for segment, following in pairwise([*segments, ''])
        if not segment.startswith('{')
    ]
    is_plural = segments[-1].endswith('s')
    if method == 'GET':
        verb = 'list' if is_plural else 'show'
    elif method == 'POST' and is_plural:
        verb, nouns[-1] = 'create', nouns[-1].removesuffix('s')
    elif is_plural or segments[-1].startswith('{'):
        verb = _VERBS[method]
    else:
        verb = nouns.pop()  # an action, such as enable
    return '_'.join([verb, *nouns])


def list_routes(version: Microversion | None = None) -> Iterator[Route]:
    """Yield the routes that a microversion supports, in the order of the rules.

    :param version: None: the routes of all microversions
    """
    for route in _list_all_routes():
        if version is None:
            yield route
        elif route.since <= version and version <= (route.until or MAXIMUM):
            newer = {
                name: since
                for name, since in route.newer.items()
                if since <= version <= route.older.get(name, MAXIMUM)
            }
            older = {n: until for n, until in route.older.items() if version <= until}
            yield dataclasses.replace(
                route,
                newer=newer,
                older=older,
                words=route.words if version >= V2_5 else {},
                selectable=route.selectable if version >= V2_5 else (),
                precondition=route.precondition and version >= V2_5,
            )


def _list_all_routes() -> list[Route]:
    """Return the routes of all rules; routes without a rule come first."""
    routes = [
        _build_route(method, path)
        for path, resource in ROUTES.items()
        for method in ('GET', 'POST', 'PATCH', 'DELETE')
        if hasattr(resource, method.lower())
    ]
    names = [None, *RULES]
    return sorted(routes, key=lambda route: names.index(route.rule))


def list_rules() -> list[policy.RuleDefault]:
    """Return the policy rules, those of routes with the routes, for oslo.policy."""
    operations: dict[str | None, list[policy.Operation]] = {}
    for route in _list_all_routes():
        operation = policy.Operation(method=route.method, path=route.path)
        operations.setdefault(route.rule, []).append(operation)
    return [
        policy.DocumentedRuleDefault(
            rule.name,
            rule.check_str,
            rule.description or '',
            operations[rule.name],
            scope_types=rule.scope_types,
        )
        if rule.name in operations
        else rule
        for rule in policies.list_rules()
    ]


def _build_route(method: str, path: str) -> Route:
    resource = ROUTES[path]
    handler = getattr(resource, resource.find_method(method, MAXIMUM))
    names = (name for name in Route.__slots__ if hasattr(handler, name))
    facts: dict[str, Any] = {name: getattr(handler, name) for name in names}
    if resource.until < MAXIMUM:
        facts['until'] = resource.until
    # Without docstrings (python -OO) the document has no texts.
    summary, _, description = (inspect.getdoc(handler) or '').partition('\n\n')
    return Route(method, path, summary, description, resource, **facts)
