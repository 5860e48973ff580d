# SPDX-License-Identifier: Apache-2.0
"""Tests of the clients: each declared method sends one message."""

from collections.abc import Sequence
from typing import Any

import pytest

from cyborg_lite.errors.daemons import MalformedData, ServiceUnavailable
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.devices.devices import AllocatedHandle, ConfirmedHandle
from cyborg_lite.rpc.client import (
    build_agents,
    build_conductor,
    is_reachable,
    serve_locally,
)
from cyborg_lite.rpc.context import RequestContext, daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves_host
from cyborg_lite.rpc.interface import Agents
from cyborg_lite.rpc.methods import AGENTS
from cyborg_lite.rpc.transport import Message
from tests.doubles.drivers import handle
from tests.support.api.conductor import LocalConductor


class Sender:
    """Keeps the last message and returns a fixed answer."""

    def __init__(self) -> None:
        self.message: Message | None = None
        self.answer: Any = None  # JSON
        self.error: Exception | None = None

    def __call__(self, context: RequestContext, message: Message) -> Any:
        self.message = message
        if self.error is not None:
            raise self.error
        return self.answer


@pytest.fixture
def sender() -> Sender:
    return Sender()


def test_call_sends_arguments_and_returns_typed_answer(sender: Sender) -> None:
    sender.answer = [0, 1]
    client = build_conductor(sender)
    assert client.choose_alternatives(daemon_context(), 'u') == (0, 1)
    expected = Message('choose_alternatives', {'uuid': 'u'}, '1.0', is_patient=True)
    assert sender.message == expected


@pytest.mark.parametrize(
    ('method', 'timeout'),
    [('echo', 5.0), ('check_database', 3.0), ('list_attribute_declarations', 7.0)],
)
def test_timeout_is_of_method_or_client(
    sender: Sender, method: str, timeout: float
) -> None:
    sender.answer = []
    getattr(build_conductor(sender, timeout=7.0), method)(daemon_context())
    assert sender.message is not None
    assert sender.message.timeout == timeout


def test_message_without_answer_is_marked(sender: Sender) -> None:
    client = build_conductor(sender)
    client.repeat_without_answer(daemon_context(), 'compute-1', 'token')
    assert sender.message is not None
    assert not sender.message.has_answer


def test_agent_without_answer_is_away(sender: Sender) -> None:
    sender.error = ServiceUnavailable(what='cyborg-lite-agent')
    with pytest.raises(HostAway, match='compute-1'):
        build_agents(sender).scan(daemon_context(), 'compute-1')


def test_is_reachable_follows_answer_of_conductor(sender: Sender) -> None:
    client = build_conductor(sender)
    assert is_reachable(client, daemon_context())
    sender.error = ServiceUnavailable(what='cyborg-lite-conductor')
    assert not is_reachable(client, daemon_context())


# --- services in this process ---


class Preparation:
    @serves_host(Agents.prepare)
    def prepare(
        self, handles: Sequence[AllocatedHandle]
    ) -> tuple[ConfirmedHandle, ...]:
        return tuple(item.confirm(needs_connect=True) for item in handles)


def test_local_agent_serves_any_host() -> None:
    agents = build_agents(serve_locally(Dispatcher(AGENTS, [Preparation()])))
    prepared = agents.prepare(daemon_context(), 'compute-1', [handle(uuid='a')])
    assert prepared == (handle(uuid='a').confirm(),)
    assert prepared[0].needs_connect


@pytest.mark.parametrize(
    ('method', 'arguments'),
    [
        ('list_arqs', {'query': 'text'}),
        ('bind_arqs', {'bindings': {'a': {'hostname': 3}}}),
        ('report_changes', {'host': 'compute-1', 'changes': 'text'}),
        ('report_events', {'host': 'compute-1', 'events': [{'number': 'x'}]}),
    ],
)
def test_malformed_argument_is_refused(method: str, arguments: dict[str, Any]) -> None:
    send = serve_locally(LocalConductor().dispatcher)
    with pytest.raises(MalformedData):
        send(daemon_context(), Message(method, arguments, '1.0'))
