# SPDX-License-Identifier: Apache-2.0
"""Terms on which the methods of an RPC interface are called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from cyborg_lite.rpc.security.keys import Role

F = TypeVar('F', bound=Callable[..., Any])  # a method with any arguments and answer

FIRST_VERSION: Final = '1.0'


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Terms of one method, as a decorator of its declaration."""

    since: str = FIRST_VERSION
    """Interface version that introduced the method."""

    added: Mapping[str, str] = field(default_factory=dict)
    """Interface versions that introduced parameters later, by name of the parameter.

    Only servers that know such a parameter get a call that passes it.
    """

    senders: frozenset[Role] = frozenset({Role.API})
    """Daemons that may call the conductor. An agent names its own host only."""

    timeout: float | None = None
    """Seconds that a call waits for its answer. None: the timeout of the client."""

    is_slow: bool = False
    """True: the client waits as long as a host may need to load a bitstream."""

    has_answer: bool = True
    """False: the call returns as soon as the broker has the message."""

    is_compressed: bool = False
    """True: arguments that are data classes are compressed."""

    is_short: bool = False
    """True: the message is so frequent that its signature, not it, names the host."""

    @property
    def is_patient(self) -> bool:
        """Return True if a call waits for a broker that restarts.

        Agents repeat their calls, and a method with a timeout of its own must be quick.
        """
        return self.senders == {Role.API} and self.timeout is None

    def __call__(self, method: F) -> F:
        """Declare these terms for a method, which stays as it is."""
        method.terms = self  # type: ignore[attr-defined]  # read by `find_terms`
        return method


_DEFAULT: Final = Terms()


def find_terms(method: Callable[..., object]) -> Terms:
    """Return the terms of a method."""
    declared: Terms = getattr(method, 'terms', _DEFAULT)
    return declared
