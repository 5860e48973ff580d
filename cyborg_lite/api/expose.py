# SPDX-License-Identifier: Apache-2.0
"""What turns a method of a controller into one of HTTP.

From the outside in: the answer, the permission, the arguments and the body. A body is
not looked at before the caller may send one.

    @expose(views.ArqList, status=201, errors=(404, 409))
    @requires('cyborg:arq:create')
    @accepts(body=schemas.NEW_ARQS)
    def post(self, call: Call) -> views.ArqList:

What stands there is what the API document says of the method, see ``openapi``.
"""

import functools
import json
from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Any

import pecan
import webob
from wsme.rest.json import tojson

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_4, Microversion
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.validation import Schema

Method = Callable[[Any, Call], Any]  # of a controller; the answer is a view or None
Decorator = Callable[[Method], Method]


def expose(
    *views: type[Any],
    status: int = HTTPStatus.OK,
    accepted: type[Any] | None = None,
    errors: Collection[int] = (),
) -> Callable[[Method], Callable[[Resource], webob.Response]]:
    """Answer with what the method returns, one of ``views``; of none: with no body.

    :param accepted: the view of what goes on afterwards, answered with 202
    :param errors: what it may answer beyond that which every such method may
    """

    def decorate(method: Method) -> Callable[[Resource], webob.Response]:
        @functools.wraps(method)
        def answer(self: Resource) -> webob.Response:
            shown = method(self, Call(pecan.request, self.backing))
            if not views:
                return _without_body(status)
            return webob.Response(
                status=HTTPStatus.ACCEPTED if type(shown) is accepted else status,
                body=json.dumps(tojson(type(shown), shown)).encode(),
                content_type='application/json',
            )

        del answer.__wrapped__  # else pecan would call it as if it took a Call
        answer.views = views  # type: ignore[attr-defined]  # a fact
        answer.status = status  # type: ignore[attr-defined]  # likewise
        answer.accepted = accepted  # type: ignore[attr-defined]
        answer.errors = errors  # type: ignore[attr-defined]
        exposed: Callable[[Resource], webob.Response] = pecan.expose(
            content_type='application/json'
        )(answer)
        return exposed

    return decorate


def _without_body(status: int) -> webob.Response:
    response = webob.Response(status=status)
    del response.content_type
    return response


def requires(rule: str, service_for: str | None = None) -> Decorator:
    """Let in whom the rule allows, and with ``service_for`` only services.

    :param service_for: what needs a service token, as the subject of a sentence
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def guarded(self: Any, call: Call) -> Any:
            call.authorise(rule)
            if service_for is not None:
                call.require_service(service_for)
            return method(self, call)

        guarded.rule = rule  # type: ignore[attr-defined]  # a fact
        guarded.service_for = service_for  # type: ignore[attr-defined]
        return guarded

    return decorate


def since(version: Microversion, feature: str) -> Decorator:
    """Tell clients of older microversions what they lack; ``feature`` is a noun."""

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def known(self: Any, call: Call) -> Any:
            call.require_version(version, feature)
            return method(self, call)

        known.since = version  # type: ignore[attr-defined]  # a fact
        return known

    return decorate


def accepts(
    arguments: Collection[str] = (),
    filters: Collection[str] = (),
    body: Schema | None = None,
    *,
    newer: Collection[str] = (),
) -> Decorator:
    """Read what the request brings; what is not named here is refused.

    :param filters: the fields that ``filters`` may name
    :param newer: arguments that are known from microversion 2.4 on
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def fed(self: Any, call: Call) -> Any:
            more = newer if call.microversion >= V2_4 else ()
            call.read_arguments((*arguments, *more), filters)
            if body is not None:
                call.read_body(body)
            return method(self, call)

        fed.arguments = arguments  # type: ignore[attr-defined]  # a fact
        fed.newer = newer  # type: ignore[attr-defined]  # likewise
        fed.filters = filters  # type: ignore[attr-defined]
        fed.body = body  # type: ignore[attr-defined]
        return fed

    return decorate
