# SPDX-License-Identifier: Apache-2.0
"""Middleware for the parts that all responses share.

The router raises errors, and the libraries of other layers return pages of their own.
This layer turns both into the error document. It also negotiates the microversion, so
that every response has the version headers.
"""

import re
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

import webob
from oslo_log import log
from oslo_middleware import request_id

from cyborg_lite.api import errors, microversion
from cyborg_lite.api.call.links import Links
from cyborg_lite.errors.base import CyborgError, InvalidInput, NotFound
from cyborg_lite.errors.requests import BodyTooLarge, NotAcceptable
from cyborg_lite.model.text import format_value
from cyborg_lite.rpc.context import RequestContext

LOG = log.getLogger(__name__)

MICROVERSION: Final = 'cyborg_lite.microversion'
"""Key of the negotiated microversion in the WSGI environment."""

_ROOT: Final = ('', '/')
_VERSION_HEADER: Final = 'HTTP_OPENSTACK_API_VERSION'
_JSON: Final = 'application/json'

# A name, an IPv4 address or an IPv6 address, with an optional port (RFC 9110, section
# 7.2). Links in responses contain it.
_HOST: Final = re.compile(
    r'([A-Za-z0-9._~-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?'
)

Observe = Callable[[str, str, int, float], None]
"""Called with method, path, status and seconds of an answer."""

PREFIX: Final = '/accelerator'


class ResponseMiddleware:
    """Wraps the application and the middleware that may refuse a request."""

    def __init__(
        self,
        application: Any,
        body_limit: int,
        observe: Observe | None,
        public_endpoint: str | None = None,
    ) -> None:
        self._application = application  # WSGI application
        self._public_endpoint = public_endpoint  # ``[api] public_endpoint``
        self._body_limit = body_limit  # bytes; the application refuses larger bodies
        # Called for each answer; None: nothing observes the requests.
        self._observe = observe

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        started_at = time.monotonic()
        # The new context becomes the current one of the thread. Otherwise log lines
        # before authentication have the id of the previous request.
        RequestContext(
            request_id=environ[request_id.ENV_REQUEST_ID],
            global_request_id=environ.get(request_id.GLOBAL_REQ_ID),
        )
        response = self._call_application(environ)
        _add_version_headers(environ, response)
        _add_cache_header(environ, response)
        seconds = time.monotonic() - started_at
        method, path = environ['REQUEST_METHOD'], environ.get('PATH_INFO', '')
        if self._observe is not None:
            self._observe(method, path, response.status_int, seconds)
        LOG.info(
            '%s %s: %d in %d ms',
            format_value(method),
            format_value(environ.get('SCRIPT_NAME', '') + path),
            response.status_int,
            seconds * 1000,
        )
        body: Iterable[bytes] = response(environ, start_response)
        return body

    def _call_application(self, environ: dict[str, Any]) -> webob.Response:
        identifier = environ[request_id.ENV_REQUEST_ID]
        try:
            _check_protocol(environ)
            response = webob.Request(environ).get_response(self._application)
            if response.status_int == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                raise BodyTooLarge(limit=self._body_limit)
        except CyborgError as error:
            if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                LOG.error('%s', error.full_text)
            return errors.build_response(error, identifier, self._find_help(environ))
        except Exception:
            # The client gets only the request id; the log gets the traceback.
            LOG.exception('Request failed with an unexpected error')
            return errors.build_response(
                CyborgError(), identifier, self._find_help(environ)
            )
        help_url = self._find_help(environ)
        is_unauthorized = response.status_int == HTTPStatus.UNAUTHORIZED
        # Older clients expect the error of the Keystone middleware as it is.
        is_replaced = response.content_type != _JSON or (help_url and is_unauthorized)
        if response.status_int >= HTTPStatus.BAD_REQUEST and is_replaced:
            return errors.replace_library_error(response, identifier, help_url)
        return response

    def _find_help(self, environ: dict[str, Any]) -> str | None:
        """Return the URL that explains the error codes; None before 2.5."""
        version = environ.get(MICROVERSION, microversion.MINIMUM)
        if version < microversion.V2_5:
            return None
        links = Links.from_environ(environ, self._public_endpoint)
        return links.build_url('v2/openapi.json')


def _check_protocol(environ: dict[str, Any]) -> None:
    """Negotiate the microversion, and refuse what the libraries cannot handle.

    :raises InvalidInput: the host is missing, or neither a name nor an address
    :raises NotAcceptable: the version is not supported, or JSON is not accepted
    :raises NotFound: the path is not UTF-8
    """
    if environ.get('PATH_INFO', '') not in _ROOT:
        header = environ.get(_VERSION_HEADER)
        environ[MICROVERSION] = microversion.negotiate(header)
    host = environ.get('HTTP_HOST')
    is_missing = host is None and environ.get('SERVER_PROTOCOL') == 'HTTP/1.1'
    if is_missing or (host and not _HOST.fullmatch(host)):
        environ.pop('HTTP_HOST', None)  # the error must not link to it
        raise InvalidInput(reason='The Host header is not a valid host[:port].')
    try:
        environ.get('PATH_INFO', '').encode('latin-1').decode()
    except UnicodeDecodeError:
        raise NotFound(what='Resource', name='with this path') from None
    if environ.get('HTTP_ACCEPT') and not _accepts_json(webob.Request(environ).accept):
        raise NotAcceptable(reason=f'The Accept header excludes {_JSON}.')


def _accepts_json(accept: Any) -> bool:
    """Check whether an Accept header allows JSON.

    :param accept: not empty, parsed by WebOb, which is untyped
    """
    # JSON has no parameters, not even a charset (RFC 8259, section 11).
    media_types = [kind for kind, *_ in accept.parsed or ()]
    with_parameters = [
        kind for kind in media_types if kind.lower().startswith(f'{_JSON};')
    ]
    return bool(accept.acceptable_offers([_JSON, *with_parameters]))


def _add_cache_header(environ: dict[str, Any], response: webob.Response) -> None:
    """Add ``Cache-Control`` to a successful read.

    The response depends on the token, and the next one may differ. A client may store
    the response, but must ask the service before it uses the response again.
    """
    is_read = environ['REQUEST_METHOD'] in ('GET', 'HEAD')
    version = environ.get(MICROVERSION, microversion.MINIMUM)
    is_successful = response.status_int == HTTPStatus.OK
    if is_read and is_successful and version >= microversion.V2_5:
        response.headers['Cache-Control'] = 'private, no-cache'


def _add_version_headers(environ: dict[str, Any], response: webob.Response) -> None:
    """Add the version headers, also if the requested version is not supported."""
    if environ.get('PATH_INFO', '') in _ROOT:
        return
    microversion.add_version_headers(response)
    version = environ.get(MICROVERSION)
    if version is not None:
        header = f'{microversion.SERVICE_TYPE} {version}'
        response.headers[microversion.HEADER] = header


class PrefixMiddleware:
    """Serves ``/accelerator/v2/...`` in the same way as ``/v2/...``.

    A web server that mounts the API at the prefix strips it from the path. In that case
    a second prefix is not stripped.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get('PATH_INFO', '')
        script_name = environ.get('SCRIPT_NAME', '')
        has_prefix = path == PREFIX or path.startswith(f'{PREFIX}/')
        if has_prefix and not script_name.endswith(PREFIX):
            environ['SCRIPT_NAME'] = script_name + PREFIX
            environ['PATH_INFO'] = path.removeprefix(PREFIX)
        body: Iterable[bytes] = self._application(environ, start_response)
        return body
