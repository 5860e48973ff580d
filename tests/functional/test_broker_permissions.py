# SPDX-License-Identifier: Apache-2.0
"""Permissions of the Ansible role for the users of a real RabbitMQ."""

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import amqp
import pytest
import yaml
from oslo_config import cfg

from cyborg_lite.errors.daemons import BrokerRefused
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_agents, connect_conductor
from cyborg_lite.rpc.context import RequestContext, daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves, serves_host
from cyborg_lite.rpc.interface import Agents, Conductor
from cyborg_lite.rpc.methods import AGENTS, CONDUCTOR
from tests.servers import rabbitmq

ROLE: Final = Path(__file__).parents[2] / 'ansible/roles/cloud/defaults/main.yml'
HOST, OTHER = 'compute-1', 'compute-2'
PASSWORD: Final = 'secret'
OPTIONS: Final = """
[DEFAULT]
transport_url = {url}
rpc_response_timeout = 20
[oslo_messaging_rabbit]
rabbit_quorum_queue = true
rabbit_transient_quorum_queue = true
rabbit_stream_fanout = true
rabbit_qos_prefetch_count = 16
use_queue_manager = true
hostname = {host}
[oslo_concurrency]
lock_path = {path}
"""

Connect = Callable[[str, str, str], transport.Transport]


class ConductorServices:
    @serves(Conductor.repeat)
    def repeat(self, host: str, *_: Any, **__: Any) -> DatabaseMark:  # Any: not read
        return NO_MARK


class HostServices:
    @serves_host(Agents.release)
    def release(self, handles: Sequence[AllocatedHandle]) -> None:
        """Do nothing."""


def control(*arguments: str) -> None:
    subprocess.run(['rabbitmqctl', '--quiet', *arguments], check=True, timeout=60)


def fill(pattern: str, host: str) -> str:
    """Return a pattern of the role for a host."""
    return pattern.replace('{{ host }}', re.escape(host))


@pytest.fixture(scope='module')
def broker() -> Iterator[str]:
    """Create a user for each role, and yield the URL of the virtual host."""
    roles = yaml.safe_load(ROLE.read_text())
    users = []
    with rabbitmq.virtual_host() as url:
        vhost = urlsplit(url).path.removeprefix('/')
        plan = (('api', ''), ('agent', HOST), ('agent', OTHER))
        for role, host in plan:
            user = f'{vhost}-{host or role}'
            users.append(user)
            control('add_user', user, PASSWORD)
            limits = roles[f'cyborg_lite_{role}_permissions']
            parts = (
                fill(limits[name], host) for name in ('configure', 'write', 'read')
            )
            control('set_permissions', '-p', vhost, user, *parts)
            keys = (fill(limits[f'{name}_keys'], host) for name in ('write', 'read'))
            control('set_topic_permissions', '-p', vhost, user, 'cyborg_lite', *keys)
        yield url
        for user in users:
            control('delete_user', user)


@pytest.fixture(scope='module')
def connect(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    directory = tmp_path_factory.mktemp('broker')
    before = cfg.CONF.oslo_concurrency.lock_path
    buses = []

    def _connect(user: str, host: str, program: str) -> transport.Transport:
        file = directory / f'{uuid4()}.conf'
        url = name_user(broker, user) if user else broker
        file.write_text(OPTIONS.format(url=url, host=host, path=directory))
        conf = cfg.ConfigOpts()
        conf(['--config-file', str(file)], prog=program)
        identity = '0123abcd-' if 'agent' in program else ''
        buses.append(transport.connect(conf, identity=identity))
        return buses[-1]

    yield _connect
    for bus in buses:
        bus.cleanup()
    cfg.CONF.set_default('lock_path', before, 'oslo_concurrency')


def name_user(url: str, user: str) -> str:
    parts = urlsplit(url)
    name = f'{parts.path.removeprefix("/")}-{user}'
    place = f'{name}:{PASSWORD}@{parts.hostname}:{parts.port}'
    return urlunsplit(parts._replace(netloc=place))


@pytest.fixture(scope='module')
def calls(connect: Connect) -> Iterator[Callable[[], None]]:
    """Start a conductor and two agents; yield a check of calls of all roles."""
    conductor = connect('', 'controller', 'cyborg-lite-conductor')
    agent, second = (connect(host, host, 'cyborg-lite-agent') for host in (HOST, OTHER))
    api = connect('api', 'controller', 'cyborg-lite-api')
    servers = [
        transport.serve(bus, host, dispatcher)
        for bus, host, dispatcher in (
            (conductor, 'controller', Dispatcher(CONDUCTOR, [ConductorServices()])),
            (agent, HOST, Dispatcher(AGENTS, [HostServices()])),
            (second, OTHER, Dispatcher(AGENTS, [HostServices()])),
        )
    ]
    for server in servers:
        server.start()

    def check() -> None:
        context: RequestContext = daemon_context()
        for bus in (agent, api):
            assert connect_conductor(bus).repeat(context, HOST, 'token')
        connect_agents(conductor, 20.0).release(context, HOST, [])

    yield check
    for server in servers:
        server.stop()
        server.wait()


ATTACKS: Final[dict[str, Callable[[amqp.Channel], None]]] = {
    'read the queue of the conductors': lambda channel: channel.basic_get(
        'cyborg_lite.conductor'
    ),
    'delete the queue of the conductors': lambda channel: channel.queue_delete(
        'cyborg_lite.conductor'
    ),
    'read the queue of another host': lambda channel: channel.basic_get(
        f'cyborg_lite.agent.{OTHER}'
    ),
    'copy what conductors receive': lambda channel: channel.queue_bind(
        f'cyborg_lite.agent.{HOST}', 'cyborg_lite', 'cyborg_lite.conductor'
    ),
    'order another agent': lambda channel: channel.basic_publish_confirm(
        amqp.Message('{}'), 'cyborg_lite', f'cyborg_lite.agent.{OTHER}'
    ),
    'create a queue': lambda channel: channel.queue_declare('other'),
}


@pytest.fixture
def channel(broker: str) -> Iterator[amqp.Channel]:
    parts = urlsplit(name_user(broker, HOST))
    connection = amqp.Connection(
        f'{parts.hostname}:{parts.port}',
        userid=parts.username,
        password=PASSWORD,
        virtual_host=parts.path.removeprefix('/'),
        confirm_publish=True,
    )
    connection.connect()
    yield connection.channel()
    connection.close()


def test_daemons_work_with_users_of_roles(calls: Callable[[], None]) -> None:
    calls()


@pytest.mark.usefixtures('calls')
@pytest.mark.parametrize('attack', ATTACKS)
def test_user_of_agent_cannot_leave_its_queues(
    channel: amqp.Channel, attack: str
) -> None:
    with pytest.raises(amqp.AccessRefused):
        ATTACKS[attack](channel)


def test_refused_user_is_named_as_cause(connect: Connect) -> None:
    bus = connect('unknown', 'controller', 'cyborg-lite-api')
    with pytest.raises(BrokerRefused, match='message bus refuses the connection'):
        connect_conductor(bus).repeat(daemon_context(), HOST, 'token')
