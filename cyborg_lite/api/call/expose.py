# SPDX-License-Identifier: Apache-2.0
"""Decorators that turn a method of a controller into an HTTP method.

They run from top to bottom: response, authorization, microversion, input. The body is
parsed only after the caller is authorized to send one.

    @expose(status=201, errors=(404, 409))
    @requires('cyborg:arq:create')
    @accepts(body=bodies.CREATE_ARQS)
    def post(self, call: Call) -> views.ArqList:

The API document describes the method by the arguments of these decorators, see
``openapi``.
"""

import enum
import functools
import json
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from types import MappingProxyType, UnionType
from typing import Any, Final, get_args, get_origin

import pecan
import webob

from cyborg_lite.api.call import arguments as input_arguments
from cyborg_lite.api.call import field_selection
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.call.validation import Schema
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, V2_5, V2_7, Microversion
from cyborg_lite.api.views.encoding import encode
from cyborg_lite.api.views.view import View

REQUEST: Final = 'cyborg_lite.request'
"""Key of the request with its input in the WSGI environment that Pecan gets."""

_NO_WORDS: Final[Mapping[str, type[enum.StrEnum]]] = MappingProxyType({})
_NO_CHANGES: Final[Mapping[Microversion, Collection[str]]] = MappingProxyType({})

Method = Callable[[Any, Call], Any]  # of a controller; returns a view or None
Decorator = Callable[[Method], Method]
Check = Callable[[Call], None]
Exposed = Callable[[Resource, pecan.Request, pecan.Response], webob.Response]


# Any: the facts have various types.
def _add_check(check: Check, **facts: Any) -> Decorator:
    """Return a decorator that adds a check before those of the decorators below it.

    The facts describe the method in the API document.

    :raises TypeError: ``expose`` is below, so nothing would run the check
    """

    def decorate(method: Method) -> Method:
        if hasattr(method, 'exposed'):
            raise TypeError(method)
        checks = (check, *getattr(method, 'checks', ()))
        vars(method).update(facts, checks=checks)
        return method

    return decorate


def expose(
    *,
    status: int = HTTPStatus.OK,
    accepted: Collection[type[Any]] = (),
    errors: Collection[int] = (),
) -> Callable[[Method], Exposed]:
    """Convert the returned view, JSON object or text of one into a response.

    The annotation of the method names the views. None: the response has no body.

    :param accepted: classes that are returned with 202: the operation continues
    :param errors: status codes of errors beyond those that every method may return
    """

    def decorate(method: Method) -> Exposed:
        classes = _list_views(method.__annotations__['return'])
        views = tuple(view for view in classes if view not in accepted)

        checks: tuple[Check, ...] = getattr(method, 'checks', ())

        @functools.wraps(method)
        def respond(
            self: Resource, request: pecan.Request, _response: pecan.Response
        ) -> webob.Response:
            call = Call(request.environ[REQUEST], self.context)
            call.until = self.until
            for check in checks:
                check(call)
            view = method(self, call)
            code = HTTPStatus.ACCEPTED if type(view) in accepted else status
            response = webob.Response(status=code, content_type='application/json')
            if classes:
                content = encode(view, call) if isinstance(view, View) else view
                is_text = isinstance(content, bytes)
                response.body = content if is_text else json.dumps(content).encode()
            else:
                del response.content_type
            if call.location and call.microversion >= V2_7:
                response.location = call.links.build_url(call.location)
            return response

        del respond.__wrapped__  # Pecan would use the signature of the method
        vars(respond).update(
            views=views, status=status, accepted=accepted, errors=errors
        )
        exposed: Exposed = pecan.expose(content_type='application/json')(respond)
        return exposed

    return decorate


# Any: None, a class, a generic alias, or a union of classes.
def _list_views(annotation: Any) -> tuple[type[Any], ...]:
    """Return the classes that a method may return."""
    if annotation is None:
        return ()
    if isinstance(annotation, UnionType):
        return get_args(annotation)
    return (get_origin(annotation) or annotation,)


def requires(rule: str, service_for: str | None = None) -> Decorator:
    """Check a policy rule and, with ``service_for``, require a service token.

    Then check that the microversion has the path, see ``Resource.until``.

    :param service_for: the action that needs a service token, as the subject of a
        sentence
    """

    def authorize(call: Call) -> None:
        call.authorize(rule)
        if service_for is not None:
            call.require_service(service_for)
        call.refuse_after(call.until)

    return _add_check(authorize, rule=rule, service_for=service_for)


def since(version: Microversion, *, hidden: bool = False) -> Decorator:
    """Refuse older microversions with 406.

    :param hidden: True: older microversions answer 405, because the path is one of
        OpenStack Cyborg, which does not have the method. See ``Resource.find_method``
    """

    def check_version(call: Call) -> None:
        call.require_version(version, call.operation)

    return _add_check(check_version, since=version, hidden=hidden)


def until(version: Microversion) -> Decorator:
    """Refuse microversions after ``version`` with 406: another call does the same."""

    def check_version(call: Call) -> None:
        call.refuse_after(version)

    return _add_check(check_version, until=version)


def accepts(  # noqa: PLR0913  # the facts of a method, most of them by name
    arguments: Collection[str] = (),
    filters: Collection[str] = (),
    body: Schema | None = None,
    *,
    newer: Mapping[Microversion, Collection[str]] = _NO_CHANGES,
    older: Mapping[Microversion, Collection[str]] = _NO_CHANGES,
    words: Mapping[str, type[enum.StrEnum]] = _NO_WORDS,
    selectable: tuple[type[View], ...] = (),
    precondition: bool = False,
) -> Decorator:
    """Parse the query arguments and the body; refuse arguments that are not listed.

    :param filters: the fields that ``filters`` may name
    :param newer: further arguments, by the microversion that added them
    :param older: further arguments, by the last microversion that has them
    :param words: the known words of arguments that are lists of them since 2.5
    :param selectable: views of the object whose fields ``fields`` may name since 2.5
    :param precondition: True: since 2.5 the header ``If-Match`` is evaluated
    """
    added, removed = _invert(newer), _invert(older)

    def parse_input(call: Call) -> None:
        version = call.microversion
        extra = [
            name
            for name in added | removed
            if added.get(name, MINIMUM) <= version <= removed.get(name, MAXIMUM)
        ]
        if selectable and version >= V2_5:
            extra.append(field_selection.ARGUMENT)
        call.parse_arguments((*arguments, *extra), filters)
        vocabulary = words if version >= V2_5 else {}
        call.words = input_arguments.parse_words(call.arguments, vocabulary)
        _select_fields(call, selectable)
        call.parse_precondition(supported=precondition)
        if body is not None:
            call.parse_body(body)

    return _add_check(
        parse_input,
        arguments=arguments,
        newer=added,
        older=removed,
        words=words,
        selectable=selectable,
        filters=filters,
        body=body,
        precondition=precondition,
    )


def _select_fields(call: Call, views: tuple[type[View], ...]) -> None:
    """Store the fields of ``views`` that the client requests, if it names any."""
    text = call.arguments.get(field_selection.ARGUMENT)
    if text is not None:
        fields = field_selection.parse_fields(text, views, call.microversion)
        call.fields, call.selectable = fields, views


def _invert(
    names: Mapping[Microversion, Collection[str]],
) -> dict[str, Microversion]:
    """Return the microversion of each name."""
    return {name: version for version, group in names.items() for name in group}
