# SPDX-License-Identifier: Apache-2.0
"""Who asks: the identity and request id that a call carries through all daemons."""

from typing import Any, Final

from oslo_context import context as oslo_context

# What the base class reads where a word is missing, and what it says of nobody.
_SAID_WHEN_MISSING: Final[dict[str, Any]] = {  # values of several types
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


class RequestContext(oslo_context.RequestContext):
    """The caller, as the API authenticated it."""

    FROM_DICT_EXTRA_KEYS = ['service_request']  # noqa: RUF012  # as the base has it

    def __init__(self, *, service_request: bool = False, **identity: Any) -> None:
        super().__init__(**identity)
        # True: a validated service token with one of the configured roles. It is
        # decided once, in the API, where the token is known.
        self.service_request = service_request

    def to_dict(self) -> dict[str, Any]:
        values: dict[str, Any] = super().to_dict()
        # The token serves no purpose behind the API and must not reach the broker.
        values['auth_token'] = None
        values['service_request'] = self.service_request
        return values

    def to_wire(self) -> dict[str, Any]:
        """What ``from_dict`` needs; of a daemon's own calls that is very little."""
        return {
            key: value
            for key, value in self.to_dict().items()
            if key not in _SAID_WHEN_MISSING or value != _SAID_WHEN_MISSING[key]
        }


def of_daemon() -> RequestContext:
    """For what a daemon does of its own accord; each one starts a request id."""
    return RequestContext(is_admin=True)


def of_request(request_id: str | None) -> RequestContext:
    """For work that goes on after its request was answered, under the same id."""
    return RequestContext(is_admin=True, request_id=request_id)
