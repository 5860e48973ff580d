# SPDX-License-Identifier: Apache-2.0
"""Tests of calls between daemons: request context, errors and message size."""

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import oslo_messaging
import pytest
from oslo_concurrency import lockutils
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_messaging._drivers import amqpdriver

from cyborg_lite.errors.arqs import ArqNotFound
from cyborg_lite.errors.daemons import ConfigurationError, ServiceUnavailable
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import (
    Client,
    connect_agents,
    connect_conductor,
)
from cyborg_lite.rpc.context import RequestContext, daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.methods import AGENTS, CONDUCTOR, read_interface
from cyborg_lite.rpc.terms import Terms
from cyborg_lite.rpc.upgrade_levels import Pins


class Services:
    """Services that record the request context of each caller."""

    def __init__(self) -> None:
        self.callers: list[RequestContext] = []
        self.current: list[Any] = []

    # Any: arguments that the tests do not read.
    @serves(Conductor.heartbeat)
    def heartbeat(self, context: RequestContext, *_: Any, **__: Any) -> bool:
        self.callers.append(context)
        self.current.append(oslo_context.get_current())
        return True

    @serves(Conductor.delete_arqs)
    def delete_arqs(self, uuids: Sequence[str]) -> None:
        raise ArqNotFound(uuid=uuids[0])

    @serves(Conductor.echo)
    def echo(self) -> None:
        """Do nothing."""


@pytest.fixture
def conf(request: pytest.FixtureRequest) -> cfg.ConfigOpts:
    """Return options of this test, separate from the global ones."""
    options = cfg.ConfigOpts()
    options([])
    transport.address(options)
    options.set_override('transport_url', f'local:///{request.node.name}')
    return options


@pytest.fixture
def bus(conf: cfg.ConfigOpts) -> Iterator[Any]:
    transport_bus = transport.connect(conf)
    yield transport_bus
    transport_bus.cleanup()


@pytest.fixture
def services(bus: Any) -> Iterator[Services]:
    served = Services()
    server = transport.serve(bus, 'one', Dispatcher(CONDUCTOR, [served]))
    server.start()
    yield served
    server.stop()


def test_call_sets_current_context_of_server(bus: Any, services: Services) -> None:
    connect_conductor(bus).heartbeat(
        RequestContext(request_id='req-1'), 'cpu1', 'd', '1'
    )
    (current,) = services.current
    assert current.request_id == 'req-1'


def test_call_never_transmits_token(bus: Any, services: Services) -> None:
    caller = RequestContext(auth_token='gAAAA-secret')
    connect_conductor(bus).heartbeat(caller, 'cpu1', 'digest', '1')
    assert services.callers[0].auth_token is None
    assert 'gAAAA-secret' not in str(caller.to_dict())


def test_call_own_exception_is_raised_with_its_type(
    bus: Any, services: Services
) -> None:
    with pytest.raises(ArqNotFound) as caught:
        connect_conductor(bus).delete_arqs(daemon_context(), ['x'])
    assert caught.value.text == 'ARQ x not found.'


def test_call_without_conductor_raises_service_unavailable(
    conf: cfg.ConfigOpts, bus: Any
) -> None:
    api = connect_conductor(bus)
    # oslo.messaging registers the option with the first client.
    oslo_messaging.get_rpc_client(bus, oslo_messaging.Target(topic='any'))
    conf.set_override('rpc_response_timeout', 0)
    with pytest.raises(ServiceUnavailable, match='cyborg-lite-conductor'):
        api.heartbeat(daemon_context(), 'cpu1', 'digest', '1')


def test_method_that_no_service_implements_is_unavailable(bus: Any) -> None:
    server = transport.serve(bus, 'cpu1', Dispatcher(AGENTS, ()))
    server.start()
    with pytest.raises(HostAway):
        connect_agents(bus, timeout=30).read_boot_id(daemon_context(), 'cpu1')
    server.stop()


class NextConductor(Protocol):
    """A later version of an interface."""

    @Terms(added={'generation': '1.2'})
    def change(self, context: RequestContext, generation: int | None = None) -> None:
        """Return nothing."""

    @Terms(since='1.1')
    def create(self, context: RequestContext) -> None:
        """Return nothing."""

    @Terms(since='1.1', has_answer=False)
    def notify(self, context: RequestContext) -> None:
        """Return nothing."""


class NextServices:
    @serves(NextConductor.change)
    def change(self, generation: int | None = None) -> None:
        """Do nothing."""

    @serves(NextConductor.create)
    def create(self) -> None:
        """Do nothing."""


NEXT: Final = read_interface('cyborg_lite.conductor', NextConductor)


@pytest.fixture
def next_client(bus: Any) -> Iterator[Any]:
    """Return a client of a conductor of a later release."""
    server = transport.serve(bus, 'one', Dispatcher(NEXT, [NextServices()]))
    server.start()
    caller = transport.Caller(bus, NEXT.topic, NEXT.version)
    yield Client(NEXT, caller.send, timeout=30.0)
    server.stop()


def test_pinned_call_sends_only_what_the_version_has(
    bus: Any, next_client: Any
) -> None:
    context = daemon_context()
    next_client.create(context)
    next_client.change(context, 3)
    transport.pin_versions(bus, Pins({'conductor': '1.0'}, lambda: ()))
    next_client.change(context)
    for call in (next_client.create, next_client.notify):
        with pytest.raises(ServiceUnavailable, match='cyborg-lite-conductor'):
            call(context)
    with pytest.raises(ServiceUnavailable, match='cyborg-lite-conductor'):
        next_client.change(context, generation=3)


