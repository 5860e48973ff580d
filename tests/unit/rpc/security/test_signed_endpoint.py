# SPDX-License-Identifier: Apache-2.0
"""Endpoints that serve signed requests: permissions, challenges and replies."""

from collections.abc import Sequence
from typing import Any

import oslo_messaging
import pytest

from cyborg_lite.errors.daemons import MessageRefused
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.methods import CONDUCTOR as CONDUCTOR_METHODS
from cyborg_lite.rpc.security.keys import OwnKeys, Peer, Role, SecretKeys, derive_key
from cyborg_lite.rpc.security.replay import Challenged
from cyborg_lite.rpc.security.signed_endpoint import Endpoint, is_allowed
from cyborg_lite.rpc.security.signing import KEY, Request, Signer

SECRET = 's' * 32
AGENT, API = Peer(Role.AGENT, 'compute-1'), Peer(Role.API)
CONDUCTOR = Peer(Role.CONDUCTOR, 'controller')
HEARTBEAT = {'host': 'compute-1', 'digest': 'd', 'version': '1.0'}


class Services:
    """Services that count their calls."""

    def __init__(self) -> None:
        self.calls = 0

    # Any: arguments that the tests do not read.
    @serves(Conductor.heartbeat)
    def heartbeat(self, *_: Any, **__: Any) -> bool:
        self.calls += 1
        return True

    @serves(Conductor.delete_device_profiles)
    def delete_device_profiles(self, names: Sequence[str], *_: Any, **__: Any) -> None:
        self.calls += 1
        raise DeviceProfileNotFound(name=names[0])


class Sender:
    """Daemon that calls the endpoint of a conductor without a bus."""

    def __init__(self, peer: Peer) -> None:
        self.signer = Signer(peer, OwnKeys(peer, (derive_key(SECRET, peer),)))
        self.services = Services()
        receiver = Signer(CONDUCTOR, SecretKeys((SECRET,)))
        dispatcher = Dispatcher(CONDUCTOR_METHODS, [self.services])
        self.endpoint = Endpoint(dispatcher, receiver)
        self.tokens: dict[str, str] = {}

    # Any, here and below: JSON.
    def send(self, method: str, **arguments: Any) -> tuple[Request, Any]:
        """Return a request and its reply."""
        values = daemon_context().to_wire()
        request = self.signer.sign(CONDUCTOR, method, values, arguments, self.tokens)
        return request, self.deliver(method, values, request, **arguments)

    def deliver(
        self, method: str, values: dict[str, Any], request: Request, **arguments: Any
    ) -> Any:
        context = daemon_context()
        context.received = {**values, KEY: request.proof}
        return getattr(self.endpoint, method)(context, **arguments)

    def call(self, method: str, **arguments: Any) -> Any:
        """Return the result; answer the challenge that the first request gets."""
        request, reply = self.send(method, **arguments)
        with pytest.raises(Challenged) as challenge:
            self.signer.read_reply(request, reply)
        self.tokens[challenge.value.receiver] = challenge.value.token
        assert self.services.calls == 0
        return self.signer.read_reply(*self.send(method, **arguments))


def read_refusal(error: oslo_messaging.ExpectedException) -> str:
    """Return the reason that the caller receives."""
    refusal = error.exc_info[1]
    assert isinstance(refusal, MessageRefused)
    return str(refusal.kwargs['reason'])


@pytest.mark.parametrize(
    ('sender', 'method', 'arguments', 'allowed'),
    [
        (AGENT, 'heartbeat', {'host': 'compute-1'}, True),
        (AGENT, 'heartbeat', {'host': 'compute-2'}, False),
        (AGENT, 'heartbeat', {}, False),
        (AGENT, 'report_recovery', {'host': 'compute-2'}, False),
        (AGENT, 'reconcile_handles', {'host': 'compute-1'}, True),
        (AGENT, 'report_events', {'host': ['compute-1']}, False),
        (AGENT, 'report_changes', {'host': 'compute-1'}, True),
        (AGENT, 'report_changes', {'host': 'compute-2'}, False),
        (AGENT, 'repeat', {'host': 'compute-2'}, False),
        (AGENT, 'list_arqs', {'host': 'compute-1'}, False),
        (API, 'list_arqs', {}, True),
        (API, 'heartbeat', {'host': 'compute-1'}, False),
        (CONDUCTOR, 'list_arqs', {}, False),
        (CONDUCTOR, 'echo', {}, True),
    ],
)
def test_is_allowed_by_role_and_host(
    sender: Peer, method: str, arguments: dict[str, Any], allowed: bool
) -> None:
    terms = CONDUCTOR_METHODS.methods[method].terms
    assert is_allowed(sender, terms, arguments) is allowed


