# SPDX-License-Identifier: Apache-2.0
"""Keys that sign the messages between the daemons.

Only conductors have the secret, from which they derive the key of each other daemon. An
agent has the key of its host, and an API has the key of all APIs. Keys are 64
hexadecimal digits.
"""

import enum
import hashlib
import hmac
from dataclasses import dataclass
from typing import Final, Protocol

_CONTEXT: Final = 'cyborg-lite message key 1'


class Role(enum.StrEnum):
    """Kinds of daemons that send messages."""

    AGENT = 'agent'
    API = 'api'
    CONDUCTOR = 'conductor'


@dataclass(frozen=True, slots=True)
class Peer:
    """The sender or the receiver of a message."""

    role: Role
    host: str = ''  # empty: all hosts share the key

    def __str__(self) -> str:
        return f'{self.role}:{self.host}'


def derive_key(secret: str, peer: Peer) -> str:
    """Return the key of a daemon, by HMAC-SHA256 over its role and host."""
    text = '\0'.join((_CONTEXT, peer.role, peer.host))
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


class Keys(Protocol):
    """The keys that a daemon has."""

    def find_key(self, peer: Peer) -> bytes | None:
        """Return the key of a daemon; None: this daemon does not have it."""


class SecretKeys:
    """The keys of all daemons, for conductors."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def find_key(self, peer: Peer) -> bytes | None:
        """Derive the key."""
        return derive_key(self._secret, peer).encode()


class OwnKey:
    """The key of one daemon."""

    def __init__(self, peer: Peer, key: str) -> None:
        self._peer = peer
        self._key = key

    def find_key(self, peer: Peer) -> bytes | None:
        """Return the key of the daemon itself."""
        return self._key.encode() if peer == self._peer else None
