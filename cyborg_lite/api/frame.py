# SPDX-License-Identifier: Apache-2.0
"""What all answers have in common, whoever gives them.

The innermost parts raise errors, the libraries between answer with pages of their own;
here both become the one error document. The microversion is agreed on here, so that
its headers stand on every answer.
"""

import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

import webob
from oslo_log import log
from oslo_middleware import request_id

from cyborg_lite.api import errors, microversion
from cyborg_lite.exceptions import (
    BodyTooLarge,
    CyborgError,
    NotAcceptable,
    NotFound,
)
from cyborg_lite.model.text import shown
from cyborg_lite.rpc.context import RequestContext

LOG = log.getLogger(__name__)

MICROVERSION: Final = 'cyborg_lite.microversion'
"""The key of the environment under which the version agreed on is found."""

_ROOT: Final = ('', '/')
_VERSION_HEADER: Final = 'HTTP_OPENSTACK_API_VERSION'
_JSON: Final = 'application/json'


class Frame:
    """Around the application, and around the middleware that may refuse a request."""

    def __init__(self, application: Any, body_limit: int) -> None:
        """:param application: any WSGI application
        :param body_limit: bytes; what lies below refuses larger bodies
        """
        self._application = application
        self._body_limit = body_limit

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        began = time.monotonic()
        # Becomes the current one of the thread, so that what is logged before the
        # caller is known does not bear the id of the request before this one.
        RequestContext(request_id=environ[request_id.ENV_REQUEST_ID])
        response = self._answered(environ)
        _state_versions(environ, response)
        LOG.info(
            '%s %s: %d in %d ms',
            shown(environ['REQUEST_METHOD']),
            shown(environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', '')),
            response.status_int,
            (time.monotonic() - began) * 1000,
        )
        body: Iterable[bytes] = response(environ, start_response)
        return body

    def _answered(self, environ: dict[str, Any]) -> webob.Response:
        identity = environ[request_id.ENV_REQUEST_ID]
        try:
            _check_protocol(environ)
            response = webob.Request(environ).get_response(self._application)
            if response.status_int == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                raise BodyTooLarge(limit=self._body_limit)
        except CyborgError as error:
            if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                LOG.error('%s %s', error.text, error.advice)
            return errors.response(error, identity)
        except Exception:
            # Nothing may pass here: the client gets a document with its request id
            # and no word of what broke, and the log gets the whole of it.
            LOG.exception('The request failed.')
            return errors.response(CyborgError(), identity)
        foreign = response.content_type != _JSON
        if response.status_int >= HTTPStatus.BAD_REQUEST and foreign:
            return errors.in_our_words(response, identity)
        return response


def _check_protocol(environ: dict[str, Any]) -> None:
    """Refuse what the libraries below would stumble over.

    :raises CyborgError: 4xx
    """
    if environ.get('PATH_INFO', '') not in _ROOT:
        asked = environ.get(_VERSION_HEADER)
        environ[MICROVERSION] = microversion.negotiate(asked)
    try:
        environ.get('PATH_INFO', '').encode('latin-1').decode()
    except UnicodeDecodeError:
        raise NotFound(what='Resource', name='with such a path') from None
    if environ.get('HTTP_ACCEPT') and not _takes_json(webob.Request(environ).accept):
        raise NotAcceptable(reason=f'Only {_JSON} is served; the request excludes it.')


def _takes_json(accept: Any) -> bool:
    """Of a header that is not empty: an empty one excludes nothing.

    :param accept: as WebOb has it; untyped
    """
    # Parameters say nothing of JSON (RFC 8259, section 11), not even of its encoding.
    ranges = [kind for kind, *_ in accept.parsed or ()]
    spelled = [kind for kind in ranges if kind.lower().startswith(f'{_JSON};')]
    return bool(accept.acceptable_offers([_JSON, *spelled]))


def _state_versions(environ: dict[str, Any], response: webob.Response) -> None:
    """Say which versions there are, the more when the one asked for is not served."""
    if environ.get('PATH_INFO', '') in _ROOT:
        return
    microversion.announce(response)
    agreed = environ.get(MICROVERSION)
    if agreed is not None:
        stated = f'{microversion.SERVICE_TYPE} {agreed}'
        response.headers[microversion.HEADER] = stated