def test_server_of_earlier_release_refuses_later_calls(bus: Any) -> None:
    """The library finds no endpoint that is as new as the call."""
    server = transport.serve(bus, 'one', Dispatcher(CONDUCTOR, [Services()]))
    server.start()
    caller = transport.Caller(bus, NEXT.topic, NEXT.version)
    client: Any = Client(NEXT, caller.send, timeout=30.0)
    with pytest.raises(ServiceUnavailable) as refusal:
        client.create(daemon_context())
    server.stop()
    assert 'UnsupportedVersion' in repr(refusal.value.__cause__)


def test_connect_sets_poll_interval_of_library(conf: cfg.ConfigOpts) -> None:
    """The loops of oslo.messaging wait for the seconds of these constants."""
    transport.connect(conf).cleanup()
    for name in ('ACK_REQUEUE_EVERY_SECONDS_MIN', 'ACK_REQUEUE_EVERY_SECONDS_MAX'):
        for reader in (amqpdriver.AMQPListener, amqpdriver.ReplyWaiter):
            assert name in inspect.getsource(reader)
        assert getattr(amqpdriver, name) == 1.0


@pytest.mark.parametrize('reader', [amqpdriver.RpcAMQPListener, amqpdriver.ReplyWaiter])
def test_library_acknowledges_calls_and_replies_while_it_receives(
    reader: type[Any],
) -> None:
    """Otherwise an acknowledgement would wait for the poll interval."""
    assert 'message.acknowledge()' in inspect.getsource(reader.__call__)


def test_connect_accepts_several_buses_per_process() -> None:
    """The shortened constant also limits an option of the RabbitMQ driver."""
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


def test_connect_passes_lock_path_to_library(
    conf: cfg.ConfigOpts, tmp_path: Path
) -> None:
    """The queue manager of the library takes its lock with the global options."""
    before = lockutils.get_lock_path(cfg.CONF)
    lockutils.get_lock_path(conf)
    conf.set_override('lock_path', str(tmp_path), 'oslo_concurrency')
    try:
        transport.connect(conf).cleanup()
        with lockutils.external_lock('any'):
            assert (tmp_path / 'any').exists()
    finally:
        cfg.CONF.set_default('lock_path', before, 'oslo_concurrency')


@pytest.mark.parametrize('has_directory', [False, True])
def test_queue_manager_without_lock_files_is_fault(
    conf: cfg.ConfigOpts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_directory: bool,
) -> None:
    # The library reads the start time of the group leader, which may have ended.
    monkeypatch.setattr(os, 'getpgrp', os.getpid)
    file = tmp_path / 'queues.conf'
    option = f'lock_path = {file}/locks\n' if has_directory else ''
    file.write_text(
        '[oslo_messaging_rabbit]\nuse_queue_manager = true\n'
        f'[oslo_concurrency]\n{option}'
    )
    conf(['--config-file', str(file)])
    conf.set_override('transport_url', 'rabbit://nobody@127.0.0.1:1/')
    before = cfg.CONF.oslo_concurrency.lock_path
    if has_directory:
        transport.connect(conf).cleanup()
        fault = transport.find_lock_fault(conf)
        assert 'cannot create files' in fault
        assert 'Not a directory' in fault
        file.unlink()
        assert not transport.find_lock_fault(conf)
    else:
        with pytest.raises(ConfigurationError, match='requires a directory'):
            transport.connect(conf)
    cfg.CONF.set_default('lock_path', before, 'oslo_concurrency')


def test_connect_unknown_transport_is_refused(conf: cfg.ConfigOpts) -> None:
    conf.set_override('transport_url', 'rabit://joe:secret@one/')
    with pytest.raises(ConfigurationError, match='no transport rabit'):
        transport.connect(conf)


def test_address_invalid_url_hides_password(conf: cfg.ConfigOpts) -> None:
    conf.set_override('transport_url', 'joe secret@one')
    with pytest.raises(ConfigurationError) as caught:
        transport.address(conf)
    assert 'secret' not in caught.value.text


def test_connect_sets_own_exchange(conf: cfg.ConfigOpts) -> None:
    transport.connect(conf).cleanup()
    assert conf.control_exchange == 'cyborg_lite'


class ListenerWithBacklog:
    """Listener with messages that arrived while its connection was closed."""

    def __init__(self) -> None:
        self._poll_style_listener = self
        self._backlog = [['first'], ['second']]

    def poll(self, timeout: float) -> list[str]:
        return self._backlog.pop(0) if self._backlog else []


class ServerWithBacklog:
    def __init__(self) -> None:
        self.listener = ListenerWithBacklog()
        self.steps: list[str] = []

    def wait(self) -> None:
        self.steps.append('closed')

    def _process_incoming(self, messages: list[str]) -> None:
        self.steps += messages


def test_server_wait_processes_messages_received_while_closing() -> None:
    """oslo.messaging has acknowledged these messages; no other server gets them."""
    inner = ServerWithBacklog()
    transport.Server(inner).wait()
    assert inner.steps == ['closed', 'first', 'second']


def test_request_id_cannot_forge_lines_of_the_log() -> None:
    """The id is logged before the signature of its message is checked."""
    values = {'request_id': 'req-1\nINFO forged', 'project_id': 'a', 'roles': ['b\n']}
    context = transport._ContextSerializer().deserialize_context(values)
    assert context.request_id == 'req-1?INFO forged'
    assert context.project_id == 'a'
    assert context.received == values
