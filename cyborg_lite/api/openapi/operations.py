# SPDX-License-Identifier: Apache-2.0
"""Operations of the API document: one HTTP method of one path each."""

from typing import Any, Final

from cyborg_lite.api.call.patches import json_patch
from cyborg_lite.api.call.validation import JSON_PATCH
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
    both_tokens: Document = {USER: [], SERVICE: []}
    security = [both_tokens] if route.service_for else [{USER: []}, both_tokens]
    operation: Document = {
        'operationId': route.operation_id,
        'summary': route.summary,
        'description': route.description,
        'tags': [route.path.split('/')[2] if route.rule else 'versions'],
        'security': security if route.rule else [],
        'parameters': build_parameters(route, schemas.newest),
        'responses': build_responses(route, schemas),
        'x-openstack': extension,
    }
    if route.until:
        operation['deprecated'] = True
        extension['max-ver'] = str(route.until)
    if route.body:
        # Generated clients cannot send a list that has two media types.
        is_patch = route.body.is_patch and schemas.oldest >= V2_5
        body = route.body.document
        if is_patch:
            body = {**json_patch.SCHEMA.document, 'examples': body['examples']}
        content: Document = {'schema': schemas.add_body(route.operation_id, body)}
        sample = examples.load_sample(route.operation_id)
        # Without a recorded body the schema has examples.
        if sample is not None and sample.request_body is not None:
            content['example'] = sample.request_body
        operation['requestBody'] = {
            'required': not route.body.optional,
            'content': {JSON_PATCH if is_patch else JSON: content},
        }
    return operation


def build_security_schemes() -> Document:
    """Return the tokens that operations require."""
    return {
        USER: _build_scheme('X-Auth-Token', 'Token of the user.'),
        SERVICE: _build_scheme(
            'X-Service-Token', 'Token of the service that calls on behalf of the user.'
        ),
    }


def _build_scheme(header: str, text: str) -> Document:
    return {'type': 'apiKey', 'in': 'header', 'name': header, 'description': text}
