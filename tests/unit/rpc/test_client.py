# SPDX-License-Identifier: Apache-2.0
"""Tests of the clients: each declared method sends one message."""

from collections.abc import Sequence
from typing import Any

import pytest

from cyborg_lite.errors.arqs import ArqNotFound
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.devices.devices import AllocatedHandle, ConfirmedHandle
from cyborg_lite.model.devices.modes import ModeOrder
from cyborg_lite.model.queries import Page, Query
from cyborg_lite.rpc.client import (
    build_agents,
    build_conductor,
    is_reachable,
    serve_locally,
)
from cyborg_lite.rpc.context import RequestContext, daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves, serves_host
from cyborg_lite.rpc.interface import Agents, Conductor
from cyborg_lite.rpc.methods import AGENTS, CONDUCTOR
from cyborg_lite.rpc.transport import Message
from tests.doubles.drivers import handle


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
    sender.answer = ['p', 'q']
    client = build_conductor(sender)
    assert client.grant_profile_access(daemon_context(), 'u', ['q']) == ('p', 'q')
    arguments = {'uuid': 'u', 'projects': ['q']}
    expected = Message('grant_profile_access', arguments, '1.0', is_patient=True)
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


def test_agent_call_names_host_and_slow_timeout(sender: Sender) -> None:
    sender.answer = 'digest'
    agents = build_agents(sender, timeout=7.0, load_timeout=180.0)
    assert agents.scan(daemon_context(), 'compute-1') == 'digest'
    assert sender.message == Message('scan', {}, '1.0', 7.0, host='compute-1')
    sender.error = DriverError(reason='of a test')
    with pytest.raises(DriverError, match='of a test'):
        agents.set_mode(daemon_context(), 'compute-1', ModeOrder('0000:3b:00.0', 'vf'))
    assert sender.message.timeout == 180.0


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


class Services:
    """Services that keep what they receive."""

    def __init__(self) -> None:
        self.received: list[object] = []

    # Any: the answer is a page of no records.
    @serves(Conductor.list_arqs)
    def list_arqs(self, context: RequestContext, query: Query) -> Any:
        self.received += [query, context.user_id]
        return Page.build((), 'W10')

    @serves(Conductor.unbind_arqs)
    def unbind_arqs(self, uuids: Sequence[str]) -> str:
        raise ArqNotFound(uuid=uuids[0])


def test_local_services_get_what_a_message_transfers() -> None:
    services = Services()
    client = build_conductor(serve_locally(Dispatcher(CONDUCTOR, [services])))
    query = Query(filters={'uuid': ('u',)}, limit=2)
    page = client.list_arqs(RequestContext(user_id='joe'), query)
    assert isinstance(page, Page)
    assert (page, page.cursor) == ((), 'W10')
    assert services.received == [query, 'joe']
    assert services.received[0] is not query
    with pytest.raises(ArqNotFound, match='x'):
        client.unbind_arqs(daemon_context(), ['x'])


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
