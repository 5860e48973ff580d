# SPDX-License-Identifier: Apache-2.0
"""Tests of the keys that are derived from the secret of the conductors."""

from cyborg_lite.rpc.security.keys import (
    OwnKeys,
    Peer,
    Role,
    SecretKeys,
    derive_key,
    format_secrets,
    parse_secrets,
)

_AGENT, _OTHER = Peer(Role.AGENT, 'compute-1'), Peer(Role.AGENT, 'compute-2')
_SECRET = 's' * 32


def test_keys_differ_by_secret_role_and_host() -> None:
    peers = (_AGENT, _OTHER, Peer(Role.API, 'compute-1'))
    keys = {derive_key(secret, peer) for peer in peers for secret in ('a', 'b')}
    assert len(keys) == 6


def test_derived_key_never_changes() -> None:
    """Hosts have the key of an earlier release in a file."""
    assert derive_key(_SECRET, _AGENT) == (
        'd0a8c9755c456ae0436e1d5786bc1bdbd753ee58324c35105daa678291df919b'
    )


def test_agent_lists_only_its_own_keys() -> None:
    key = derive_key(_SECRET, _AGENT)
    assert SecretKeys((_SECRET,)).list_keys(_AGENT) == [key.encode()]
    own = OwnKeys(_AGENT, (key,))
    assert own.list_keys(_AGENT) == [key.encode()]
    assert not own.list_keys(_OTHER)


def test_revocation_changes_key_of_one_host() -> None:
    keys = SecretKeys((_SECRET, 'new'), {'compute-1': 2})
    assert parse_secrets(format_secrets(keys)) == keys
    plain = SecretKeys(keys.secrets)
    assert not {*keys.list_keys(_AGENT)} & {*plain.list_keys(_AGENT)}
    assert keys.list_keys(_OTHER) == plain.list_keys(_OTHER)
