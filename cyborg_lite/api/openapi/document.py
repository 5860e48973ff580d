# SPDX-License-Identifier: Apache-2.0
"""The API document: OpenAPI 3.1, made of what the code itself goes by."""

from typing import Any, Final

from cyborg_lite.api.microversion import MAXIMUM, Microversion
from cyborg_lite.api.openapi import operations, parameters, responses
from cyborg_lite.api.openapi.answers import Answers
from cyborg_lite.api.openapi.links import links
from cyborg_lite.api.openapi.routes import routes
from cyborg_lite.api.resource import Resource

Document = dict[str, Any]  # JSON

_DESCRIPTION: Final = (
    'Devices, what of them can be scheduled, and the requests by which servers get '
    'them. What is not there from the first microversion on bears as min-ver the one '
    'that brought it. HEAD is answered where GET is. A slash at the end of a path '
    'makes no difference, and collections are also found without /v2.'
)


def build(root: Resource, version: Microversion | None = None) -> Document:
    """All but ``servers``, which only a request knows.

    :param root: where the way of every request begins
    :param version: that the client speaks; None: any
    """
    every = list(routes(root, version or MAXIMUM))
    answers = Answers(version)
    paths: dict[str, Document] = {}
    for route in every:
        described = operations.operation(route, answers)
        found = links(route, every)
        if found:
            described['responses'][str(route.status)]['links'] = found
        paths.setdefault(route.path, {})[route.method.lower()] = described
    shared = responses.components(every)
    return {
        'openapi': '3.1.0',
        'info': {
            'title': 'Accelerator API',
            'description': _DESCRIPTION,
            'version': str(version or MAXIMUM),
        },
        'paths': paths,
        'components': {
            **shared,
            'schemas': {**answers.components, **shared['schemas']},
            'parameters': parameters.headers(version),
            'securitySchemes': operations.security_schemes(),
        },
    }
