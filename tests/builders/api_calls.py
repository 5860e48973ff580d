# SPDX-License-Identifier: Apache-2.0
"""Calls of the API and rendered views, without an application."""

import json
from typing import Any
from unittest import mock

import webob

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.links import Links
from cyborg_lite.api.call.resource import ApiContext
from cyborg_lite.api.microversion import MINIMUM, Microversion
from cyborg_lite.api.middleware import MICROVERSION
from cyborg_lite.api.views.encoding import encode
from cyborg_lite.api.views.view import View
from cyborg_lite.rpc.context import RequestContext


def build_call(version: Microversion = MINIMUM, *, is_admin: bool = False) -> Call:
    """Return a call of a microversion."""
    request = webob.Request.blank('/v2', environ={MICROVERSION: version})
    call = Call(request, mock.create_autospec(ApiContext, instance=True))
    call.caller = RequestContext(is_admin=is_admin)
    call.links = Links('http://api')
    return call


# Any: parsed JSON.
def render(
    view: View, version: Microversion = MINIMUM, *, is_admin: bool = False
) -> Any:
    """Return the JSON of a view, as a response of a microversion contains it."""
    return json.loads(json.dumps(encode(view, build_call(version, is_admin=is_admin))))
