# SPDX-License-Identifier: Apache-2.0
"""Who calls: what stands before the application, and what it makes of the caller."""

from collections.abc import Iterable, Set
from typing import Any, Final

from keystonemiddleware import auth_token
from oslo_config import cfg

from cyborg_lite.api import noauth
from cyborg_lite.exceptions import ConfigurationError
from cyborg_lite.rpc.context import RequestContext

_PUBLIC: Final = frozenset({'', '/', '/v2', '/v2/', '/v2/openapi.json'})
"""What a client must read before it has a token."""

_TOKEN: Final = 'keystone.token_auth'  # a key, not a secret


class Door:
    """Lets everybody read the version documents, and the known ones do the rest."""

    def __init__(self, application: Any, guarded: Any) -> None:
        """Both are WSGI applications, the second with a guard before the first."""
        self._application = application
        self._guarded = guarded

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        public = environ.get('PATH_INFO', '') in _PUBLIC
        inside = self._application if public else self._guarded
        answer: Iterable[bytes] = inside(environ, start_response)
        return answer


def door(application: Any, conf: cfg.ConfigOpts) -> Door:
    """As ``[api] auth_strategy`` has it.

    :raises ConfigurationError: the access to Keystone is not configured
    """
    if conf.api.auth_strategy == 'noauth':
        noauth.warn()
        return Door(application, noauth.NoAuth(application))
    guarded = auth_token.AuthProtocol(application, {'oslo_config_config': conf})
    section = conf.keystone_authtoken
    if not section.auth_type and not section.auth_section:
        # The middleware itself would start, and then refuse every token.
        reason = '[keystone_authtoken] auth_type is not set, see its options.'
        raise ConfigurationError(reason=reason)
    return Door(application, guarded)


def service_token_roles(conf: cfg.ConfigOpts) -> frozenset[str]:
    """Roles of which a service token must have one."""
    for group, options in auth_token.list_opts():
        conf.register_opts(options, group=group)
    return frozenset(conf.keystone_authtoken.service_token_roles)


def caller(environ: dict[str, Any], service_token_roles: Set[str]) -> RequestContext:
    """From the headers of the middleware, which no client can set itself."""
    found: RequestContext = RequestContext.from_environ(
        environ, system_scope=_system_scope(environ)
    )
    found.is_admin = 'admin' in found.roles
    # With [keystone_authtoken] service_token_roles_required off, the middleware passes
    # any valid token as a service's; we do not.
    found.service_request = not service_token_roles.isdisjoint(found.service_roles)
    return found


def _system_scope(environ: dict[str, Any]) -> str | None:
    token = environ.get(_TOKEN)
    if token is None:
        scope: str | None = environ.get('HTTP_OPENSTACK_SYSTEM_SCOPE')
        return scope
    # The middleware writes the scope of the service token over that of the user's.
    return 'all' if token.user.system_scoped else None
