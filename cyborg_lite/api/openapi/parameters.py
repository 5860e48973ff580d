# SPDX-License-Identifier: Apache-2.0
"""Parameters of the API document: in the path, in the query, in the header."""

import re
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from cyborg_lite.api import microversion
from cyborg_lite.api.microversion import V2_4, Microversion
from cyborg_lite.api.openapi.routes import Route
from cyborg_lite.api.schemas.arguments import IN_PATH, IN_QUERY

Document = dict[str, Any]  # JSON

REQUEST_ID: Final = 'X-Openstack-Request-Id'
_SINCE_NEWER: Final = {'x-openstack': {'min-ver': str(V2_4)}}

_IN_BRACES: Final = re.compile(r'{(\w+)}')
_UNDESCRIBED: Final[Document] = {'schema': {'type': 'string'}}

_REQUEST_ID_HEADER: Final[Document] = {
    'in': 'header',
    'name': REQUEST_ID,
    'description': 'By which the logs of all services know the request, of the form '
    'req-UUID; any other is ignored.',
    'schema': {'type': 'string', 'examples': [f'req-{UUID(int=0)}']},
}


def headers(version: Microversion | None) -> dict[str, Document]:
    """Those that a request may have.

    :param version: that the client speaks; None: any
    """
    every = (version,) if version else (*microversion.VERSIONS, 'latest')
    words = [f'{microversion.SERVICE_TYPE} {one}' for one in every]
    # Who says nothing speaks the oldest one.
    spoken = {
        'in': 'header',
        'name': microversion.HEADER,
        'required': version not in (None, microversion.MINIMUM),
        'description': 'The microversion that the client speaks. Versions of other '
        'services may stand beside it, parted by commas.',
        'schema': {'type': 'string', 'enum': words, 'default': words[0]},
    }
    return {microversion.HEADER: spoken, REQUEST_ID: _REQUEST_ID_HEADER}


def parameters(route: Route) -> list[Document]:
    """Those of one operation."""
    names = [REQUEST_ID] if route.path == '/' else [microversion.HEADER, REQUEST_ID]
    shared = [{'$ref': f'#/components/parameters/{name}'} for name in names]
    return [*_in_path(route.path), *_in_query(route), *shared]


def path_names(path: str) -> list[str]:
    """The names of the parameters in a path."""
    return _IN_BRACES.findall(path)


def _in_path(path: str) -> Iterator[Document]:
    for name in path_names(path):
        said = IN_PATH.get(name, _UNDESCRIBED)
        yield {'in': 'path', 'name': name, 'required': True, **said}


def _in_query(route: Route) -> Iterator[Document]:
    for name in (*route.arguments, *route.newer):
        more = _SINCE_NEWER if name in route.newer else {}
        said = IN_QUERY.get(name, _UNDESCRIBED)
        yield {'in': 'query', 'name': name, **more, **said}
    if route.filters:
        fields = {'type': 'string', 'enum': list(route.filters)}
        yield _filter('field', fields)
        yield _filter('value', {'type': 'string'})


def _filter(side: str, schema: Document) -> Document:
    return {
        'in': 'query',
        'name': f'filters.{side}',
        'description': 'The n-th field has the n-th value; filters[n].field and '
        'filters[n].value are understood, too.',
        'schema': {'type': 'array', 'items': schema},
    }
