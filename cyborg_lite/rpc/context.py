# SPDX-License-Identifier: Apache-2.0
"""Request context: the identity and request id that a call carries to all daemons."""

from collections.abc import Mapping
from typing import Any, Final

from oslo_context import context as oslo_context

# Values that the base class assumes for missing keys, and its values for no user.
_DEFAULTS: Final[dict[str, Any]] = {  # values of several types
    'user': None,
    'project_id': None,
    'system_scope': None,
    'project': None,
    'domain': None,
    'user_domain': None,
    'project_domain': None,
    'is_admin': False,
    'read_only': False,
    'show_deleted': False,
    'auth_token': None,
    'global_request_id': None,
    'resource_uuid': None,
    'roles': [],
    'user_identity': '- - - - -',
    'is_admin_project': True,
}


_CALLER_FIELDS: Final = ('global_request_id', 'user_id', 'project_id')


class RequestContext(oslo_context.RequestContext):
    """The caller as authenticated by the API.

    ``is_admin`` is decided once, in the API, by the policy rule ``admin_api``.
    """

    # The base class declares a list, which is not changed.
    FROM_DICT_EXTRA_KEYS = ['service_request']  # noqa: RUF012  # oslo.context declares a list

    def __init__(self, *, service_request: bool = False, **identity: Any) -> None:
        super().__init__(**identity)
        # True: the request has a valid service token with one of the configured roles.
        # Only the API sees the token, so it decides.
        self.service_request = service_request
        # As received, with the signature; empty: the context was not received.
        self.received: Mapping[str, Any] = {}

    def to_dict(self) -> dict[str, Any]:
        """Return all values except the token."""
        values: dict[str, Any] = super().to_dict()
        # No daemon behind the API uses the token, and it must not reach the broker.
        values['auth_token'] = None
        values['service_request'] = self.service_request
        return values

    def to_wire(self) -> dict[str, Any]:
        """Return the values that ``from_dict`` does not assume by default."""
        return {
            key: value
            for key, value in self.to_dict().items()
            if key not in _DEFAULTS or value != _DEFAULTS[key]
        }


class _BareContext(RequestContext):
    """Context of a message that is too frequent for a request id."""

    def to_wire(self) -> dict[str, Any]:
        """Return no values: the receiver chooses a request id."""
        return {}


def bare_context() -> RequestContext:
    """Return a context that adds nothing to a message. It is not of an admin."""
    return _BareContext()


def daemon_context() -> RequestContext:
    """Return the context of work that a daemon starts, with a new request id."""
    return RequestContext(is_admin=True)


def request_context(
    request_id: str | None, caller: Mapping[str, str] | None = None
) -> RequestContext:
    """Return the context of work that continues a request, with its ids.

    :param caller: user_id, project_id and global_request_id of the request, as far as
        known; None or empty: those of the current context, if it has the request id
    """
    identity: dict[str, Any] = dict(caller or {})
    current = oslo_context.get_current()
    is_same = current is not None and current.request_id == request_id
    if not identity and is_same:
        identity = {name: getattr(current, name) for name in _CALLER_FIELDS}
    return RequestContext(is_admin=True, request_id=request_id, **identity)
