# SPDX-License-Identifier: Apache-2.0
"""Messages between conductors and agents with signatures, on a bus in this process."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import MessageRefused
from cyborg_lite.errors.devices import DeviceNotFound
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model.devices.devices import AllocatedHandle, ConfirmedHandle
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.inventory.report_changes import diff_reports
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_agents, connect_conductor, is_reachable
from cyborg_lite.rpc.context import RequestContext, bare_context, daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves, serves_host
from cyborg_lite.rpc.interface import Agents, Conductor
from cyborg_lite.rpc.methods import AGENTS, CONDUCTOR
from cyborg_lite.rpc.security.keys import OwnKeys, Peer, Role, SecretKeys, derive_key
from cyborg_lite.rpc.security.signed_calls import SignedCaller
from cyborg_lite.rpc.security.signing import KEY, Signer, dump_error, load_error

_SECRET = 's' * 32
_AGENT, _OTHER = Peer(Role.AGENT, 'compute-1'), Peer(Role.AGENT, 'compute-2')
_API, _CONDUCTOR = Peer(Role.API), Peer(Role.CONDUCTOR, 'controller')

CHANGES = diff_reports(HostReport('compute-1', 'boot', ()))

Connect = Callable[..., transport.Transport]


class Services:
    """Services of a conductor that record what arrives."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.contexts: list[RequestContext] = []

    # Any, here and below: arguments that the tests do not read.
    @serves(Conductor.heartbeat)
    def heartbeat(self, context: RequestContext, *_: Any, **__: Any) -> bool:
        self.calls.append('heartbeat')
        self.contexts.append(context)
        return True

    @serves(Conductor.repeat)
    def repeat(self, host: str, *_: Any, **__: Any) -> DatabaseMark:
        self.calls.append(f'repeat_heartbeat of {host}')
        return NO_MARK

    @serves(Conductor.report_changes)
    def report_changes(self, *_: Any, **__: Any) -> int | None:
        self.calls.append('report_changes')
        return 7

    @serves(Conductor.delete_device_profiles)
    def delete_device_profiles(self, names: Sequence[str], *_: Any, **__: Any) -> None:
        self.calls.append('delete_device_profiles')
        raise DeviceProfileNotFound(name=names[0])

    @serves(Conductor.echo)
    def echo(self) -> None:
        self.calls.append('echo')


class HostServices:
    @serves_host(Agents.prepare)
    def prepare(
        self, handles: Sequence[AllocatedHandle]
    ) -> tuple[ConfirmedHandle, ...]:
        raise DriverError(reason='The card is busy.')

    @serves_host(Agents.release)
    def release(self, handles: Sequence[AllocatedHandle]) -> None:
        """Do nothing."""


def signer(peer: Peer, secret: str = _SECRET, *, is_required: bool = True) -> Signer:
    keys = (
        SecretKeys((secret,))
        if peer.role is Role.CONDUCTOR
        else OwnKeys(peer, (derive_key(secret, peer),))
    )
    return Signer(peer, keys, is_required=is_required)


@pytest.fixture
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connect]:
    file = tmp_path / 'bus.conf'
    name = request.node.name.replace('[', '-').replace(']', '')
    file.write_text(
        f'[DEFAULT]\ntransport_url = local:///{name}\nrpc_response_timeout = 30\n'
    )
    conf = cfg.ConfigOpts()
    conf(['--config-file', str(file)])
    buses = []

    def _connect(signer: Signer | None = None) -> transport.Transport:
        buses.append(transport.connect(conf, signer=signer))
        return buses[-1]

    yield _connect
    for bus in buses:
        bus.cleanup()


@pytest.fixture
def serve() -> Iterator[Callable[..., None]]:
    servers = []

    def _serve(bus: transport.Transport, services: object, host: str = 'any') -> None:
        interface = AGENTS if isinstance(services, HostServices) else CONDUCTOR
        dispatcher = Dispatcher(interface, [services])
        servers.append(transport.serve(bus, host, dispatcher))
        servers[-1].start()

    yield _serve
    for server in servers:
        server.stop()
        server.wait()


