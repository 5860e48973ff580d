# SPDX-License-Identifier: Apache-2.0
"""A path of the API: the methods that it answers, and the paths below it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from cyborg_lite.api.microversion import MINIMUM, Microversion
from cyborg_lite.api.policy import Policy
from cyborg_lite.exceptions import MethodNotAllowed, NotFound
from cyborg_lite.model.device_profiles import Limits
from cyborg_lite.model.text import shown
from cyborg_lite.rpc.conductor import ConductorAPI

_HANDLERS: Final = {
    'GET': 'get',
    'HEAD': 'get',  # the server leaves the body out
    'POST': 'post',
    'PATCH': 'patch',
    'DELETE': 'delete',
}


@dataclass(frozen=True, slots=True)
class Backing:
    """What all controllers work with."""

    conductor: ConductorAPI
    policy: Policy
    service_token_roles: frozenset[str]
    public_endpoint: str | None  # None: what the request says
    json_depth: int
    profile_limits: Limits
    hold_power_on: bool
    refuse_impossible: bool  # device profiles


class Resource:
    """A method of HTTP is a method here, of the same name in lower case."""

    since: ClassVar[Mapping[str, Microversion]] = {}
    """Methods of HTTP that older clients must be told not to be there."""

    def __init__(self, backing: Backing) -> None:
        self.backing = backing

    @property
    def conductor(self) -> ConductorAPI:
        return self.backing.conductor

    def below(self, segment: str) -> 'Resource':
        """The path one segment further.

        :raises NotFound: there is none
        """
        raise NotFound(what='Resource', name=shown(segment))

    def handler(self, method: str, version: Microversion) -> Callable[[], Any]:
        """What answers the method for a client that speaks the version.

        :raises MethodNotAllowed: with the methods that something answers
        """
        answers: dict[str, Callable[[], Any]] = {
            name: getattr(self, attribute)
            for name, attribute in _HANDLERS.items()
            if hasattr(self, attribute) and self.since.get(name, MINIMUM) <= version
        }
        try:
            return answers[method]
        except KeyError:
            allowed = ', '.join(answers)
            raise MethodNotAllowed(method=shown(method), allowed=allowed) from None
