# SPDX-License-Identifier: Apache-2.0
"""Authentication switched off: every caller is who it says it is.

For development, tests and a service on loopback. The headers are those that the
Keystone middleware would set after it validated a token, so that every persona can be
played. A client that only knows tokens says ``X-Auth-Token: USER`` or
``USER:PROJECT``; the user ``admin`` has all roles, any other one is a member.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

import webob
from oslo_log import log

LOG = log.getLogger(__name__)

PROJECT: Final = '0123456789abcdef0123456789abcdef'
"""Of a token that names none."""

_IDENTITY: Final = (
    'HTTP_X_USER_ID',
    'HTTP_X_PROJECT_ID',
    'HTTP_X_ROLES',
    'HTTP_OPENSTACK_SYSTEM_SCOPE',
    'HTTP_X_DOMAIN_ID',
)
_ALL_ROLES: Final = 'admin,manager,member,reader'
_MEMBER_ROLES: Final = 'member,reader'
_LONGEST: Final = 64  # characters of an id, as Keystone and our database have it
_UNAUTHORIZED: Final = {
    'error': {
        'code': 401,
        'title': 'Unauthorized',
        'message': 'The request you have made requires authentication.',
    }
}


class NoAuth:
    """In the place of the Keystone middleware."""

    def __init__(self, application: Any) -> None:
        """:param application: any WSGI application"""
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not any(name in environ for name in _IDENTITY):
            environ.update(_of_token(environ.get('HTTP_X_AUTH_TOKEN', '')))
        ids = [environ.get(name, '') for name in _IDENTITY[:2]]
        if any(name in environ for name in _IDENTITY) and _fit(ids):
            answer = self._application(environ, start_response)
        else:
            answer = _refusal()(environ, start_response)
        body: Iterable[bytes] = answer
        return body


def warn() -> None:
    """Say it where the operator of a real cloud will see it."""
    LOG.warning(
        'AUTHENTICATION IS OFF ([api] auth_strategy = noauth): whoever reaches this '
        'service may do anything in the name of anybody. Never do so in production.'
    )


def _of_token(token: str) -> dict[str, str]:
    user, _, project = token.partition(':')
    if not user:
        return {}
    return {
        'HTTP_X_USER_ID': user,
        'HTTP_X_PROJECT_ID': project or PROJECT,
        'HTTP_X_ROLES': _ALL_ROLES if user == 'admin' else _MEMBER_ROLES,
    }


def _fit(ids: list[str]) -> bool:
    return all(len(one) <= _LONGEST for one in ids)


def _refusal() -> webob.Response:
    refusal = webob.Response(
        status=401,
        body=json.dumps(_UNAUTHORIZED).encode(),
        content_type='application/json',
    )
    refusal.headers['WWW-Authenticate'] = 'Keystone uri=""'
    return refusal
