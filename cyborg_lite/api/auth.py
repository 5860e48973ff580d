# SPDX-License-Identifier: Apache-2.0
"""Authentication middleware, and the caller that it identifies."""

from collections.abc import Iterable, Set
from contextlib import nullcontext
from typing import Any, Final

from keystonemiddleware import auth_token
from oslo_config import cfg

from cyborg_lite.api import noauth
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.rpc.context import RequestContext

_PUBLIC: Final = frozenset({'', '/', '/v2', '/v2/', '/v2/openapi.json'})
"""Paths that a client may read before it has a token."""

_TOKEN: Final = 'keystone.token_auth'  # a key, not a secret


class AuthMiddleware:
    """Requires authentication for all paths except the version documents."""

    def __init__(self, application: Any, authenticated: Any) -> None:
        self._application = application  # WSGI application
        # The same application behind authentication.
        self._authenticated = authenticated

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        is_public = environ.get('PATH_INFO', '') in _PUBLIC
        application = self._application if is_public else self._authenticated
        body: Iterable[bytes] = application(environ, start_response)
        return body


class _KeystoneMiddleware(auth_token.AuthProtocol):  # type: ignore[misc]  # untyped
    """Keystone middleware without a rate limit on the requests to Keystone.

    The library limits the rate by the wall clock. After a backward step every request
    would wait until the clock reaches the start of the process again.
    """

    def _create_session(self, **options: Any) -> Any:
        session = super()._create_session(**options)
        send = session.request

        def send_unlimited(url: str, method: str, **arguments: Any) -> Any:
            return send(url, method, **{**arguments, 'rate_semaphore': nullcontext()})

        session.request = send_unlimited
        return session


def add_authentication(application: Any, conf: cfg.ConfigOpts) -> AuthMiddleware:
    """Wrap a WSGI application in the middleware of ``[api] auth_strategy``.

    :raises ConfigurationError: the Keystone credentials are not configured
    """
    if conf.api.auth_strategy == 'noauth':
        noauth.warn_of_noauth()
        return AuthMiddleware(application, noauth.NoAuthMiddleware(application))
    authenticated = _KeystoneMiddleware(application, {'oslo_config_config': conf})
    section = conf.keystone_authtoken
    if not section.auth_type and not section.auth_section:
        # The Keystone middleware would start, and then refuse every token.
        reason = '[keystone_authtoken] auth_type is not set.'
        raise ConfigurationError(reason=reason)
    return AuthMiddleware(application, authenticated)


def read_service_token_roles(conf: cfg.ConfigOpts) -> frozenset[str]:
    """Return the roles of which a service token must have at least one."""
    for group, options in auth_token.list_opts():
        conf.register_opts(options, group=group)
    return frozenset(conf.keystone_authtoken.service_token_roles)


def read_caller(
    environ: dict[str, Any], service_token_roles: Set[str]
) -> RequestContext:
    """Return the caller from the headers of the authentication middleware.

    The middleware removes such headers of the client. ``is_admin`` stays False: policy
    decides it.
    """
    caller: RequestContext = RequestContext.from_environ(
        environ, system_scope=_read_system_scope(environ)
    )
    caller.is_admin = False
    # With [keystone_authtoken] service_token_roles_required off, the middleware accepts
    # any valid token as a service token. This service still requires a role.
    caller.service_request = not service_token_roles.isdisjoint(caller.service_roles)
    return caller


def _read_system_scope(environ: dict[str, Any]) -> str | None:
    token = environ.get(_TOKEN)
    if token is None:
        scope: str | None = environ.get('HTTP_OPENSTACK_SYSTEM_SCOPE')
        return scope
    # The middleware overwrites the scope of the user token with that of the service
    # token, so the header is not used.
    return 'all' if token.user.system_scoped else None
