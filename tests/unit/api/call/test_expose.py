# SPDX-License-Identifier: Apache-2.0
"""Tests of the decorators of controller methods, and of their order."""

from types import SimpleNamespace
from typing import Any, Final

import pecan
import pytest

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import REQUEST, accepts, expose, requires, since
from cyborg_lite.api.call.validation import Schema
from cyborg_lite.api.microversion import MAXIMUM, V2_3, V2_4
from cyborg_lite.errors.base import CyborgError, Forbidden, InvalidInput
from cyborg_lite.errors.requests import NotAcceptable
from tests.support.api.calls import build_api_context, build_call, build_request
from tests.support.api.conversation import ADMIN, MEMBER

RULE: Final = 'cyborg:device_profile:create'
LIST: Final = Schema({'type': 'array'})


@requires(RULE)
@since(V2_4)
@accepts(arguments=('limit',), newer={V2_4: ('state',)}, body=LIST)
def make(_controller: Any, call: Call) -> Any:
    return call.arguments, call.body


@accepts(arguments=('limit',), newer={V2_4: ('state',)})
def show(_controller: Any, call: Call) -> dict[str, str]:
    return call.arguments


def build_post(path: str, body: Any) -> Call:
    return Call(build_request(path, body, ADMIN, V2_4), build_api_context())


def respond(method: Any, call: Call) -> Any:
    """Return the JSON that the exposed method answers to the request of the call."""
    request: Any = SimpleNamespace(environ={REQUEST: call._request})
    controller: Any = SimpleNamespace(context=call._context, until=MAXIMUM)
    return expose()(method)(controller, request, pecan.Response()).json


@pytest.mark.parametrize(
    ('call', 'refusal'),
    [
        (build_call('/x?y=1', headers=MEMBER, version=V2_3), Forbidden),
        (build_call('/x?y=1', version=V2_3), NotAcceptable),
        (build_post('/x?y=1', {}), InvalidInput),
        (build_post('/x', {}), InvalidInput),
    ],
    ids=['the rule', 'the version', 'the arguments', 'the body'],
)
def test_decorators_report_first_error(call: Call, refusal: type[CyborgError]) -> None:
    """The calls also contain all the later errors."""
    with pytest.raises(refusal):
        respond(make, call)


def test_check_outside_expose_is_refused() -> None:
    exposed: Any = expose()(show)
    with pytest.raises(TypeError):
        requires(RULE)(exposed)
