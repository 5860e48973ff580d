# SPDX-License-Identifier: Apache-2.0
"""Tests of the client of the agents: messages, answers and errors."""

from collections.abc import Callable, Iterator
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from cyborg_lite.exceptions import DriverError, HostAway, LoadingFailed
from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.cleaning import CleanOrder, CleanProgressState
from cyborg_lite.model.devices import AllocatedHandle
from cyborg_lite.model.inventory import Device
from cyborg_lite.model.modes import (
    DeviceMode,
    DeviceModes,
    ModeOrder,
    OfferedInventory,
)
from cyborg_lite.rpc import transport, wire
from cyborg_lite.rpc.agent import VERSION, AgentAPI
from cyborg_lite.rpc.context import daemon_context
from tests.builders.bitstream_files import bitstream
from tests.builders.reports import card
from tests.builders.unclean_units import build_progress
from tests.doubles.drivers import handle

MODES = DeviceModes(
    '0000:01:00.0',
    (OfferedInventory('CUSTOM_QAT', 4, ('CUSTOM_DC',)),),
    (DeviceMode('dc', (), is_current=True),),
    declared='dc',
)
ORDER = LoadOrder('0000:01:00.0', '_region0', bitstream(), ordered_at=3)


PROGRESS = build_progress(CleanProgressState.RUNNING, 'erase')


class RecordingAgent:
    """Endpoint that records the arguments of each call."""

    target = transport.interface(VERSION)

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.error: Exception | None = None
        self.connecting: list[str] | None = None  # None: as agents before 1.6

    def _record(self, method: str, argument: Any) -> None:
        self.calls.append((method, argument))
        if self.error is not None:
            raise self.error

    @transport.endpoint
    def prepare(self, context: Any, handles: Any) -> Any:
        self._record('prepare', wire.load_all(AllocatedHandle, handles))
        return self.connecting

    @transport.endpoint
    def connect(self, context: Any, handles: Any) -> None:
        self._record('connect', wire.load_all(AllocatedHandle, handles))

    @transport.endpoint
    def release(self, context: Any, handles: Any) -> None:
        self._record('release', wire.load_all(AllocatedHandle, handles))

    @transport.endpoint
    def read_cleaning(self, context: Any, order: Any) -> Any:
        self._record('read_cleaning', wire.load(CleanOrder, order))
        return wire.dump(PROGRESS)

    @transport.endpoint
    def start_cleaning(self, context: Any, order: Any, session: str) -> Any:
        self._record(f'start_cleaning {session}', wire.load(CleanOrder, order))
        return wire.dump(PROGRESS)

    @transport.endpoint
    def abort_cleaning(self, context: Any, order: Any) -> Any:
        self._record('abort_cleaning', wire.load(CleanOrder, order))
        return wire.dump(PROGRESS)

    @transport.endpoint
    def list_modes(self, context: Any) -> Any:
        self._record('list_modes', None)
        return wire.dump([MODES])

    @transport.endpoint
    def set_mode(self, context: Any, order: Any) -> Any:
        self._record('set_mode', wire.load(ModeOrder, order))
        return wire.dump(card(1))

    @transport.endpoint
    def program(self, context: Any, order: Any) -> Any:
        self._record('program', wire.load(LoadOrder, order))
        return wire.dump(card(1))


@pytest.fixture
def bus(request: pytest.FixtureRequest) -> Iterator[oslo_messaging.Transport]:
    conf = cfg.ConfigOpts()
    conf([])
    transport.address(conf)  # registers the option that is set below
    conf.set_override('transport_url', f'local:///{request.node.name}')
    connection = transport.connect(conf)
    yield connection
    connection.cleanup()


@pytest.fixture
def agent(bus: oslo_messaging.Transport) -> Iterator[RecordingAgent]:
    endpoint = RecordingAgent()
    server = transport.serve(bus, transport.AGENT_TOPIC, 'compute-1', [endpoint])
    server.start()
    yield endpoint
    server.stop()


