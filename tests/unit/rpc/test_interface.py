# SPDX-License-Identifier: Apache-2.0
"""Calls of agents to a whole conductor in this process."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.daemons import conductor
from cyborg_lite.errors.daemons import MalformedData
from cyborg_lite.model.hosts.events import HostEvent, HostEventKind, RecoveryResult
from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR, HeartbeatDetails
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.inventory.report_changes import diff_reports
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_conductor, is_reachable
from cyborg_lite.rpc.context import RequestContext, daemon_context
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.methods import CONDUCTOR as INTERFACE
from tests.builders.reports import HOST, card, report
from tests.servers.databases import create_sqlite_file


@pytest.fixture(scope='module')
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[transport.Transport]:
    """Start a conductor on a bus in this process, and return the bus."""
    directory: Path = tmp_path_factory.mktemp('conductor')
    file = directory / 'cyborg-lite.conf'
    file.write_text(
        f'[DEFAULT]\ntransport_url = local:///{uuid4()}\nhost = controller-1\n'
        f'[database]\nconnection = {create_sqlite_file(directory / "db.sqlite")}\n'
        '[placement]\nendpoint_override = http://127.0.0.1:1\nconnect_retries = 0\n'
        '[conductor]\nmetrics_port = 0\n'
    )
    conf = configuration.parse(['--config-file', str(file)], CONDUCTOR)
    service = conductor.build(conf)
    service.start()
    yield transport.connect(conf)
    service.stop()
    service.wait()


@pytest.fixture
def client(bus: transport.Transport) -> Conductor:
    return connect_conductor(bus)


@pytest.fixture
def context() -> RequestContext:
    return daemon_context()


@pytest.fixture
def stored_report(client: Conductor, context: RequestContext) -> HostReport:
    """Report a host with a card, and return the report."""
    stored_report = report(card(0x3B))
    client.report_changes(context, HOST, diff_reports(stored_report))
    return stored_report


def test_conductor_is_reachable_and_listed(
    client: Conductor, context: RequestContext
) -> None:
    assert is_reachable(client, context)
    query = Query(filters={'binary': (CONDUCTOR,)})
    # A thread writes the row after the start.
    while not (services := client.list_services(context, query)):
        time.sleep(0.01)
    assert [service.host for service in services] == ['controller-1']


def test_heartbeat_requires_unknown_report(
    client: Conductor, context: RequestContext, stored_report: HostReport
) -> None:
    details = HeartbeatDetails()
    assert not client.heartbeat(context, HOST, stored_report.digest, '1.0', details)
    assert client.heartbeat(context, HOST, 'another digest', '1.0', details)
    (agent,) = client.list_services(context, Query(filters={'binary': (AGENT,)}))
    assert agent.host == HOST


@pytest.mark.usefixtures('stored_report')
def test_host_events_are_counted_once(
    client: Conductor, context: RequestContext
) -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    events = [HostEvent(n, HostEventKind.HEALTH, '0000:3b:00.0', now) for n in (1, 2)]
    for _ in range(2):
        assert client.report_events(context, HOST, events) == 2


@pytest.mark.usefixtures('stored_report')
def test_recovery_result_is_accepted(
    client: Conductor, context: RequestContext
) -> None:
    result = RecoveryResult(HOST, 'boot', ('unknown',), {'lost': 'no room'}, ('new',))
    assert client.report_recovery(context, HOST, result) == ()


@pytest.mark.parametrize(
    ('method', 'arguments'),
    [
        ('list_arqs', {'query': 'text'}),
        ('bind_arqs', {'bindings': {'a': {'hostname': 3}}}),
        ('report_changes', {'host': HOST, 'changes': 'text'}),
        ('report_events', {'host': HOST, 'events': [{'number': 'x'}]}),
    ],
)
def test_malformed_argument_raises(
    bus: transport.Transport,
    context: RequestContext,
    method: str,
    arguments: dict[str, Any],
) -> None:
    caller = transport.Caller(bus, INTERFACE.topic, INTERFACE.version)
    with pytest.raises(MalformedData):
        caller.send(context, transport.Message(method, arguments, '1.0'))
