# SPDX-License-Identifier: Apache-2.0
"""Single calls, for what stands below the controllers."""

import json
from typing import Any

import webob

from cyborg_lite.api import app
from cyborg_lite.api.call import Call
from cyborg_lite.api.frame import MICROVERSION
from cyborg_lite.api.microversion import MINIMUM, Microversion
from cyborg_lite.api.resource import Backing
from tests.fakes.conductor import FakeConductor
from tests.unit.api.conversation import ADMIN, HOST, Headers, configuration


def backing(conductor: FakeConductor | None = None, **api: Any) -> Backing:
    """:param api: options of that section"""
    return app._backing(configuration(**api), conductor or FakeConductor())


# Any: a body is JSON.
def call(
    path: str = '/v2/things',
    body: Any = None,
    *,
    version: Microversion = MINIMUM,
    headers: Headers = ADMIN,
    behind: Backing | None = None,
) -> Call:
    """As a controller gets it; ``body`` counts as read, and as fit for its schema."""
    made = Call(request(path, body, headers, version), behind or backing())
    made.body = body
    return made


def request(
    path: str, body: Any, headers: Headers, version: Microversion = MINIMUM
) -> webob.Request:
    """With the headers that a guard before the application has set."""
    made = webob.Request.blank(path, base_url=HOST)
    made.headers.update(headers)
    made.environ[MICROVERSION] = version
    if body is not None:
        made.method = 'POST'
        made.body = json.dumps(body).encode()
        made.content_type = 'application/json'
    return made
