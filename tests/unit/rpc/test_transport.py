# SPDX-License-Identifier: Apache-2.0
"""Calls between daemons: who asks travels along, and failures have our names."""

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_messaging._drivers import amqpdriver

from cyborg_lite.exceptions import (
    ArqNotFound,
    CyborgError,
    HostAway,
    ServiceUnavailable,
)
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.rpc import transport, wire
from cyborg_lite.rpc.agent import AgentAPI
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import RequestContext, of_daemon

HANDLE = HeldHandle(
    uuid='u',
    arq_uuid='a',
    hostname='cpu1',
    deployable_name='cpu1_x',
    driver='fake_driver',
    address='x',
    key='x/0',
    type='PCI',
)


class Conductor:
    """Keeps who called, and as whom the log would see it."""

    def __init__(self) -> None:
        self.callers: list[RequestContext] = []
        self.current: list[Any] = []

    @transport.endpoint
    def heartbeat(self, context: RequestContext, **inventory: str) -> bool:
        self.callers.append(context)
        self.current.append(oslo_context.get_current())
        return True

    @transport.endpoint
    def delete_arqs(self, context: RequestContext, uuids: list[str]) -> None:
        raise ArqNotFound(uuid=uuids[0])

    @transport.endpoint
    def list_arqs(self, context: RequestContext, query: Any) -> list[Any]:
        raise wire.MalformedMessage(reason='of a test')

    @transport.endpoint
    def echo(self, context: RequestContext) -> None:
        self.callers.append(context)

    @transport.endpoint
    def delete_device_profiles(self, context: RequestContext, names: list[str]) -> None:
        raise ZeroDivisionError('password=secret')


class Agent:
    def __init__(self) -> None:
        self.prepared: list[Any] = []

    @transport.endpoint
    def prepare(self, context: RequestContext, handles: list[Any]) -> None:
        self.prepared += handles


@pytest.fixture
def conf(request: pytest.FixtureRequest) -> cfg.ConfigOpts:
    """One of our own, not the library's global one."""
    private = cfg.ConfigOpts()
    private([])
    transport.address(private)
    private.set_override('transport_url', f'local:///{request.node.name}')
    return private


@pytest.fixture
def bus(conf: cfg.ConfigOpts) -> Iterator[Any]:
    connected = transport.connect(conf)
    yield connected
    connected.cleanup()


@pytest.fixture
def conductor(bus: Any) -> Iterator[Conductor]:
    served = Conductor()
    server = transport.serve(bus, transport.CONDUCTOR_TOPIC, 'one', [served])
    server.start()
    yield served
    server.stop()


def test_conductors_are_heard_while_one_of_them_answers(
    bus: Any, conductor: Conductor
) -> None:
    assert ConductorAPI(bus).is_heard(of_daemon()) is True


def test_conductors_are_not_heard_when_there_is_none(bus: Any) -> None:
    assert ConductorAPI(bus).is_heard(of_daemon(), within=0) is False


def test_the_request_id_and_the_caller_reach_the_other_side(
    bus: Any, conductor: Conductor
) -> None:
    caller = RequestContext(
        user_id='joe',
        project_id='lab',
        roles=['member'],
        request_id='req-1',
        global_request_id='req-0',
        service_request=True,
    )
    assert ConductorAPI(bus).heartbeat(caller, 'cpu1', 'digest', '1') is True
    (seen,) = conductor.callers
    assert (seen.user_id, seen.project_id, seen.roles) == ('joe', 'lab', ['member'])
    assert (seen.request_id, seen.global_request_id) == ('req-1', 'req-0')
    assert seen.service_request is True


def test_the_log_of_the_other_side_sees_the_caller(
    bus: Any, conductor: Conductor
) -> None:
    ConductorAPI(bus).heartbeat(RequestContext(request_id='req-1'), 'cpu1', 'd', '1')
    (current,) = conductor.current
    assert current.request_id == 'req-1'


def test_the_token_never_reaches_the_bus(bus: Any, conductor: Conductor) -> None:
    caller = RequestContext(auth_token='gAAAA-secret')
    ConductorAPI(bus).heartbeat(caller, 'cpu1', 'digest', '1')
    assert conductor.callers[0].auth_token is None
    assert 'gAAAA-secret' not in str(caller.to_dict())


def test_each_act_of_a_daemon_has_its_own_request_id() -> None:
    assert of_daemon().request_id != of_daemon().request_id


def test_an_error_of_the_conductor_is_raised_as_itself(
    bus: Any, conductor: Conductor
) -> None:
    with pytest.raises(ArqNotFound) as caught:
        ConductorAPI(bus).delete_arqs(of_daemon(), ['x'])
    assert caught.value.text == 'Accelerator request x not found.'


def test_an_unexpected_error_is_raised_without_its_text(
    bus: Any, conductor: Conductor
) -> None:
    """What nobody foresaw may name a password; its place is the conductor's log."""
    with pytest.raises(CyborgError) as caught:
        ConductorAPI(bus).delete_device_profiles(of_daemon(), ['x'])
    assert caught.value.text == CyborgError.message
    assert caught.value.code == 500


