# SPDX-License-Identifier: Apache-2.0
"""Tests of the messaging driver for daemons in one process."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from cyborg_lite.rpc import transport
from cyborg_lite.rpc.local.broker import Broker, Key, Listener, Message

TOPIC = 'topic'

Connect = Callable[[], Any]  # a transport; oslo.messaging is untyped


@pytest.fixture
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Return a factory of transports on a bus of this test only."""
    transports = []

    def _connect() -> Any:
        conf = cfg.ConfigOpts()
        conf([])
        transport.address(conf)  # registers the option that is set below
        conf.set_override('transport_url', f'local:///{request.node.name}')
        connected = transport.connect(conf)
        transports.append(connected)
        return connected

    yield _connect
    for connected in transports:
        connected.cleanup()


class Echo:
    """Endpoint that returns the name of its server and records its arguments."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.received: list[object] = []
        self.entered = threading.Semaphore(0)
        self.may_continue = threading.Event()

    def ask(self, context: Any, value: object) -> dict[str, object]:
        return {'by': self.name, 'value': value}

    def notify(self, context: Any, value: object) -> None:
        self.received.append(value)
        self.entered.release()

    def linger(self, context: Any, value: object) -> object:
        self.entered.release()
        self.may_continue.wait()
        self.received.append(value)
        return value

    def keep(self, context: Any, values: list[object]) -> list[object]:
        values.append(self.name)
        return values

    def unknown_error(self, context: Any) -> None:
        raise ZeroDivisionError('of the server')


Serve = Callable[[str], tuple[Any, Echo]]


@pytest.fixture
def serve(connect: Connect) -> Iterator[Serve]:
    started: list[tuple[Any, Echo]] = []

    def _serve(name: str) -> tuple[Any, Echo]:
        echo = Echo(name)
        server = oslo_messaging.get_rpc_server(
            connect(),
            oslo_messaging.Target(topic=TOPIC, server=name),
            [echo],
            access_policy=oslo_messaging.DefaultRPCAccessPolicy,
        )
        server.start()
        started.append((server, echo))
        return server, echo

    yield _serve
    for server, echo in started:
        echo.may_continue.set()
        server.stop()


def client(connected: Any, timeout: float = 30, **options: Any) -> Any:
    target = oslo_messaging.Target(topic=TOPIC)
    return oslo_messaging.get_rpc_client(connected, target).prepare(
        timeout=timeout, **options
    )


def test_call_returns_answer(connect: Connect, serve: Serve) -> None:
    serve('one')
    assert client(connect()).call({}, 'ask', value=[1, None, 'é']) == {
        'by': 'one',
        'value': [1, None, 'é'],
    }


def test_call_from_many_threads_returns_own_answers(
    connect: Connect, serve: Serve
) -> None:
    for name in ('one', 'two', 'three'):
        serve(name)
    caller = client(connect())

    def ask(number: int) -> tuple[int, str]:
        answer = caller.call({}, 'ask', value=number)
        return answer['value'], answer['by']

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(800)))
    assert [value for value, _by in answers] == list(range(800))
    assert {by for _value, by in answers} == {'one', 'two', 'three'}


def test_cast_reaches_exactly_one_server(connect: Connect, serve: Serve) -> None:
    echoes = [serve(name)[1] for name in ('one', 'two')]
    entered = echoes[0].entered = echoes[1].entered
    caller = client(connect())
    with ThreadPoolExecutor(16) as pool:
        list(
            pool.map(lambda number: caller.cast({}, 'notify', value=number), range(400))
        )
    for _cast in range(400):
        assert entered.acquire(timeout=30)
    notifications = Counter(value for echo in echoes for value in echo.received)
    assert notifications == Counter(range(400))


def test_call_to_named_server_reaches_only_it(connect: Connect, serve: Serve) -> None:
    serve('one')
    serve('two')
    to_two = client(connect(), server='two')
    assert {to_two.call({}, 'ask', value=n)['by'] for n in range(20)} == {'two'}


def test_fanout_is_refused(connect: Connect, serve: Serve) -> None:
    with pytest.raises(NotImplementedError):
        client(connect(), fanout=True).cast({}, 'notify', value='all')


def test_call_without_server_times_out_and_is_dropped(
    connect: Connect, serve: Serve
) -> None:
    caller = client(connect(), timeout=0.01)
    with pytest.raises(oslo_messaging.MessagingTimeout):
        caller.call({}, 'notify', value='too late')
    _server, echo = serve('one')
    client(connect()).call({}, 'ask', value=0)
    assert echo.received == []


def test_call_waits_for_later_server(connect: Connect, serve: Serve) -> None:
    caller = client(connect())
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(caller.call, {}, 'ask', value=1)
        serve('late')
        assert answer.result(30)['by'] == 'late'


def test_call_timeout_does_not_interrupt_server(connect: Connect, serve: Serve) -> None:
    _server, echo = serve('one')
    is_taken = False
    # A call that the server has not taken within the timeout is dropped.
    while not is_taken:
        with pytest.raises(oslo_messaging.MessagingTimeout):
            client(connect(), timeout=1.0).call({}, 'linger', value='done anyway')
        is_taken = echo.entered.acquire(blocking=False)
    echo.may_continue.set()
    assert client(connect()).call({}, 'linger', value='next') == 'next'
    while 'done anyway' not in echo.received:
        time.sleep(0.01)


def test_call_foreign_exception_is_raised_as_remote_error(
    connect: Connect, serve: Serve
) -> None:
    """The client rebuilds exceptions of this package only, as with RabbitMQ."""

    class Foreign(Exception):
        pass

    _server, echo = serve('one')
    echo.unknown_error = _raising(Foreign)  # type: ignore[method-assign]  # one case
    with pytest.raises(oslo_messaging.RemoteError):
        client(connect()).call({}, 'unknown_error')


def _raising(error: type[Exception]) -> Any:
    def method(context: Any) -> None:
        raise error

    return method


def test_call_arguments_are_copied(connect: Connect, serve: Serve) -> None:
    serve('one')
    values: list[object] = [1]
    assert client(connect()).call({}, 'keep', values=values) == [1, 'one']
    assert values == [1]


def test_call_argument_without_json_form_raises(connect: Connect, serve: Serve) -> None:
    serve('one')
    with pytest.raises(ValueError, match='primitive'):
        client(connect()).call({}, 'ask', value=threading.Lock())


def test_stop_finishes_running_call_and_accepts_no_other(
    connect: Connect, serve: Serve
) -> None:
    server, echo = serve('one')
    caller = client(connect())
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(caller.call, {}, 'linger', value='in hand')
        assert echo.entered.acquire(timeout=30)
        server.stop()
        caller.cast({}, 'notify', value='afterwards')
        echo.may_continue.set()
        server.wait()
        assert answer.result(30) == 'in hand'
    assert echo.received == ['in hand']


def test_message_after_stop_is_processed_by_next_server(
    connect: Connect, serve: Serve
) -> None:
    server, first = serve('one')
    server.stop()
    client(connect()).cast({}, 'notify', value='left')
    _server, second = serve('one')
    assert second.entered.acquire(timeout=30)
    assert (first.received, second.received) == ([], ['left'])


def test_server_restart_serves_again(connect: Connect, serve: Serve) -> None:
    server, _echo = serve('one')
    server.stop()
    server.wait()
    server.start()
    assert client(connect()).call({}, 'ask', value=1)['by'] == 'one'


def test_virtual_hosts_use_separate_brokers(connect: Connect, serve: Serve) -> None:
    _server, echo = serve('one')
    conf = cfg.ConfigOpts()
    conf([])
    second_bus = transport.connect(conf, url='local:///other')
    client(second_bus).cast({}, 'notify', value='other')
    client(connect()).call({}, 'ask', value=0)
    second_bus.cleanup()
    assert echo.received == []


ANY: Key = ('exchange', TOPIC, None)


@pytest.fixture
def broker() -> Broker:
    return Broker()


def build_message(broker: Broker, number: int = 0) -> Message:
    return Message(broker, ANY, json.dumps([{}, {'n': number}]))


def poll(listener: Listener) -> list[int]:
    """Return the number of the next message, if one is queued."""
    return [received.message['n'] for received in listener.poll(timeout=0)]


def test_deliver_before_listener_is_received_in_order(broker: Broker) -> None:
    for number in range(3):
        broker.deliver(ANY, build_message(broker, number))
    listener = Listener(broker, (ANY,))
    assert [poll(listener) for _ in range(4)] == [[0], [1], [2], []]


def test_reply_to_cast_is_ignored(broker: Broker) -> None:
    message = build_message(broker)
    message.reply('x')
    message.heartbeat()
    assert message.answer is None


def test_listeners_without_message_do_not_poll(broker: Broker) -> None:
    """Listeners wait without a timeout until a message or a stop."""
    listeners = [Listener(broker, (ANY,)) for _ in range(4)]
    limits: list[float | None] = []
    wait = threading.Condition.wait

    def record(self: threading.Condition, timeout: float | None = None) -> bool:
        limits.append(timeout)
        return wait(self, timeout)

    broker._changed.wait = partial(record, broker._changed)  # type: ignore[method-assign]  # seam
    with ThreadPoolExecutor(4) as pool:
        results = [pool.submit(listener.poll) for listener in listeners]
        broker.deliver(ANY, build_message(broker))
        next(as_completed(results))
        for listener in listeners:
            listener.stop()
        assert sum(len(result.result()) for result in results) == 1
    assert set(limits) <= {None}


def test_requeue_returns_message_to_listener(broker: Broker) -> None:
    listener = Listener(broker, (ANY,))
    broker.deliver(ANY, build_message(broker, 1))
    (message,) = listener.poll()
    message.requeue()
    assert poll(listener) == [1]
