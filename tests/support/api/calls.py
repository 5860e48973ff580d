# SPDX-License-Identifier: Apache-2.0
"""Builders of single calls, for tests of the code below the controllers."""

import json
import re
from typing import Any
from uuid import uuid4

import webob

from cyborg_lite.api import app
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.resource import ApiContext
from cyborg_lite.api.microversion import MINIMUM, Microversion
from cyborg_lite.api.middleware import MICROVERSION
from cyborg_lite.api.openapi.routes import Route
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import ADMIN, HOST, Headers, build_configuration


def build_api_context(
    conductor: LocalConductor | None = None, **api: Any
) -> ApiContext:
    """Return the context of the controllers.

    :param api: options of the section ``[api]``
    """
    client = (conductor or LocalConductor()).client
    return app._build_context(build_configuration(**api), client)


# Any: a body is JSON.
def build_call(
    path: str = '/v2/things',
    body: Any = None,
    *,
    version: Microversion = MINIMUM,
    headers: Headers = ADMIN,
    context: ApiContext | None = None,
) -> Call:
    """Return a call as a controller gets it, with a parsed and valid body."""
    request = build_request(path, body, headers, version)
    call = Call(request, context or build_api_context())
    call.body = body
    return call


def build_path(route: Route, identifier: str | None = None) -> str:
    """Return the path of an operation below ``/v2``.

    :param identifier: value of each path parameter; None: a random UUID
    """
    value = identifier or str(uuid4())
    return re.sub('{[a-z_]+}', value, route.path.removeprefix('/v2'))


def build_request(
    path: str, body: Any, headers: Headers, version: Microversion = MINIMUM
) -> webob.Request:
    """Return a request with the headers that the authentication middleware sets."""
    request = webob.Request.blank(path, base_url=HOST)
    request.headers.update(headers)
    request.environ[MICROVERSION] = version
    if body is not None:
        request.method = 'POST'
        request.body = json.dumps(body).encode()
        request.content_type = 'application/json'
    return request
