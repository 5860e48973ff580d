# SPDX-License-Identifier: Apache-2.0
"""Recorded calls that somebody repeats to another conductor than the first one."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import Queue
from typing import Any, Protocol

import kombu
import oslo_messaging
import pytest
from oslo_config import cfg

from cyborg_lite.db.arqs import binding, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.jobs import NewJob
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.methods import CONDUCTOR as CALLS
from cyborg_lite.rpc.security.keys import OwnKeys, Peer, Role, SecretKeys, derive_key
from cyborg_lite.rpc.security.signing import Signer
from tests.builders.rows import OWNER, add_arqs, add_card, bindings, states
from tests.servers import rabbitmq
from tests.servers.databases import database_fixture, find_url

SECRET, API = 's' * 32, Peer(Role.API)
INSTANCE, EVERYBODY = 'e' * 36, Scope(project_id=None)
_TIMEOUT = 30.0  # seconds
_KOMBU: Any = kombu  # the library is untyped

database = database_fixture('sqlite', 'mariadb', 'postgresql')


class Services:
    """The service of a conductor that deletes ARQs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @serves(Conductor.echo)
    def echo(self) -> None:
        """Do nothing."""

    @serves(Conductor.delete_arqs_of_instance)
    def delete_arqs_of_instance(self, instance: str) -> None:
        delete = release.delete_arqs_of_instance
        self._database.write(delete, instance, EVERYBODY, None)


class Tap(Protocol):
    """Records the messages to conductor `one`, and sends them to conductor `two`."""

    def record(self) -> None: ...

    def repeat(self) -> None: ...


class LocalTap:
    """Tap of the transport inside one process."""

    # Any, here and below: JSON, and classes of a library without types.
    def __init__(self, bus: Any) -> None:
        self._driver = bus._driver
        self._messages: list[tuple[Any, ...]] = []

    def record(self) -> None:
        send = self._driver.send

        def record(target: Any, *message: Any, **options: Any) -> Any:
            self._messages.append(message)
            return send(target, *message, **options)

        self._driver.send = record
        self._send = send

    def repeat(self) -> None:
        target = oslo_messaging.Target(topic=CALLS.topic, server='two')
        for message in self._messages:
            self._send(target, *message)


class RabbitTap:
    """Tap of a broker, with the password of the broker."""

    def __init__(self, bus: Any) -> None:
        url = str(bus.conf.transport_url).replace('rabbit:', 'amqp:')
        self._connection = _KOMBU.Connection(url)

    def record(self) -> None:
        exchange = _KOMBU.Exchange('cyborg_lite', 'topic', no_declare=True)
        key = f'{CALLS.topic}.one'
        self._queue = _KOMBU.Queue('tap', exchange, key, auto_delete=False)
        self._queue(self._connection.channel()).declare()

    def repeat(self) -> None:
        queue = self._queue(self._connection.channel())
        producer = self._connection.Producer()
        while message := queue.get(no_ack=True):
            producer.publish(
                message.body,
                exchange='cyborg_lite',
                routing_key=f'{CALLS.topic}.two',
                content_type=message.content_type,
                content_encoding=message.content_encoding,
            )
        self._connection.release()


@pytest.fixture(params=[LocalTap, RabbitTap])
def url_and_tap(
    request: pytest.FixtureRequest,
) -> Iterator[tuple[str, Callable[[Any], Tap]]]:
    if request.param is LocalTap:
        yield f'local:///{request.node.name}', LocalTap
        return
    with rabbitmq.virtual_host() as url:
        yield url, RabbitTap


@pytest.fixture
def api(
    url_and_tap: tuple[str, Callable[[Any], Tap]], tmp_path: Path
) -> Iterator[transport.Transport]:
    file = tmp_path / 'bus.conf'
    file.write_text(f'[DEFAULT]\ntransport_url = {url_and_tap[0]}\n')
    conf = cfg.ConfigOpts()
    conf(['--config-file', str(file)])
    bus = transport.connect(
        conf, signer=Signer(API, OwnKeys(API, (derive_key(SECRET, API),)))
    )
    yield bus
    bus.cleanup()


@pytest.fixture
def refusals(api: transport.Transport, database: Database) -> Iterator[Queue[str]]:
    """Serve conductors `one` and `two`; return the refusals of both."""
    refusals: Queue[str] = Queue()
    opened: list[tuple[transport.Server, transport.Transport, Database]] = []
    for host in ('one', 'two'):
        own = Database(find_url(database))
        keys = SecretKeys((SECRET,))
        signer = Signer(Peer(Role.CONDUCTOR, host), keys)
        signer.note_refusal = lambda reason, _sender: refusals.put(reason)
        bus = transport.connect(api.conf, signer=signer)
        dispatcher = Dispatcher(CALLS, [Services(own)])
        server = transport.serve(bus, host, dispatcher, own.once)
        server.start()
        opened.append((server, bus, own))
    yield refusals
    for server, bus, own in opened:
        server.stop()
        server.wait()
        bus.cleanup()
        own.close()


def test_recorded_call_has_no_effect_at_another_conductor(
    api: transport.Transport,
    refusals: Queue[str],
    database: Database,
    url_and_tap: tuple[str, Callable[[Any], Tap]],
) -> None:
    """The API keeps its answers: it repeats a call as a new one."""
    caller = transport.Caller(api, CALLS.topic, CALLS.version)

    def send(host: str, method: str, arguments: Mapping[str, Any]) -> None:
        message = transport.Message(method, arguments, '1.0', host=host)
        caller.send(daemon_context(), message)

    for host in ('one', 'two'):
        send(host, 'echo', {})
    delete = ('delete_arqs_of_instance', {'instance': INSTANCE})
    tap = url_and_tap[1](api)
    tap.record()
    rp_uuid, uuids = add_card(database, 2), add_arqs(database, 2)

    def bind(uuid: str) -> None:
        bind_job, of_instance = (
            NewJob(OperationKind.BIND),
            bindings([uuid], rp_uuid, INSTANCE),
        )
        database.write(binding.accept_bind, of_instance, EVERYBODY, bind_job, OWNER)

    bind(uuids[0])
    send('one', *delete)
    bind(uuids[1])
    tap.repeat()
    assert refusals.get(timeout=_TIMEOUT) == 'repeated'
    assert states(database, uuids[1:]) == ['BindStarted']
    send('two', *delete)
    assert states(database, uuids) == []
