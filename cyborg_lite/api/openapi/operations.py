# SPDX-License-Identifier: Apache-2.0
"""Operations of the API document: one HTTP method of one path each."""

import re
from typing import Any, Final

from cyborg_lite.api.openapi.parameters import build_parameters
from cyborg_lite.api.openapi.responses import JSON, build_responses
from cyborg_lite.api.openapi.routes import Route
from cyborg_lite.api.openapi.view_schemas import ViewSchemas

Document = dict[str, Any]  # JSON

USER: Final = 'user'
SERVICE: Final = 'service'


def build_operation(route: Route, schemas: ViewSchemas) -> Document:
    """Return the description of an operation.

    :param schemas: collects the schemas of the views
    """
    extension = {'min-ver': str(route.since)}
    if route.rule:
        extension['policy'] = route.rule
    operation = {
        'operationId': build_operation_id(route),
        'summary': route.summary,
        'tags': [route.path.split('/')[2] if route.rule else 'versions'],
        'security': _build_security(route),
        'parameters': build_parameters(route),
        'responses': build_responses(route, schemas),
        'x-openstack': extension,
    }
    if route.body:
        operation['requestBody'] = {
            'required': not route.body.optional,
            'content': {JSON: {'schema': route.body.document}},
        }
    return operation


def build_operation_id(route: Route) -> str:
    """Return the id of the operation, which is unique in the document."""
    words = re.findall(r'[a-z0-9]+', route.path.lower())
    return '_'.join([route.method.lower(), *words])


def _build_security(route: Route) -> list[Document]:
    """Return the alternative combinations of tokens."""
    if route.rule is None:
        return []
    both_tokens: Document = {USER: [], SERVICE: []}
    return [both_tokens] if route.service_for else [{USER: []}, both_tokens]


def build_security_schemes() -> Document:
    """Return the tokens that operations require."""
    return {
        USER: _build_scheme('X-Auth-Token', 'Token of the user.'),
        SERVICE: _build_scheme(
            'X-Service-Token', 'Token of the service that calls on behalf of the user.'
        ),
    }


def _build_scheme(header: str, description: str) -> Document:
    return {
        'type': 'apiKey',
        'in': 'header',
        'name': header,
        'description': description,
    }
