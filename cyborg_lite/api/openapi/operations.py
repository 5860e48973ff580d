# SPDX-License-Identifier: Apache-2.0
"""One method of one path as OpenAPI describes it."""

import re
from typing import Any, Final

from cyborg_lite.api.openapi.answers import Answers
from cyborg_lite.api.openapi.parameters import parameters
from cyborg_lite.api.openapi.responses import JSON, responses
from cyborg_lite.api.openapi.routes import Route

Document = dict[str, Any]  # JSON

USER: Final = 'user'
SERVICE: Final = 'service'


def operation(route: Route, answers: Answers) -> Document:
    """:param answers: gets what the operation shows"""
    extension = {'min-ver': str(route.since)}
    if route.rule:
        extension['policy'] = route.rule
    described = {
        'operationId': identity(route),
        'summary': route.summary,
        'tags': [route.path.split('/')[2] if route.rule else 'versions'],
        'security': _security(route),
        'parameters': parameters(route),
        'responses': responses(route, answers),
        'x-openstack': extension,
    }
    if route.body:
        described['requestBody'] = {
            'required': not route.body.optional,
            'content': {JSON: {'schema': route.body.document}},
        }
    return described


def identity(route: Route) -> str:
    """A name for the operation, unique in the document."""
    words = re.findall(r'[a-z0-9]+', route.path.lower())
    return '_'.join([route.method.lower(), *words])


def _security(route: Route) -> list[Document]:
    """Any one of these is enough."""
    if route.rule is None:
        return []
    both: Document = {USER: [], SERVICE: []}
    return [both] if route.service_for else [{USER: []}, both]


def security_schemes() -> Document:
    """The tokens that operations ask for."""
    return {
        USER: _token('X-Auth-Token', 'Of the user who asks.'),
        SERVICE: _token('X-Service-Token', 'Of the service that asks for the user.'),
    }


def _token(header: str, description: str) -> Document:
    return {
        'type': 'apiKey',
        'in': 'header',
        'name': header,
        'description': description,
    }
