# SPDX-License-Identifier: Apache-2.0
"""The HTTP request that a controller handles."""

import re
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

import webob

from cyborg_lite.api import auth
from cyborg_lite.api.call import arguments, json_body
from cyborg_lite.api.call.links import Links
from cyborg_lite.api.call.patches import json_patch
from cyborg_lite.api.call.resource import ApiContext
from cyborg_lite.api.call.validation import JSON_PATCH, Schema
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, V2_5, Microversion
from cyborg_lite.api.middleware import MICROVERSION
from cyborg_lite.api.nova_processes import is_nova_api
from cyborg_lite.errors.base import InvalidInput, NotFound
from cyborg_lite.errors.requests import (
    GenerationConflict,
    NotAcceptable,
    ServiceTokenRequired,
    UnsupportedMediaType,
)
from cyborg_lite.model import uuids
from cyborg_lite.model.text import format_value
from cyborg_lite.rpc.context import RequestContext

IF_MATCH: Final = 'If-Match'

_ANY: Final = '*'
_QUOTED: Final = re.compile(r'"([0-9]{1,10})"')
_LARGEST_GENERATION: Final = 2**31 - 1  # the largest generation of every database


def parse_if_match(text: str | None) -> int | None:
    """Return the generation that the object must have.

    A change is refused if the object has changed since the client has read its field
    ``generation``.

    :param text: ``*`` or the generation in double quotes; None: there is no header
    :returns: None: any generation
    :raises InvalidInput: the value is neither ``*`` nor one quoted generation
    """
    if text is None or text.strip() == _ANY:
        return None
    match = _QUOTED.fullmatch(text.strip())
    generation = int(match[1]) if match else _LARGEST_GENERATION + 1
    if generation > _LARGEST_GENERATION:
        raise InvalidInput(
            reason=f'{IF_MATCH} must be * or a generation in double quotes, not '
            f'{format_value(text)}.'
        )
    return generation


_JSON: Final = 'application/json'
_LIMIT: Final = 'limit'
_PARAMETERS: Final = frozenset({'', 'charset=utf-8', 'charset="utf-8"', 'charset=utf8'})


