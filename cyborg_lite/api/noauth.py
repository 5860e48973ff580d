# SPDX-License-Identifier: Apache-2.0
"""Middleware for ``auth_strategy = noauth``: the identity of the client is not checked.

It is for development, tests and a service on loopback. A client may send the identity
headers that the Keystone middleware would set after it validated a token. A client that
supports only tokens sends ``X-Auth-Token: USER`` or ``USER:PROJECT``. The user
``admin`` has all roles; any other user is a member.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

import webob
from oslo_log import log

LOG = log.getLogger(__name__)

PROJECT: Final = '0123456789abcdef0123456789abcdef'
"""The project of a token without a project."""

_IDENTITY: Final = (
    'HTTP_X_USER_ID',
    'HTTP_X_PROJECT_ID',
    'HTTP_X_ROLES',
    'HTTP_OPENSTACK_SYSTEM_SCOPE',
    'HTTP_X_DOMAIN_ID',
)
_ALL_ROLES: Final = 'admin,manager,member,reader'
_MEMBER_ROLES: Final = 'member,reader'
_MAX_ID_LENGTH: Final = 64  # characters, as in Keystone and in the database
_UNAUTHORIZED: Final = {
    'error': {
        'code': 401,
        'title': 'Unauthorized',
        'message': 'The request you have made requires authentication.',
    }
}


class NoAuthMiddleware:
    """Replacement of the Keystone middleware that trusts the client."""

    def __init__(self, application: Any) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not any(name in environ for name in _IDENTITY):
            environ.update(_parse_token(environ.get('HTTP_X_AUTH_TOKEN', '')))
        ids = [environ.get(name, '') for name in _IDENTITY[:2]]
        are_valid = max(map(len, ids)) <= _MAX_ID_LENGTH
        if are_valid and any(name in environ for name in _IDENTITY):
            application = self._application
        else:
            application = _build_unauthorized_response()
        body: Iterable[bytes] = application(environ, start_response)
        return body


def warn_of_noauth() -> None:
    """Log that authentication is off."""
    LOG.warning(
        'AUTHENTICATION IS OFF ([api] auth_strategy = noauth): every client has all '
        'permissions of every user. Do not use this setting in production.'
    )


def _parse_token(token: str) -> dict[str, str]:
    user, _, project = token.partition(':')
    if not user:
        return {}
    return {
        'HTTP_X_USER_ID': user,
        'HTTP_X_PROJECT_ID': project or PROJECT,
        'HTTP_X_ROLES': _ALL_ROLES if user == 'admin' else _MEMBER_ROLES,
    }


def _build_unauthorized_response() -> webob.Response:
    response = webob.Response(
        status=401,
        body=json.dumps(_UNAUTHORIZED).encode(),
        content_type='application/json',
    )
    response.headers['WWW-Authenticate'] = 'Keystone uri=""'
    return response
