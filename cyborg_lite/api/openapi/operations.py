# SPDX-License-Identifier: Apache-2.0
"""Operations of the API document: one HTTP method of one path each."""

from typing import Any, Final

from cyborg_lite.api.call.validation import JSON_PATCH, Schema
from cyborg_lite.api.microversion import V2_5
from cyborg_lite.api.openapi import examples
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
    operation: Document = {
        'operationId': route.operation_id,
        'summary': route.summary,
        'description': route.description,
        'tags': [route.path.split('/')[2] if route.rule else 'versions'],
        'security': _build_security(route),
        'parameters': build_parameters(route, schemas.newest),
        'responses': build_responses(route, schemas),
        'x-openstack': extension,
    }
    if route.until:
        operation['deprecated'] = True
        extension['max-ver'] = str(route.until)
    if route.body:
        schema = schemas.add_body(route.operation_id, route.body.document)
        content = {'schema': schema, **_build_example(route)}
        operation['requestBody'] = {
            'required': not route.body.optional,
            'content': dict.fromkeys(_list_media_types(route.body, schemas), content),
        }
    return operation


def _build_example(route: Route) -> Document:
    """Return the recorded body; without one the schema has examples."""
    sample = examples.load_sample(route.operation_id)
    if sample is None or sample.request_body is None:
        return {}
    return {'example': sample.request_body}


def _list_media_types(body: Schema, schemas: ViewSchemas) -> list[str]:
    accepts_patch = body.is_patch and schemas.newest >= V2_5
    return [JSON, JSON_PATCH] if accepts_patch else [JSON]


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