class Call:
    """An HTTP request whose parts are parsed on first use."""

    arguments: dict[str, str]  # set, like the body, by @accepts
    body: Any  # JSON that matches the schema of the method, or a JSON Patch
    is_json_patch: bool = False  # the body is not yet a list of changes
    words: dict[str, tuple[str, ...]]  # arguments that are lists of known words
    generation: int | None = None  # that the object must have; None: any
    # Fields that the client requests of the selectable views; None: all
    fields: frozenset[str] | None = None
    selectable: tuple[type[Any], ...] = ()
    until: Microversion = MAXIMUM  # the last one that has the path
    # Path of the created object or of the operation, without a leading slash
    location: str = ''

    def __init__(self, request: webob.Request, context: ApiContext) -> None:
        self._request = request
        self._context = context
        self.microversion: Microversion = request.environ.get(MICROVERSION, MINIMUM)

    @cached_property
    def caller(self) -> RequestContext:
        """The authenticated caller."""
        caller = auth.read_caller(
            self._request.environ, self._context.service_token_roles
        )
        caller.is_admin = self._context.policy.is_admin(caller)
        return caller

    @cached_property
    def links(self) -> Links:
        """Builder of links that the client can follow."""
        return Links.from_environ(self._request.environ, self._context.public_endpoint)

    @property
    def extra_accel_keys(self) -> frozenset[str]:
        """Names after ``accel:`` that are valid in addition to those of the service."""
        return self._context.extra_accel_keys

    @property
    def path(self) -> str:
        """Quoted path without the mount prefix and without slashes around it."""
        path: str = self._request.environ.get('PATH_INFO', '')
        return quote(path.strip('/'), encoding='latin-1')

    @property
    def operation(self) -> str:
        """Method and path, for error messages."""
        return f'{self._request.method} /{format_value(self.path)}'

    @property
    def is_from_nova_api(self) -> bool:
        """Return True if the Compute API sent the request, by its User-Agent."""
        agent: str = self._request.environ.get('HTTP_USER_AGENT', '')
        return self.caller.service_request and is_nova_api(agent)

    @property
    def sees_hosts(self) -> bool:
        """Return True if the caller may read texts that name hosts, paths or devices.

        The Compute service needs them for its log. Its tenants do not see its calls.
        """
        return self.caller.is_admin or self.caller.service_request

    @property
    def may_wait(self) -> bool:
        """Return True if the process can serve other requests at the same time."""
        return bool(self._request.environ.get('wsgi.multithread'))

    def authorize(self, rule: str) -> None:
        """Check a policy rule.

        :raises Forbidden: the rule rejects the caller, or the token has no project
        """
        self._context.policy.check(rule, self.caller)

    def require_service(self, action: str) -> None:
        """Check that the request carries a valid service token.

        :param action: what needs the token, as the subject of a sentence
        :raises ServiceTokenRequired: the request has none, even if from an admin
        """
        if not self.caller.service_request:
            raise ServiceTokenRequired(action=action)

    def require_version(self, version: Microversion, feature: str) -> None:
        """Check that the microversion of the request is at least ``version``.

        :param feature: what needs the version, as the subject of a sentence
        :raises NotAcceptable: the request has an older microversion
        """
        if self.microversion < version:
            raise NotAcceptable(
                reason=f'{feature} requires microversion {version} or later; '
                f'the request has {self.microversion}.'
            )

    def refuse_after(self, version: Microversion) -> None:
        """Check that the microversion of the request is at most ``version``.

        :raises NotAcceptable: the request has a newer microversion
        """
        if self.microversion > version:
            raise NotAcceptable(
                reason=f'{self.operation} requires microversion {version} or earlier; '
                f'the request has {self.microversion}.'
            )

    def parse_identifier(
        self, identifier: str, missing: type[NotFound], subject: str = ''
    ) -> str:
        """Return the UUID of a path in lower case with hyphens.

        :param missing: error of an object that does not exist
        :param subject: of the sentence of error 400, which a malformed UUID causes
            before 2.5; empty: the error is ``missing`` at all microversions
        :raises InvalidInput: the identifier is no UUID, before 2.5
        :raises NotFound: the identifier is no UUID; an error of the class ``missing``
        """
        uuid = uuids.normalize_uuid(identifier)
        if uuid is not None:
            return uuid
        if self.microversion >= V2_5:
            raise missing(uuid=f'{format_value(identifier)} (not a UUID)')
        if subject:
            return arguments.parse_uuid(subject, identifier)
        raise missing(uuid=format_value(identifier))

    def parse_arguments(self, names: Collection[str], filters: Collection[str]) -> None:
        """Parse the query string into ``arguments``.

        :param names: allowed arguments
        :param filters: fields that ``filters`` may name
        :raises InvalidInput: an argument is unknown or repeated
        """
        query_string = self._request.environ.get('QUERY_STRING', '')
        self.arguments = arguments.parse_query_string(query_string, names, filters)
        if _LIMIT in names and self.microversion >= V2_5:
            self._limit_page()

    def locate_operation(self, uuid: str) -> None:
        """Have the response name the operation that the request has started."""
        self.location = f'v2/operations/{uuid}'

    def select_filters(self, names: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return a filter for each of the names that is an argument of the request."""
        return arguments.select_filters(self.arguments, names) | self.words

    def selects(self, *names: str) -> bool:
        """Return True if the response has at least one of the fields."""
        return self.fields is None or not self.fields.isdisjoint(names)

    def _limit_page(self) -> None:
        """Lower the limit of a page, or set it, to the maximum of the service."""
        largest = self._context.max_limit
        text = self.arguments.get(_LIMIT, str(largest))
        # An invalid limit is refused when the query is built.
        is_number = text.isascii() and text.isdecimal()
        is_larger = is_number and int(text[:20]) > largest
        self.arguments[_LIMIT] = str(largest) if is_larger else text

    def parse_precondition(self, *, supported: bool) -> None:
        """Parse the header ``If-Match`` into ``generation``.

        :param supported: False: the method changes no object with a generation
        :raises InvalidInput: the header is invalid, or has no effect on a change
        """
        header = self._request.environ.get('HTTP_IF_MATCH')
        is_read = self._request.method in ('GET', 'HEAD')
        if header is None or is_read or self.microversion < V2_5:
            return
        if not supported:
            reason = f'This call does not support the header {IF_MATCH}.'
            raise InvalidInput(reason=reason)
        self.generation = parse_if_match(header)

    def parse_body(self, schema: Schema) -> None:
        """Parse the JSON body into ``body``.

        :raises InvalidInput: the body is not JSON or does not match the schema
        :raises UnsupportedMediaType: the content type is not JSON
        """
        try:
            raw: bytes = self._request.body
        except (OSError, ValueError):
            # The body is shorter than announced, or its chunks are malformed.
            raise InvalidInput(reason='The request body cannot be read.') from None
        if schema.optional and not raw:
            return
        accepts_patch = schema.is_patch and self.microversion >= V2_5
        content_type = self._request.environ.get('CONTENT_TYPE', '')
        self.is_json_patch = accepts_patch and _has_media_type(content_type, JSON_PATCH)
        if not self.is_json_patch and not _has_media_type(content_type, _JSON):
            raise UnsupportedMediaType
        self.body = json_body.parse(raw, self._context.json_depth)
        (json_patch.SCHEMA if self.is_json_patch else schema).check(self.body)

    # Any: JSON.
    def resolve_patch(
        self,
        schema: Schema,
        document: Mapping[str, Any],
        complete: Callable[[dict[str, Any], Mapping[str, Any]], None] | None = None,
    ) -> bool:
        """Replace a JSON Patch in ``body`` by one change for each changed field.

        The changes apply only to the generation of the document, if it has one.

        :param schema: of the list of changes, as clients send it with the type JSON
        :param document: the object that the patch changes
        :param complete: adds values of the object to the changed ones
        :returns: False: the patch changes nothing
        :raises InvalidJsonPatch: an operation or its result is invalid
        :raises PatchTestFailed: the operation ``test`` finds another value
        :raises GenerationConflict: ``If-Match`` names another generation
        """
        operations, generation = self.body, document.get('generation')
        if self.generation not in (None, generation):
            uuid = document['uuid']
            raise GenerationConflict(uuid=uuid, generation=self.generation)
        self.generation = generation
        depth = self._context.json_depth
        changes = json_patch.find_changes(operations, document, depth)
        if complete is not None:
            complete(changes, document)
        self.body = json_patch.build_replacements(changes, schema, operations)
        return bool(changes)


def _has_media_type(content_type: str, media_type: str) -> bool:
    kind, *parameters = [word.strip() for word in content_type.lower().split(';')]
    return kind == media_type and _PARAMETERS.issuperset(parameters)
