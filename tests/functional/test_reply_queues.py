# SPDX-License-Identifier: Apache-2.0
"""Names of the reply queues in a real RabbitMQ, and the errors that they carry."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.hosts import ServiceNotFound
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_conductor
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.methods import CONDUCTOR
from tests.servers import rabbitmq

OPTIONS = """
[DEFAULT]
transport_url = {url}
[oslo_messaging_rabbit]
use_queue_manager = true
[oslo_concurrency]
lock_path = {path}
"""


class Services:
    """The service of a conductor that knows no host."""

    @serves(Conductor.delete_service)
    def delete_service(self, uuid: str) -> None:
        raise ServiceNotFound(uuid=uuid)


@pytest.fixture
def broker() -> Iterator[str]:
    with rabbitmq.virtual_host() as url:
        yield url


@pytest.fixture
def conf(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[cfg.ConfigOpts]:
    # The library reads the start time of the group leader, which may have ended.
    monkeypatch.setattr(os, 'getpgrp', os.getpid)
    before = cfg.CONF.oslo_concurrency.lock_path
    file = tmp_path / 'queues.conf'
    file.write_text(OPTIONS.format(url=broker, path=tmp_path))
    options = cfg.ConfigOpts()
    options(['--config-file', str(file)], prog='cyborg-lite-test')
    yield options
    cfg.CONF.set_default('lock_path', before, 'oslo_concurrency')


def list_reply_queues(
    conf: cfg.ConfigOpts, broker: str, identity: str | None = ''
) -> str:
    """Return the names of the reply queues after a call."""
    bus = transport.connect(conf, identity=identity)
    try:
        with pytest.raises(ServiceUnavailable):
            connect_conductor(bus).delete_service(daemon_context(), 'x')
        return ' '.join(rabbitmq.list_queues(broker))
    finally:
        bus.cleanup()


def test_reply_queue_of_daemon_has_its_name(conf: cfg.ConfigOpts, broker: str) -> None:
    """The name of the script would be that of a web server with several services."""
    name = f'reply_{socket.gethostname()}:cyborg-lite-test:1'
    assert list_reply_queues(conf, broker) == name


def test_reply_queues_of_agents_have_their_hosts(
    conf: cfg.ConfigOpts, broker: str
) -> None:
    """Two containers on the network of one machine have the same host name."""
    conf.register_opt(cfg.StrOpt('host', default='compute-2'))
    name = 'reply_compute-2:cyborg-lite-test:1'
    assert list_reply_queues(conf, broker) == name


def test_second_agent_of_host_has_own_reply_queue(
    conf: cfg.ConfigOpts, broker: str
) -> None:
    """The conductor refuses it, and the first one must get all of its replies."""
    identity = '0123abcd-0000-4000-8000-000000000000'
    name = list_reply_queues(conf, broker, identity)
    assert name.endswith(':cyborg-lite-test-0123abcd:1')


def test_reply_queue_of_command_is_random(conf: cfg.ConfigOpts, broker: str) -> None:
    """Two commands at the same time would get the replies of each other."""
    name = list_reply_queues(conf, broker, None)
    assert name.startswith('reply_')
    assert 'cyborg-lite-test' not in name


def test_error_of_unsigned_call_has_no_traceback(conf: cfg.ConfigOpts) -> None:
    bus = transport.connect(conf, identity=None)
    server = transport.serve(bus, 'one', Dispatcher(CONDUCTOR, [Services()]))
    server.start()
    try:
        with pytest.raises(ServiceNotFound) as raised:
            connect_conductor(bus).delete_service(daemon_context(), 'x')
        assert str(raised.value) == raised.value.text
    finally:
        server.stop()
        server.wait()
        bus.cleanup()
