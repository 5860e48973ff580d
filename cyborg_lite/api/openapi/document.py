# SPDX-License-Identifier: Apache-2.0
"""The API document (OpenAPI 3.1), built from the controllers and policy rules."""

import functools
import json
from typing import Any, Final

from cyborg_lite.api.errors import CODES
from cyborg_lite.api.microversion import MAXIMUM, Microversion
from cyborg_lite.api.openapi import operations, parameters, responses
from cyborg_lite.api.openapi.routes import list_routes
from cyborg_lite.api.openapi.view_schemas import ViewSchemas
from cyborg_lite.api.schemas.errors import describe_codes

Document = dict[str, Any]  # JSON

_DESCRIPTION: Final = (
    'Accelerator devices, their deployables, device profiles, and the accelerator '
    'requests (ARQs) of instances. min-ver is the microversion that added an element, '
    'and max-ver the last one that has it; without them, all microversions have it. '
    'HEAD is supported wherever GET is. A slash at the end of a path makes no '
    'difference. Collections are also served without /v2.'
)


def encode_document(version: Microversion | None, url: str) -> bytes:
    """Return the text of the document.

    A client without a token may ask for it. The text of 240 kB takes 4 ms of CPU time,
    so only the address is added for each request.

    :param url: base URL of the service, as the client sees it
    """
    servers = json.dumps({'servers': [{'url': url}]}).encode()
    return b'%s, %s' % (_encode_constant_part(version), servers[1:])


@functools.cache
def _encode_constant_part(version: Microversion | None) -> bytes:
    """Return the text without the bracket at its end."""
    return json.dumps(build_document(version)).encode()[:-1]


@functools.cache
def build_document(version: Microversion | None = None) -> Document:
    """Return the document without ``servers``, which depend on the request.

    The document is built once per version, so it must not be changed.

    :param version: microversion to describe; None: all of them
    """
    all_routes = list(list_routes(version))
    schemas = ViewSchemas(version)
    paths: dict[str, Document] = {}
    tags: dict[str, None] = {}  # in the order of the operations
    for route in all_routes:
        operation = operations.build_operation(route, schemas)
        tags |= dict.fromkeys(operation['tags'])
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    shared = responses.build_components(all_routes, version)
    return {
        'openapi': '3.1.0',
        'info': {
            'title': 'Accelerator API',
            'description': _DESCRIPTION,
            'version': str(version or MAXIMUM),
        },
        'tags': [{'name': tag} for tag in tags],
        'paths': paths,
        CODES: describe_codes(),
        'components': {
            **shared,
            'schemas': {**schemas.components, **shared['schemas']},
            'parameters': parameters.build_headers(version),
            'securitySchemes': operations.build_security_schemes(),
        },
    }
