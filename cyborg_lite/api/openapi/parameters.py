# SPDX-License-Identifier: Apache-2.0
"""Parameters of the API document: path, query and header."""

import re
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from cyborg_lite.api import microversion
from cyborg_lite.api.call import call, field_selection
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, V2_5, Microversion
from cyborg_lite.api.openapi.routes import Route
from cyborg_lite.api.openapi.view_schemas import describe_versions
from cyborg_lite.api.schemas.arguments import IN_PATH, IN_QUERY
from cyborg_lite.model.queries import SORT_KEYS

Document = dict[str, Any]  # JSON

REQUEST_ID: Final = 'X-Openstack-Request-Id'

_IN_BRACES: Final = re.compile(r'{(\w+)}')
_TEXT: Final[Document] = {'schema': {'type': 'string'}}

_REQUEST_ID_HEADER: Final[Document] = {
    'in': 'header',
    'name': REQUEST_ID,
    'description': 'Id of the request in all logs, in the form req-UUID. Other '
    'values are ignored.',
    'schema': {'type': 'string', 'examples': [f'req-{UUID(int=0)}']},
}


_IF_MATCH_HEADER: Final[Document] = {
    'in': 'header',
    'name': call.IF_MATCH,
    'x-openstack': {'min-ver': str(V2_5)},
    'description': 'The generation of the object in double quotes, or *. The response '
    'is 409 if the object has another generation.',
    'schema': {'type': 'string', 'examples': ['"3"']},
}


def build_headers(version: Microversion | None) -> dict[str, Document]:
    """Return the header parameters of requests by name.

    :param version: microversion of the document; None: all of them
    """
    versions = (version,) if version else (*microversion.VERSIONS, 'latest')
    values = [f'{microversion.SERVICE_TYPE} {version}' for version in versions]
    # A request without the header has the minimum version.
    version_header = {
        'in': 'header',
        'name': microversion.HEADER,
        'required': version not in (None, microversion.MINIMUM),
        'description': 'The microversion of the request. The header may also contain '
        'versions of other services, separated by commas.',
        'schema': {'type': 'string', 'enum': values, 'default': values[0]},
    }
    return {microversion.HEADER: version_header, REQUEST_ID: _REQUEST_ID_HEADER}


def build_parameters(
    route: Route, newest: Microversion = microversion.MAXIMUM
) -> list[Document]:
    """Return the parameters of an operation.

    :param newest: newest microversion that the document describes
    """
    names = [REQUEST_ID] if route.path == '/' else [microversion.HEADER, REQUEST_ID]
    shared = [{'$ref': f'#/components/parameters/{name}'} for name in names]
    conditions = [_IF_MATCH_HEADER] if route.precondition else []
    return [
        *(
            {'in': 'path', 'name': name, 'required': True, **IN_PATH.get(name, _TEXT)}
            for name in _IN_BRACES.findall(route.path)
        ),
        *_list_query_parameters(route),
        *_list_field_parameters(route, newest),
        *conditions,
        *shared,
    ]


def _list_query_parameters(route: Route) -> Iterator[Document]:
    for name in (*route.arguments, *{**route.newer, **route.older}):
        extension = describe_versions(
            route.newer.get(name, MINIMUM), route.older.get(name, MAXIMUM)
        )
        description = IN_QUERY.get(name, _TEXT)
        if name in route.words:
            known_words = [str(word) for word in route.words[name]]
            words = {'type': 'string', 'enum': known_words}
            schema = {'type': 'array', 'items': words, 'minItems': 1}
            # Values separated by commas.
            extension |= {'style': 'form', 'explode': False}
            description = {**description, 'schema': schema}
        if name == 'sort_key':
            keys = list(SORT_KEYS[route.path.rpartition('/')[2]])
            if 'host' in route.older and 'hostname' in keys:
                keys.append('host')  # its name before 2.7
            description = {**description, 'schema': {'enum': keys}}
        yield {'in': 'query', 'name': name, **description, **extension}
    if route.filters:
        fields = {'type': 'string', 'enum': list(route.filters)}
        yield _build_filter('field', fields)
        yield _build_filter('value', {'type': 'string'})


def _list_field_parameters(route: Route, newest: Microversion) -> Iterator[Document]:
    if route.selectable:
        names = {
            name
            for view in route.selectable
            for name in field_selection.list_fields(view, newest)
        }
        items = {'type': 'string', 'enum': sorted(names)}
        yield {
            'in': 'query',
            'name': field_selection.ARGUMENT,
            'x-openstack': {'min-ver': str(V2_5)},
            'description': 'Fields that the response has. Repeat the argument, or '
            'separate names by commas. Links of objects are always present.',
            'schema': {'type': 'array', 'items': items, 'minItems': 1},
        }


def _build_filter(side: str, schema: Document) -> Document:
    return {
        'in': 'query',
        'name': f'filters.{side}',
        'description': 'The n-th field has the n-th value. filters[n].field and '
        'filters[n].value are accepted too.',
        'schema': {'type': 'array', 'items': schema},
    }