def test_call_after_challenge_returns_signed_result() -> None:
    sender = Sender(AGENT)
    assert sender.call('heartbeat', **HEARTBEAT) is True
    assert sender.services.calls == 1


def test_call_error_is_signed() -> None:
    with pytest.raises(DeviceProfileNotFound, match='dp1'):
        Sender(API).call('delete_device_profiles', names=['dp1'])


def test_call_repeated_is_refused() -> None:
    sender = Sender(AGENT)
    sender.call('heartbeat', **HEARTBEAT)
    values = daemon_context().to_wire()
    arguments = HEARTBEAT
    request = sender.signer.sign(
        CONDUCTOR, 'heartbeat', values, arguments, sender.tokens
    )
    assert sender.deliver('heartbeat', values, request, **arguments)
    with pytest.raises(oslo_messaging.ExpectedException) as refusal:
        sender.deliver('heartbeat', values, request, **arguments)
    assert read_refusal(refusal.value) == 'repeated, from agent:compute-1'
    assert sender.services.calls == 2


def test_call_of_another_host_runs_nothing() -> None:
    sender = Sender(AGENT)
    request, reply = sender.send('heartbeat', **{**HEARTBEAT, 'host': 'compute-2'})
    with pytest.raises(Challenged) as challenge:
        sender.signer.read_reply(request, reply)
    sender.tokens[challenge.value.receiver] = challenge.value.token
    with pytest.raises(oslo_messaging.ExpectedException) as refusal:
        sender.send('heartbeat', **{**HEARTBEAT, 'host': 'compute-2'})
    assert read_refusal(refusal.value) == 'not allowed, from agent:compute-1'
    assert sender.services.calls == 0


@pytest.mark.parametrize(
    'proof',
    [
        5,
        'agent:compute-1',
        [5, 'e', 1, 'm'],
        ['agent:compute-1', 'e', 1, 'm', ['token']],
        ['agent:compute-1', 'e', 1, '\N{LATIN SMALL LETTER E WITH ACUTE}'],
        ['agent:compute-1', 'e', -1, 'm'],
        ['agent:compute-1', 'e', 1, 'm', {'r': '\udc80'}],
        ['agent:\udc80', 'e', 1, 'm'],
        ['agent:a\nINFO All is well', 'e', 1, 'm'],
        ['agent:' + 'a' * 1000, 'e', 1, 'm'],
    ],
)
def test_call_malformed_signature_is_refused(
    proof: object, caplog: pytest.LogCaptureFixture
) -> None:
    """Anybody on the bus can send it; no part of it reaches the log."""
    sender = Sender(AGENT)
    context = daemon_context()
    context.received = {KEY: proof}
    with pytest.raises(oslo_messaging.ExpectedException) as refusal:
        sender.endpoint.heartbeat(context, **HEARTBEAT)
    assert read_refusal(refusal.value).split(',')[0] in ('unsigned', 'wrong signature')
    assert all(len(line) < 400 for line in caplog.text.splitlines())
    assert 'All is well' not in caplog.text


def test_reply_with_malformed_signature_is_refused() -> None:
    sender = Sender(AGENT)
    request, _ = sender.send('heartbeat', **HEARTBEAT)
    reply = {'signed_reply': ['result', True, '\N{LATIN SMALL LETTER E WITH ACUTE}']}
    with pytest.raises(MessageRefused):
        sender.signer.read_reply(request, reply)