@pytest.fixture
def endpoint(connect: Connect, serve: Callable[..., None]) -> Services:
    endpoint = Services()
    serve(connect(signer(_CONDUCTOR)), endpoint)
    return endpoint


def send_heartbeat(bus: transport.Transport) -> bool:
    conductor = connect_conductor(bus)
    return conductor.heartbeat(daemon_context(), 'compute-1', 'digest', '1')


def test_signed_calls_succeed_with_results_and_errors(
    connect: Connect, endpoint: Services
) -> None:
    agent = connect_conductor(connect(signer(_AGENT)))
    for _ in range(3):
        assert agent.heartbeat(daemon_context(), 'compute-1', 'digest', '1') is True
    assert agent.report_changes(daemon_context(), 'compute-1', CHANGES) == 7
    api = connect_conductor(connect(signer(_API)))
    with pytest.raises(DeviceProfileNotFound, match='x'):
        api.delete_device_profiles(daemon_context(), ['x'])
    assert endpoint.calls == [
        *['heartbeat'] * 3,
        'report_changes',
        'delete_device_profiles',
    ]


def test_short_heartbeat_is_of_the_host_of_its_signature(
    connect: Connect, endpoint: Services
) -> None:
    agent, impostor = (
        connect_conductor(connect(signer(peer))) for peer in (_AGENT, _OTHER)
    )
    for client in (agent, agent, impostor):
        assert client.repeat(bare_context(), 'compute-1', 'token')
    assert endpoint.calls == [
        *['repeat_heartbeat of compute-1'] * 2,
        'repeat_heartbeat of compute-2',
    ]


def test_conductor_calls_agent_and_itself(
    connect: Connect, serve: Callable[..., None], endpoint: Services
) -> None:
    serve(connect(signer(_AGENT)), HostServices(), 'compute-1')
    bus = connect(signer(_CONDUCTOR))
    agents = connect_agents(bus, 30.0)
    agents.release(daemon_context(), 'compute-1', [])
    with pytest.raises(DriverError, match=r'The card is busy\.'):
        agents.prepare(daemon_context(), 'compute-1', [])
    assert is_reachable(connect_conductor(bus), daemon_context())


@pytest.mark.parametrize(
    ('sender', 'secret'),
    [
        (_AGENT, 'another secret'),
        (_OTHER, _SECRET),
        (_API, _SECRET),
        (_CONDUCTOR, _SECRET),
    ],
)
def test_heartbeat_of_wrong_sender_is_refused_and_counted(
    connect: Connect, serve: Callable[..., None], sender: Peer, secret: str
) -> None:
    reasons: list[str] = []
    receiver, endpoint = signer(_CONDUCTOR), Services()
    receiver.note_refusal = lambda reason, _sender: reasons.append(reason)
    serve(connect(receiver), endpoint)
    with pytest.raises(MessageRefused):
        send_heartbeat(connect(signer(sender, secret)))
    assert endpoint.calls == []
    expected = 'not allowed' if secret == _SECRET else 'wrong signature'
    assert reasons == [expected]


def test_unsigned_request_is_refused(connect: Connect, endpoint: Services) -> None:
    with pytest.raises(MessageRefused):
        send_heartbeat(connect())
    assert endpoint.calls == []


def test_unsigned_reply_is_refused(
    connect: Connect, serve: Callable[..., None]
) -> None:
    endpoint = Services()
    serve(connect(), endpoint)
    with pytest.raises(MessageRefused):
        send_heartbeat(connect(signer(_AGENT)))
    with pytest.raises(MessageRefused):
        connect_conductor(connect(signer(_API))).delete_device_profiles(
            daemon_context(), ['x']
        )