@pytest.fixture
def client(bus: oslo_messaging.Transport) -> AgentAPI:
    return AgentAPI(bus, timeout=30, load_timeout=30)


def test_prepare_and_release_transfer_handles(
    client: AgentAPI, agent: RecordingAgent
) -> None:
    handles = (handle(uuid='a'), handle(uuid='b'))
    client.prepare(daemon_context(), 'compute-1', handles)
    client.release(daemon_context(), 'compute-1', handles[:1])
    assert agent.calls == [('prepare', handles), ('release', handles[:1])]


@pytest.mark.parametrize('answer', [None, [], ['a']])
def test_prepare_returns_handles_to_connect(
    answer: list[str] | None, client: AgentAPI, agent: RecordingAgent
) -> None:
    agent.connecting = answer
    handles = (handle(uuid='a'),)
    uuids = client.prepare(daemon_context(), 'compute-1', handles)
    assert uuids == tuple(answer or ())
    client.connect(daemon_context(), 'compute-1', handles)
    assert agent.calls[-1] == ('connect', handles)


def test_program_transfers_order_and_returns_device(
    client: AgentAPI, agent: RecordingAgent
) -> None:
    device: Device = client.program(daemon_context(), 'compute-1', ORDER)
    assert device == card(1)
    assert agent.calls == [('program', ORDER)]


@pytest.mark.parametrize(
    'error', [DriverError(reason='busy'), LoadingFailed(image='x', reason='CRC error')]
)
def test_program_raises_error_of_agent(
    client: AgentAPI, agent: RecordingAgent, error: DriverError
) -> None:
    agent.error = error
    with pytest.raises(type(error)) as caught:
        client.program(daemon_context(), 'compute-1', ORDER)
    assert caught.value.text == error.text


def test_cleaning_calls_transfer_order_and_progress(
    client: AgentAPI, agent: RecordingAgent
) -> None:
    order, place = CleanOrder(3, handle(), ('erase',)), (daemon_context(), 'compute-1')
    assert client.read_cleaning(*place, order) == PROGRESS
    assert client.start_cleaning(*place, order, 'session-1') == PROGRESS
    assert client.abort_cleaning(*place, order) == PROGRESS
    assert agent.calls == [
        ('read_cleaning', order),
        ('start_cleaning session-1', order),
        ('abort_cleaning', order),
    ]


def test_cleaning_agent_of_earlier_release_raises(
    bus: oslo_messaging.Transport, client: AgentAPI
) -> None:
    class EarlierAgent:
        target = transport.interface('1.2')

    server = transport.serve(bus, transport.AGENT_TOPIC, 'compute-1', [EarlierAgent()])
    server.start()
    with pytest.raises(DriverError, match='cannot clean'):
        client.read_cleaning(daemon_context(), 'compute-1', CleanOrder(1, handle()))
    server.stop()


CALLS: list[Callable[[AgentAPI], object]] = [
    lambda client: client.prepare(daemon_context(), 'compute-2', [handle()]),
    lambda client: client.release(daemon_context(), 'compute-2', [handle()]),
    lambda client: client.program(daemon_context(), 'compute-2', ORDER),
]


@pytest.mark.parametrize('call', CALLS)
def test_call_to_unreachable_host_raises_host_away(
    bus: oslo_messaging.Transport, call: Callable[[AgentAPI], object]
) -> None:
    with pytest.raises(HostAway, match='compute-2'):
        call(AgentAPI(bus, timeout=0, load_timeout=0))


def test_modes_are_transferred(client: AgentAPI, agent: RecordingAgent) -> None:
    assert client.list_modes(daemon_context(), 'compute-1') == (MODES,)
    order = ModeOrder('0000:01:00.0', 'dc', ordered_at=3)
    assert client.set_mode(daemon_context(), 'compute-1', order) == card(1)
    assert agent.calls == [('list_modes', None), ('set_mode', order)]
