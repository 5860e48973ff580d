# SPDX-License-Identifier: Apache-2.0
"""Messaging inside one process: who gets what, whatever the threads do."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from cyborg_lite.exceptions import ArqNotFound
from cyborg_lite.rpc import local, local_broker, transport

TOPIC = 'topic'

Connect = Callable[[], Any]  # a transport; the library is untyped


@pytest.fixture
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Makes transports that meet one another and nobody else."""
    opened = []

    def _connect() -> Any:
        conf = cfg.ConfigOpts()
        conf([])
        transport.address(conf)  # registers the option that is set below
        conf.set_override('transport_url', f'local:///{request.node.name}')
        connected = transport.connect(conf)
        opened.append(connected)
        return connected

    yield _connect
    for connected in opened:
        connected.cleanup()


class Echo:
    """Answers with the name of its server; keeps what it was told."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.told: list[object] = []
        self.entered = threading.Semaphore(0)
        self.may_go_on = threading.Event()

    def ask(self, context: Any, value: object) -> dict[str, object]:
        return {'by': self.name, 'value': value}

    def tell(self, context: Any, value: object) -> None:
        self.told.append(value)
        self.entered.release()

    def linger(self, context: Any, value: object) -> object:
        self.entered.release()
        self.may_go_on.wait()
        self.told.append(value)
        return value

    @transport.endpoint
    def fail(self, context: Any) -> None:
        raise ArqNotFound(uuid='one')

    @transport.endpoint
    def keep(self, context: Any, values: list[object]) -> list[object]:
        values.append(self.name)
        return values

    def unknown_error(self, context: Any) -> None:
        raise ZeroDivisionError('of the server')

    def unsendable(self, context: Any) -> object:
        return object()


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
        echo.may_go_on.set()
        server.stop()


def client(connected: Any, timeout: float = 30, **options: Any) -> Any:
    target = oslo_messaging.Target(topic=TOPIC)
    return oslo_messaging.get_rpc_client(connected, target).prepare(
        timeout=timeout, **options
    )


def test_a_call_comes_back_with_the_answer(connect: Connect, serve: Serve) -> None:
    serve('one')
    assert client(connect()).call({}, 'ask', value=[1, None, 'é']) == {
        'by': 'one',
        'value': [1, None, 'é'],
    }


def test_sixteen_threads_get_each_their_own_answers(
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


def test_each_cast_reaches_exactly_one_server(connect: Connect, serve: Serve) -> None:
    echoes = [serve(name)[1] for name in ('one', 'two')]
    entered = echoes[0].entered = echoes[1].entered
    caller = client(connect())
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: caller.cast({}, 'tell', value=number), range(400)))
    for _cast in range(400):
        assert entered.acquire(timeout=30)
    told = Counter(value for echo in echoes for value in echo.told)
    assert told == Counter(range(400))


def test_a_named_server_alone_gets_what_is_sent_to_it(
    connect: Connect, serve: Serve
) -> None:
    serve('one')
    serve('two')
    to_two = client(connect(), server='two')
    assert {to_two.call({}, 'ask', value=n)['by'] for n in range(20)} == {'two'}


def test_a_fanout_reaches_every_server_once(connect: Connect, serve: Serve) -> None:
    echoes = [serve(name)[1] for name in ('one', 'two', 'three')]
    client(connect(), fanout=True).cast({}, 'tell', value='all')
    for echo in echoes:
        assert echo.entered.acquire(timeout=30)
    assert [echo.told for echo in echoes] == [['all']] * 3


def test_a_call_without_a_server_times_out_and_is_never_run(
    connect: Connect, serve: Serve
) -> None:
    caller = client(connect(), timeout=0.01)
    with pytest.raises(oslo_messaging.MessagingTimeout):
        caller.call({}, 'tell', value='too late')
    _server, echo = serve('one')
    client(connect()).call({}, 'ask', value=0)
    assert echo.told == []


def test_a_call_waits_for_a_server_that_starts_later(
    connect: Connect, serve: Serve
) -> None:
    caller = client(connect())
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(caller.call, {}, 'ask', value=1)
        serve('late')
        assert asked.result(30)['by'] == 'late'


def test_a_timeout_leaves_the_server_at_work(connect: Connect, serve: Serve) -> None:
    _server, echo = serve('one')
    with pytest.raises(oslo_messaging.MessagingTimeout):
        client(connect(), timeout=0.01).call({}, 'linger', value='done anyway')
    echo.may_go_on.set()
    assert client(connect()).call({}, 'linger', value='next') == 'next'
    assert 'done anyway' in echo.told


def test_an_error_of_ours_arrives_as_itself(connect: Connect, serve: Serve) -> None:
    serve('one')
    with pytest.raises(ArqNotFound) as caught:
        client(connect()).call({}, 'fail')
    assert caught.value.text == 'Accelerator request one not found.'
    assert caught.value.kwargs == {'uuid': 'one'}


def test_a_foreign_error_arrives_as_a_remote_one(
    connect: Connect, serve: Serve
) -> None:
    """As with a broker: only errors of ours are rebuilt."""

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


def test_arguments_are_copies_as_on_a_wire(connect: Connect, serve: Serve) -> None:
    serve('one')
    mine: list[object] = [1]
    assert client(connect()).call({}, 'keep', values=mine) == [1, 'one']
    assert mine == [1]


def test_what_is_no_json_is_refused_at_the_sender(
    connect: Connect, serve: Serve
) -> None:
    serve('one')
    with pytest.raises(ValueError, match='primitive'):
        client(connect()).call({}, 'ask', value=threading.Lock())


def test_stopping_finishes_what_is_in_hand_and_takes_nothing_new(
    connect: Connect, serve: Serve
) -> None:
    server, echo = serve('one')
    caller = client(connect())
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(caller.call, {}, 'linger', value='in hand')
        assert echo.entered.acquire(timeout=30)
        server.stop()
        caller.cast({}, 'tell', value='afterwards')
        echo.may_go_on.set()
        server.wait()
        assert asked.result(30) == 'in hand'
    assert echo.told == ['in hand']


def test_what_a_stopped_server_left_is_taken_by_the_next_one(
    connect: Connect, serve: Serve
) -> None:
    server, first = serve('one')
    server.stop()
    client(connect()).cast({}, 'tell', value='left')
    _server, second = serve('one')
    assert second.entered.acquire(timeout=30)
    assert (first.told, second.told) == ([], ['left'])


def test_a_server_can_be_started_again(connect: Connect, serve: Serve) -> None:
    server, _echo = serve('one')
    server.stop()
    server.wait()
    server.start()
    assert client(connect()).call({}, 'ask', value=1)['by'] == 'one'


def test_virtual_hosts_do_not_hear_one_another() -> None:
    one, other = local._broker_of('one'), local._broker_of('other')
    assert one is local._broker_of('one')
    assert one is not other


class RecordingBell(threading.Condition):
    """Knows with what limits it was waited on."""

    def __init__(self, lock: threading.Lock) -> None:
        super().__init__(lock)
        self.limits: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.limits.append(timeout)
        return super().wait(timeout)


def test_a_message_wakes_one_listener_and_silence_wakes_none() -> None:
    """The promise of this driver: nothing polls."""
    broker = local_broker.Broker()
    key: local_broker.Key = ('exchange', TOPIC, None)
    listeners = [broker.join((key,)) for _ in range(4)]
    bells = [RecordingBell(broker.lock) for _ in listeners]
    for listener, bell in zip(listeners, bells, strict=True):
        listener.bell = bell
    taken = threading.Semaphore(0)

    def listen(listener: local_broker.Listener) -> int:
        count = 0
        while listener.poll():
            count += 1
            taken.release()
        return count

    with ThreadPoolExecutor(4) as pool:
        served = [pool.submit(listen, listener) for listener in listeners]
        for _message in range(100):
            broker.deliver(key, local_broker.Message(broker, key, '[{}, {}]'))
            assert taken.acquire(timeout=30)
        for listener in listeners:
            listener.stop()
        assert sum(result.result() for result in served) == 100
    # One for each message at most, and one for each stop.
    assert sum(listener.wake_ups for listener in listeners) <= 104
    assert {limit for bell in bells for limit in bell.limits} == {None}


def test_a_listener_that_stops_passes_on_what_it_was_promised() -> None:
    broker = local_broker.Broker()
    key: local_broker.Key = ('exchange', TOPIC, None)
    first, second = broker.join((key,)), broker.join((key,))
    first.idle = second.idle = True  # as if both waited
    broker.deliver(key, local_broker.Message(broker, key, '[{}, {}]'))
    assert (first.idle, second.idle) == (False, True)
    first.stop()
    assert second.idle is False
    assert first.poll() == []
    assert len(second.poll()) == 1


def test_a_heartbeat_keeps_a_long_call_alive() -> None:
    """Silence for longer than the limit ends the wait; a sign of life does not."""
    answer = local_broker.Answer()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(answer.wait, None, 30)
        answer.beat()
        answer.give('done')
        assert waiting.result() == 'done'
    assert local_broker.Answer().wait(None, 0.01) is None
    assert local_broker.Answer().wait(0.01, None) is None
    assert local_broker.Answer().wait(0, 30) is None


def test_a_message_can_be_put_back() -> None:
    broker = local_broker.Broker()
    key: local_broker.Key = ('exchange', TOPIC, None)
    listener = broker.join((key,))
    broker.deliver(key, local_broker.Message(broker, key, '[{}, {"n": 1}]'))
    (message,) = listener.poll()
    message.requeue()
    assert listener.poll()[0].message == {'n': 1}