def test_nobody_there_is_service_unavailable(conf: cfg.ConfigOpts, bus: Any) -> None:
    api = ConductorAPI(bus)
    # The library registers the option with the first client that it makes.
    oslo_messaging.get_rpc_client(bus, oslo_messaging.Target(topic='any'))
    conf.set_override('rpc_response_timeout', 0)
    with pytest.raises(ServiceUnavailable, match='cyborg-lite-conductor'):
        api.heartbeat(of_daemon(), 'cpu1', 'digest', '1')


def test_an_agent_hears_what_is_for_its_host(bus: Any) -> None:
    served = Agent()
    server = transport.serve(bus, transport.AGENT_TOPIC, 'cpu1', [served])
    server.start()
    AgentAPI(bus, timeout=30).prepare(of_daemon(), 'cpu1', [HANDLE])
    server.stop()
    assert wire.load_all(HeldHandle, served.prepared) == (HANDLE,)


def test_an_absent_agent_is_named_by_its_host(bus: Any) -> None:
    with pytest.raises(HostAway, match='host cpu2'):
        AgentAPI(bus, timeout=0).prepare(of_daemon(), 'cpu2', [HANDLE])


def test_servers_have_sixteen_workers(bus: Any) -> None:
    transport.serve(bus, transport.AGENT_TOPIC, 'cpu1', [])
    assert bus.conf.executor_thread_pool_size == 16


def test_an_idle_connection_hears_soon_that_it_is_to_end(conf: cfg.ConfigOpts) -> None:
    """The library's loops wait as long as its constant says, and that is their name."""
    transport.connect(conf).cleanup()
    for reader in (amqpdriver.AMQPListener, amqpdriver.ReplyWaiter):
        assert 'ACK_REQUEUE_EVERY_SECONDS_MAX' in inspect.getsource(reader)
    assert amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MAX == 1.0


def test_one_process_may_have_several_buses() -> None:
    """In any order: the constant above limits an option of the driver for RabbitMQ."""
    script = """
from oslo_config import cfg
from cyborg_lite.rpc import transport
for url in ('fake://', 'rabbit://nobody@127.0.0.1:1/'):
    conf = cfg.ConfigOpts()
    conf([])
    transport.address(conf)
    conf.set_override('transport_url', url)
    transport.connect(conf).cleanup()
"""
    subprocess.run([sys.executable, '-c', script], check=True)


def test_our_messages_have_an_exchange_of_their_own(conf: cfg.ConfigOpts) -> None:
    transport.connect(conf).cleanup()
    assert conf.control_exchange == 'cyborg_lite'


def test_the_address_of_the_bus_is_told_in_full(conf: cfg.ConfigOpts) -> None:
    conf.set_override('transport_url', 'rabbit://joe:secret@one:5672/cloud')
    assert transport.address(conf) == 'rabbit://joe:secret@one:5672/cloud'


class ClosingListener:
    """As that of a broker: hands out what came while its connection was closed."""

    def __init__(self) -> None:
        self._poll_style_listener = self
        self._left = [['first'], ['second']]

    def poll(self, timeout: float) -> list[str]:
        return self._left.pop(0) if self._left else []


class ClosingServer:
    def __init__(self) -> None:
        self.listener = ClosingListener()
        self.diary: list[str] = []

    def wait(self) -> None:
        self.diary.append('closed')

    def _process_incoming(self, messages: list[str]) -> None:
        self.diary += messages


def test_what_arrives_while_a_server_closes_is_answered() -> None:
    """The library has acknowledged it, so that no other server will."""
    inner = ClosingServer()
    transport.Server(inner).wait()
    assert inner.diary == ['closed', 'first', 'second']


def test_a_daemon_says_little_of_itself() -> None:
    """With 64 devices, as with one: what agents say most is a few hundred bytes."""
    said = of_daemon().to_wire()
    assert set(said) == {'is_admin', 'request_id', 'service_request'}
    vitals = {'boot_id': 'b' * 36}
    heartbeat = {'host': 'h' * 24, 'digest': 'd' * 32, 'version': '1.0.0'}
    message = {'method': 'heartbeat', 'args': {**heartbeat, 'vitals': vitals}}
    assert len(json.dumps(message)) + len(json.dumps(said)) < 400


@pytest.mark.parametrize(
    'words',
    [
        {},
        {'is_admin': True, 'read_only': True, 'show_deleted': True},
        {'is_admin_project': False, 'service_request': True},
        {
            'user_id': 'u',
            'project_id': 'p',
            'domain_id': 'd',
            'user_domain_id': 'ud',
            'project_domain_id': 'pd',
            'system_scope': 'all',
            'roles': ['admin', 'reader'],
            'global_request_id': 'req-2',
            'resource_uuid': 'r',
        },
    ],
)
def test_what_is_left_out_of_a_context_is_what_is_read_without_it(
    words: dict[str, Any],
) -> None:
    context = RequestContext(request_id='req-1', **words)
    again = RequestContext.from_dict(context.to_wire())
    for name in (
        'user_id',
        'project_id',
        'domain_id',
        'user_domain_id',
        'project_domain_id',
        'system_scope',
        'is_admin',
        'is_admin_project',
        'read_only',
        'show_deleted',
        'roles',
        'request_id',
        'global_request_id',
        'resource_uuid',
        'service_request',
    ):
        assert getattr(again, name) == getattr(context, name), name
