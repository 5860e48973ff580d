# SPDX-License-Identifier: Apache-2.0
"""Tests of the keys that are derived from the secret of the conductors."""

from cyborg_lite.rpc.security.keys import OwnKey, Peer, Role, SecretKeys, derive_key

_AGENT = Peer(Role.AGENT, 'compute-1')
_SECRET = 's' * 32


def test_keys_differ_by_secret_role_and_host() -> None:
    peers = (_AGENT, Peer(Role.AGENT, 'compute-2'), Peer(Role.API, 'compute-1'))
    keys = {derive_key(secret, peer) for peer in peers for secret in ('a', 'b')}
    assert len(keys) == 6


def test_derived_key_never_changes() -> None:
    """Hosts have the key of an earlier release in a file."""
    assert derive_key(_SECRET, _AGENT) == (
        'd0a8c9755c456ae0436e1d5786bc1bdbd753ee58324c35105daa678291df919b'
    )


def test_agent_finds_only_its_own_key() -> None:
    key = derive_key(_SECRET, _AGENT)
    assert SecretKeys(_SECRET).find_key(_AGENT) == key.encode()
    own = OwnKey(_AGENT, key)
    assert own.find_key(_AGENT) == key.encode()
    assert own.find_key(Peer(Role.AGENT, 'compute-2')) is None
