# SPDX-License-Identifier: Apache-2.0
"""Keys that sign the messages between the daemons.

Only conductors have the secret, from which they derive the key of each other daemon. An
agent has the key of its host, and an API has the key of all APIs. Keys are 64
hexadecimal digits.

While a secret is replaced, each file has a second line. A daemon signs with the first
line and accepts both. The file of the conductors also has one line ``host NAME NUMBER``
for each host whose key was revoked; the number is part of its next key.
"""

import enum
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

_CONTEXT: Final = 'cyborg-lite message key 1'
_REVOCATION: Final = re.compile(r'host (\S+) (\d+)', re.ASCII)


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


def derive_key(secret: str, peer: Peer, revocations: int = 0) -> str:
    """Return the key of a daemon, by HMAC-SHA256 over its role and host.

    :param revocations: number of earlier keys of the daemon that were revoked
    """
    number = (str(revocations),) if revocations else ()
    text = '\0'.join((_CONTEXT, peer.role, peer.host, *number))
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


class Keys(Protocol):
    """The keys that a daemon has."""

    def list_keys(self, peer: Peer) -> Sequence[bytes]:
        """Return the valid keys of a daemon; empty: this daemon does not have them.

        The first key signs.
        """


@dataclass(frozen=True, slots=True)
class SecretKeys:
    """The keys of all daemons, for conductors."""

    secrets: tuple[str, ...]  # the first one signs, the last one is the newest
    revocations: Mapping[str, int] = field(default_factory=dict)  # by host

    def derive_keys(self, peer: Peer) -> list[str]:
        """Return the key of a daemon by each secret."""
        number = self.revocations.get(peer.host, 0) if peer.role is Role.AGENT else 0
        return [derive_key(secret, peer, number) for secret in self.secrets]

    def list_keys(self, peer: Peer) -> Sequence[bytes]:
        """Derive the keys."""
        return [key.encode() for key in self.derive_keys(peer)]


@dataclass(frozen=True, slots=True)
class OwnKeys:
    """The keys of one daemon."""

    peer: Peer
    keys: tuple[str, ...]  # the first one signs

    def list_keys(self, peer: Peer) -> Sequence[bytes]:
        """Return the keys of the daemon itself."""
        return [key.encode() for key in self.keys] if peer == self.peer else []


def parse_secrets(text: str) -> SecretKeys:
    """Return the content of the file of the conductors; a secret may have spaces."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    hosts = [match for line in lines if (match := _REVOCATION.fullmatch(line))]
    secrets = tuple(line for line in lines if not _REVOCATION.fullmatch(line))
    return SecretKeys(secrets, {match[1]: int(match[2]) for match in hosts})


def format_secrets(keys: SecretKeys) -> str:
    """Return the content of the file of the conductors as text."""
    hosts = [f'host {host} {number}' for host, number in keys.revocations.items()]
    return ''.join(f'{line}\n' for line in (*keys.secrets, *hosts))
