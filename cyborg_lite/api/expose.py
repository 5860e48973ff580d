# SPDX-License-Identifier: Apache-2.0
"""What turns a method of a controller into one of HTTP.

From the outside in: the answer, the permission, the arguments and the body. A body is
not looked at before the caller may send one.

    @expose(views.ArqList, status=201)
    @requires('cyborg:arq:create')
    @accepts(body=schemas.NEW_ARQS)
    def post(self, call: Call) -> views.ArqList:
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
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.validation import Schema

Method = Callable[[Any, Call], Any]  # of a controller; the answer is a view or None
Decorator = Callable[[Method], Method]


def expose(
    view: type[Any] | None = None, status: int = HTTPStatus.OK
) -> Callable[[Method], Callable[[Resource], webob.Response]]:
    """Answer with what the method returns, shaped as ``view``; None: with no body."""

    def decorate(method: Method) -> Callable[[Resource], webob.Response]:
        @functools.wraps(method)
        def answer(self: Resource) -> webob.Response:
            shown = method(self, Call(pecan.request, self.backing))
            if view is None:
                return _without_body(status)
            return webob.Response(
                status=status,
                body=json.dumps(tojson(view, shown)).encode(),
                content_type='application/json',
            )

        del answer.__wrapped__  # else pecan would call it as if it took a Call
        answer.view, answer.status = view, status  # type: ignore[attr-defined]  # facts
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

        guarded.rule = rule  # type: ignore[attr-defined]  # for the tests of the rules
        return guarded

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

        fed.arguments = (*arguments, *newer)  # type: ignore[attr-defined]  # a fact
        fed.body = body  # type: ignore[attr-defined]  # likewise
        return fed

    return decorate
