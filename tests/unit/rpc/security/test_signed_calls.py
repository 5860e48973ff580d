# SPDX-License-Identifier: Apache-2.0
"""Signed calls: challenges are answered, and unsigned errors are refused."""

from collections.abc import Mapping
from typing import Any

import pytest

from cyborg_lite.errors.daemons import MessageRefused, ServiceUnavailable
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.security.keys import OwnKeys, Peer, Role, SecretKeys, derive_key
from cyborg_lite.rpc.security.replay import Challenged
from cyborg_lite.rpc.security.signed_calls import SignedCaller
from cyborg_lite.rpc.security.signing import FIRST_MAC, Signer, sign_reply

SECRET = 's' * 32
AGENT, CONDUCTOR = Peer(Role.AGENT, 'compute-1'), Peer(Role.CONDUCTOR, 'controller')


class Bus:
    """Bus with one agent, which challenges the first requests."""

    def __init__(self, challenges: int = 0, error: Exception | None = None) -> None:
        self.agent = Signer(AGENT, OwnKeys(AGENT, (derive_key(SECRET, AGENT),)))
        self.challenges = challenges
        self.error = error
        self.tokens: list[dict[str, str]] = []  # of each request
        self.identities: set[str] = set()  # of the calls
        self.casts: list[tuple[Peer, dict[str, Any]]] = []  # sender and arguments

    # Any, here and below: JSON.
    def call(self, context: Mapping[str, Any], method: str, **arguments: Any) -> Any:
        if self.error is not None:
            raise self.error
        request = self.agent.verify(method, context, arguments)
        assert request is not None
        self.tokens.append(dict(request.tokens))
        self.identities.add(request.call)
        if len(self.tokens) <= self.challenges:
            challenge = Challenged(f'agent-{len(self.tokens)}', 'token')
            return sign_reply(request, challenge)
        return sign_reply(request, arguments)

    def cast(self, context: Mapping[str, Any], method: str, **arguments: Any) -> None:
        request = self.agent.verify(method, context, arguments)
        assert request is not None
        self.casts.append((request.sender, arguments))

    def caller(self, *, is_required: bool = True) -> SignedCaller:
        signer = Signer(CONDUCTOR, SecretKeys((SECRET,)), is_required=is_required)
        return SignedCaller(signer, self, AGENT)


def test_cast_names_the_sender_in_its_signature_only() -> None:
    bus = Bus()
    bus.caller().cast(daemon_context(), 'repeat', host='controller', token='a')
    assert bus.casts == [(CONDUCTOR, {'token': 'a'})]


def test_challenged_call_repeats_with_all_tokens() -> None:
    bus = Bus(challenges=2)
    assert bus.caller().call(daemon_context(), 'prepare') == {}
    assert [sorted(tokens.keys() - {FIRST_MAC}) for tokens in bus.tokens] == [
        [],
        ['agent-1'],
        ['agent-1', 'agent-2'],
    ]
    assert len(bus.identities) == 1


def test_call_always_challenged_ends_as_unavailable() -> None:
    bus = Bus(challenges=10**6)
    with pytest.raises(ServiceUnavailable, match='cyborg-lite-agent'):
        bus.caller().call(daemon_context(), 'prepare')
    assert len(bus.tokens) == 64


@pytest.mark.parametrize(
    ('error', 'is_required', 'expected'),
    [
        (DriverError(reason='The card is busy.'), True, MessageRefused),
        (DriverError(reason='The card is busy.'), False, DriverError),
        (MessageRefused(reason='repeated'), True, MessageRefused),
    ],
)
def test_call_unsigned_error_is_trusted_only_if_optional(
    error: Exception, is_required: bool, expected: type[Exception]
) -> None:
    caller = Bus(error=error).caller(is_required=is_required)
    with pytest.raises(expected) as raised:
        caller.call(daemon_context(), 'prepare')
    assert (raised.value is error) is (type(error) is expected)
