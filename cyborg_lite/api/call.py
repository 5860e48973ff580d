# SPDX-License-Identifier: Apache-2.0
"""One request, as a controller sees it."""

from collections.abc import Collection
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

import webob

from cyborg_lite.api import arguments, auth, json_body
from cyborg_lite.api.frame import MICROVERSION
from cyborg_lite.api.links import Links
from cyborg_lite.api.microversion import MINIMUM, Microversion
from cyborg_lite.api.resource import Backing
from cyborg_lite.api.validation import Schema
from cyborg_lite.exceptions import (
    InvalidInput,
    NotAcceptable,
    ServiceTokenRequired,
    UnsupportedMediaType,
)
from cyborg_lite.rpc.context import RequestContext

_JSON: Final = 'application/json'
_PARAMETERS: Final = frozenset({'', 'charset=utf-8', 'charset="utf-8"', 'charset=utf8'})


class Call:
    """Who asks for what. Nothing is read before it is asked for."""

    arguments: dict[str, str]  # set, as the body, by what the method accepts
    body: Any  # JSON that fits the method's schema

    def __init__(self, request: webob.Request, backing: Backing) -> None:
        self._request = request
        self._backing = backing

    @cached_property
    def caller(self) -> RequestContext:
        return auth.caller(self._request.environ, self._backing.service_token_roles)

    @property
    def microversion(self) -> Microversion:
        agreed: Microversion = self._request.environ.get(MICROVERSION, MINIMUM)
        return agreed

    @cached_property
    def links(self) -> Links:
        return Links.of(self._request.environ, self._backing.public_endpoint)

    @property
    def path(self) -> str:
        """Without the mount prefix and without slashes around it."""
        path: str = self._request.environ.get('PATH_INFO', '')
        return quote(path.strip('/'), encoding='latin-1')

    def authorise(self, rule: str) -> None:
        """:raises Forbidden: the caller may not do what the rule guards"""
        self._backing.policy.check(rule, self.caller)

    def require_service(self, action: str) -> None:
        """:raises ServiceTokenRequired: the caller is no service, be it an admin"""
        if not self.caller.service_request:
            raise ServiceTokenRequired(action=action)

    def require_version(self, version: Microversion, feature: str) -> None:
        """:raises NotAcceptable: an older one is spoken; ``feature`` is a noun"""
        if self.microversion < version:
            raise NotAcceptable(
                reason=f'{feature} needs microversion {version} or higher, '
                f'the request is of {self.microversion}.'
            )

    def read_arguments(self, known: Collection[str], filters: Collection[str]) -> None:
        """:raises InvalidInput: one is unknown or given twice"""
        query = self._request.environ.get('QUERY_STRING', '')
        self.arguments = arguments.read(query, known, filters)

    def read_body(self, schema: Schema) -> None:
        """:raises InvalidInput: it does not fit the schema, or is no JSON
        :raises UnsupportedMediaType: it says that it is no JSON
        """
        try:
            raw: bytes = self._request.body
        except (OSError, ValueError):
            # It ends early, or its chunks are not what they say.
            raise InvalidInput(reason='The request body cannot be read.') from None
        if schema.optional and not raw:
            return
        if not _is_json(self._request.environ.get('CONTENT_TYPE', '')):
            raise UnsupportedMediaType
        self.body = json_body.parse(raw, self._backing.json_depth)
        schema.check(self.body)


def _is_json(content_type: str) -> bool:
    kind, *parameters = [part.strip() for part in content_type.lower().split(';')]
    return kind == _JSON and _PARAMETERS.issuperset(parameters)