def test_agent_refuses_another_agent(
    connect: Connect, serve: Callable[..., None]
) -> None:
    serve(connect(signer(_AGENT)), HostServices(), 'compute-1')
    for bus in (connect(), connect(signer(_OTHER)), connect(signer(_CONDUCTOR, 'x'))):
        with pytest.raises((HostAway, MessageRefused)):
            connect_agents(bus, 30.0).release(daemon_context(), 'compute-1', [])


def test_optional_signatures_accept_peers_of_both_kinds(
    connect: Connect, serve: Callable[..., None]
) -> None:
    """During an upgrade some daemons do not sign their messages."""
    endpoint = Services()
    serve(connect(signer(_CONDUCTOR, is_required=False)), endpoint)
    assert send_heartbeat(connect())
    assert send_heartbeat(connect(signer(_AGENT)))
    with pytest.raises(MessageRefused):
        send_heartbeat(connect(signer(_AGENT, 'another secret')))
    serve(connect(), HostServices(), 'compute-1')
    agents = connect_agents(connect(signer(_CONDUCTOR, is_required=False)), 30.0)
    agents.release(daemon_context(), 'compute-1', [])
    with pytest.raises(DriverError):
        agents.prepare(daemon_context(), 'compute-1', [])


def is_verified(changed: dict[str, Any]) -> bool:
    """Check whether a request with changed parts is accepted."""
    parts: dict[str, Any] = {
        'method': 'heartbeat',
        'context': {'user_id': 'u'},
        'arguments': {'host': 'compute-1', 'digest': 'd'},
    }
    request = signer(_AGENT).sign(Peer(Role.CONDUCTOR), **parts, tokens={})
    parts['context'] = {**parts['context'], KEY: request.proof}
    parts |= changed.get('parts', {})
    parts['context'] = {**parts['context'], **changed.get('context', {})}
    try:
        return signer(_CONDUCTOR).verify(**parts) is not None
    except MessageRefused:
        return False


@pytest.mark.parametrize(
    'changed',
    [
        {'parts': {'method': 'echo'}},
        {'parts': {'arguments': {'host': 'compute-2', 'digest': 'd'}}},
        {'context': {'user_id': 'v'}},
        {'context': {'is_admin': True}},
        {'context': {KEY: None}},
        {'context': {KEY: 'text'}},
        {'context': {KEY: ['agent:compute-1', 'epoch', 'x', 'mac']}},
        {'context': {KEY: ['root:compute-1', 'epoch', 1, 'mac']}},
    ],
)
def test_verify_changed_request_is_refused(changed: dict[str, Any]) -> None:
    assert is_verified({})
    assert is_verified({'context': {'client_timeout': 30, 'traceparent': 'id'}})
    assert not is_verified(changed)


def test_repeated_request_is_refused(
    connect: Connect, endpoint: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of the bus repeats a message that it has recorded."""
    send_heartbeat(connect(signer(_AGENT)))
    send_heartbeat(connect(signer(_AGENT)))
    recorded = endpoint.contexts[-1].received
    client = connect(signer(_AGENT))
    send = SignedCaller._send

    def send_recorded(
        caller: SignedCaller,
        _context: dict[str, Any],
        method: str,
        arguments: dict[str, Any],
    ) -> Any:
        return send(caller, dict(recorded), method, arguments)

    monkeypatch.setattr(SignedCaller, '_send', send_recorded)
    with pytest.raises(MessageRefused, match='repeated'):
        send_heartbeat(client)
    assert endpoint.calls == ['heartbeat'] * 2


# --- errors in replies ----------------------------------------------------------------


@pytest.mark.parametrize(
    'value',
    [
        ['ErrorOfLaterRelease', {}],
        ['LOG', {}],  # a name of the module that is no class
        ['DeviceNotFound', {}],  # its text needs a field
    ],
)
def test_unknown_error_becomes_general_error(value: object) -> None:
    assert type(load_error(value)) is CyborgError


def test_fields_of_other_types_become_text() -> None:
    _, fields = dump_error(DeviceNotFound(uuid=ValueError('u')))
    assert fields == {'uuid': 'u'}
