# SPDX-License-Identifier: Apache-2.0
"""Base class of the controllers, and the context that they share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from cyborg_lite.api.call.hold import Hold
from cyborg_lite.api.microversion import MAXIMUM, Microversion
from cyborg_lite.api.policy import Policy
from cyborg_lite.errors.requests import MethodNotAllowed
from cyborg_lite.model.profiles.device_profiles import Limits
from cyborg_lite.model.text import format_value
from cyborg_lite.rpc.interface import Conductor

_METHODS: Final = {
    'GET': 'get',
    'HEAD': 'get',  # the server omits the body
    'POST': 'post',
    'PATCH': 'patch',
    'DELETE': 'delete',
}


@dataclass(frozen=True, slots=True)
class ApiContext:
    """Services and settings that all controllers use."""

    conductor: Conductor
    policy: Policy
    # Returns the API document of a microversion, or of all of them for None. The
    # document describes the controllers, so they cannot import its builder.
    encode_document: Callable[[Microversion | None, str], bytes]
    service_token_roles: frozenset[str]
    public_endpoint: str | None  # None: links are built from the request
    json_depth: int
    max_limit: int  # elements of a page
    extra_accel_keys: frozenset[str]  # without the prefix `accel:`
    profile_limits: Limits
    hold_power_on: bool
    refuse_failed_binds: bool
    hold: Hold
    hold_bind: int  # seconds
    refuse_impossible_profiles: bool
    device_type_availability: str  # none, yes-no or number


class Resource:
    """Controller of one path; its methods are HTTP methods in lower case."""

    until: ClassVar[Microversion] = MAXIMUM
    """The last microversion that has the path; newer ones answer 406."""

    def __init__(self, context: ApiContext, identifiers: Sequence[str] = ()) -> None:
        self.context = context
        # Values of the path parameters, from left to right.
        self.identifiers = identifiers

    @property
    def identifier(self) -> str:
        """Value of the first path parameter, as the client wrote it."""
        return self.identifiers[0]

    @property
    def conductor(self) -> Conductor:
        """RPC client of the conductor."""
        return self.context.conductor

    @classmethod
    def find_method(cls, http_method: str, version: Microversion) -> str:
        """Return the name of the Python method for an HTTP method and microversion.

        :raises MethodNotAllowed: the path does not support the HTTP method; the error
            lists the supported ones
        """
        names = {
            http_name: name
            for http_name, name in _METHODS.items()
            if (method := getattr(cls, name, None))
            # The decorator `since` adds the attributes to the method.
            and not (getattr(method, 'hidden', False) and version < method.since)
        }
        if http_method in names:
            return names[http_method]
        allowed = ', '.join(names)
        text = format_value(http_method)
        if http_method in _METHODS and hasattr(cls, _METHODS[http_method]):
            newer = getattr(cls, _METHODS[http_method])
            text += f' (added by microversion {newer.since})'
        raise MethodNotAllowed(method=text, allowed=allowed)
