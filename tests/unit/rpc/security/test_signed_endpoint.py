# SPDX-License-Identifier: Apache-2.0
"""Endpoints that serve signed requests: permissions and malformed signatures."""

from typing import Any

import oslo_messaging
import pytest

from cyborg_lite.errors.daemons import MessageRefused
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.methods import CONDUCTOR as CONDUCTOR_METHODS
from cyborg_lite.rpc.security.keys import OwnKeys, Peer, Role, SecretKeys, derive_key
from cyborg_lite.rpc.security.signed_endpoint import Endpoint, is_allowed
from cyborg_lite.rpc.security.signing import KEY, Signer

SECRET = 's' * 32
AGENT, API = Peer(Role.AGENT, 'compute-1'), Peer(Role.API)
CONDUCTOR = Peer(Role.CONDUCTOR, 'controller')


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


class Heartbeats:
    # Any: arguments that the tests do not read.
    @serves(Conductor.heartbeat)
    def heartbeat(self, *_: Any, **__: Any) -> bool:
        raise AssertionError


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
    receiver = Signer(CONDUCTOR, SecretKeys((SECRET,)))
    endpoint = Endpoint(Dispatcher(CONDUCTOR_METHODS, [Heartbeats()]), receiver)
    context = daemon_context()
    context.received = {KEY: proof}
    with pytest.raises(oslo_messaging.ExpectedException) as caught:
        endpoint.heartbeat(context, host='compute-1', digest='d', version='1.0')
    refusal = caught.value.exc_info[1]
    assert isinstance(refusal, MessageRefused)
    reason = str(refusal.kwargs['reason']).split(',')[0]
    assert reason in ('unsigned', 'wrong signature')
    assert all(len(line) < 400 for line in caplog.text.splitlines())
    assert 'All is well' not in caplog.text


def test_reply_with_malformed_signature_is_refused() -> None:
    signer = Signer(AGENT, OwnKeys(AGENT, (derive_key(SECRET, AGENT),)))
    request = signer.sign(CONDUCTOR, 'echo', {}, {}, {})
    reply = {'signed_reply': ['result', True, '\N{LATIN SMALL LETTER E WITH ACUTE}']}
    with pytest.raises(MessageRefused):
        signer.read_reply(request, reply)
