# SPDX-License-Identifier: Apache-2.0
"""Tests of the interface: the client calls a whole conductor in one process."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.daemons import conductor
from cyborg_lite.errors.arqs import ArqNotFound
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import MalformedData, ServiceUnavailable
from cyborg_lite.errors.devices import AttributeNotFound, DeployableNotFound
from cyborg_lite.errors.jobs import JobNotFound
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model.arqs.arqs import Binding, State
from cyborg_lite.model.devices.devices import DeployableRecord, DeviceStatus
from cyborg_lite.model.hosts.events import HostEvent, HostEventKind, RecoveryResult
from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR, HeartbeatDetails
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.inventory.report_changes import diff_reports
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_conductor, is_reachable
from cyborg_lite.rpc.context import RequestContext, daemon_context
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.methods import CONDUCTOR as INTERFACE
from tests.builders.reports import HOST, card, report
from tests.servers.databases import create_sqlite_file

ALL = Query()
NOW = datetime(2026, 11, 21, tzinfo=UTC)


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


def report_host(client: Conductor, host_report: HostReport) -> None:
    changes = diff_reports(host_report)
    client.report_changes(daemon_context(), host_report.hostname, changes)


@pytest.fixture
def context() -> RequestContext:
    """Return the context of an admin with a service token, as of Nova."""
    return RequestContext(
        user_id='u', project_id='p', is_admin=True, service_request=True
    )


@pytest.fixture
def profile(client: Conductor, context: RequestContext) -> DeviceProfile:
    name = f'gpu-{uuid4()}'
    groups = ({'resources:PGPU': '2'},)
    profile = DeviceProfile(str(uuid4()), name, None, groups, NOW)
    (created,) = client.create_device_profiles(context, [profile])
    return created


@pytest.fixture
def deployable(client: Conductor, context: RequestContext) -> DeployableRecord:
    report_host(client, report(card(0x3B)))
    (record,) = client.list_deployables(context, ALL)
    return record


# --- device profiles ------------------------------------------------------------------


def test_profile_is_created_changed_and_deleted(
    client: Conductor, context: RequestContext, profile: DeviceProfile
) -> None:
    change = ProfileChange(('description',), description='two cards')
    changed = client.change_device_profile(context, profile.uuid, change)
    assert (changed.name, changed.description) == (profile.name, 'two cards')
    query = Query(filters={'name': (profile.name,)})
    assert client.list_device_profiles(context, query) == (changed,)
    client.delete_device_profiles(context, [profile.name])
    assert client.list_device_profiles(context, query) == ()
    with pytest.raises(DeviceProfileNotFound, match=profile.uuid):
        client.delete_device_profiles(context, [profile.uuid])


def test_profile_access_is_granted_and_revoked(
    client: Conductor, context: RequestContext, profile: DeviceProfile
) -> None:
    change = ProfileChange(('is_public',), is_public=False)
    client.change_device_profile(context, profile.uuid, change)
    assert client.grant_profile_access(context, profile.uuid, ['b', 'a']) == ('b', 'a')
    client.revoke_profile_access(context, profile.uuid, ['b'])
    assert client.list_profile_access(context, profile.uuid) == ('a',)


# --- ARQs -----------------------------------------------------------------------------


def test_arqs_are_created_bound_unbound_and_deleted(
    client: Conductor, context: RequestContext, profile: DeviceProfile
) -> None:
    uuids = [arq.uuid for arq in client.create_arqs(context, profile.name)]
    assert len(uuids) == 2
    query = Query(filters={'uuid': tuple(uuids)})
    assert [arq.uuid for arq in client.list_arqs(context, query)] == uuids
    binding = Binding(HOST, str(uuid4()), str(uuid4()))
    client.bind_arqs(context, dict.fromkeys(uuids, binding))
    states = {arq.state for arq in client.list_arqs(context, query)}
    assert states <= {State.BIND_STARTED, State.BIND_FAILED}
    client.unbind_arqs(context, uuids)
    steps = [step.step for step in client.list_arq_steps(context, uuids[0])]
    assert {'BindStarted', 'Unbound'} <= set(steps)
    client.delete_arqs(context, uuids)
    with pytest.raises(ArqNotFound):
        client.delete_arqs(context, uuids)


def test_delete_arqs_of_instance_deletes_bound_arqs(
    client: Conductor, context: RequestContext, profile: DeviceProfile
) -> None:
    uuids = [arq.uuid for arq in client.create_arqs(context, profile.name)]
    instance = str(uuid4())
    binding = Binding(HOST, str(uuid4()), instance)
    client.bind_arqs(context, dict.fromkeys(uuids, binding))
    client.delete_arqs_of_instance(context, instance)
    assert client.list_arqs(context, Query(filters={'uuid': tuple(uuids)})) == ()


# --- devices, deployables, attributes -------------------------------------------------


def test_device_status_placement_unreachable_is_unchanged(
    client: Conductor, context: RequestContext, deployable: DeployableRecord
) -> None:
    (device,) = client.list_devices(context, ALL)
    with pytest.raises(ServiceUnavailable, match='Placement'):
        client.set_device_status(context, device.uuid, DeviceStatus.MAINTAINING, 'fan')
    assert [item.status for item in client.list_devices(context, ALL)] == [
        device.status
    ]


def test_attribute_is_created_listed_and_deleted(
    client: Conductor, context: RequestContext, deployable: DeployableRecord
) -> None:
    attribute = client.create_attribute(context, deployable.id, key='rack', value='7')
    assert (attribute.key, attribute.value) == ('rack', '7')
    query = Query(filters={'key': ('rack',)})
    assert client.list_attributes(context, query) == (attribute,)
    client.delete_attribute(context, attribute.uuid)
    with pytest.raises(AttributeNotFound):
        client.delete_attribute(context, attribute.uuid)


Call = Callable[[Conductor, RequestContext], object]


@pytest.mark.parametrize(
    ('call', 'error'),
    [
        (lambda c, ctx: c.program_deployable(ctx, 'no', 'image'), DeployableNotFound),
        (lambda c, ctx: c.start_programming(ctx, 'no', 'image'), DeployableNotFound),
        (lambda c, ctx: c.list_bitstreams(ctx, {}, 'no'), DeployableNotFound),
        (lambda c, ctx: c.show_program_job(ctx, 'no'), JobNotFound),
    ],
)
def test_programming_unknown_object_raises(
    client: Conductor, context: RequestContext, call: Call, error: type[CyborgError]
) -> None:
    with pytest.raises(error):
        call(client, context)


# --- daemons --------------------------------------------------------------------------


def test_conductor_is_reachable_and_listed(
    client: Conductor, context: RequestContext
) -> None:
    assert is_reachable(client, context)
    query = Query(filters={'binary': (CONDUCTOR,)})
    (service,) = client.list_services(context, query)
    assert service.host == 'controller-1'


def test_heartbeat_requires_unknown_report(client: Conductor) -> None:
    context = daemon_context()
    host_report = report(card(0x3B))
    report_host(client, host_report)
    arguments: Any = (context, HOST, host_report.digest, '1.0', HeartbeatDetails())
    assert not client.heartbeat(*arguments)
    assert client.heartbeat(context, HOST, 'another digest', '1.0', HeartbeatDetails())
    (agent,) = client.list_services(context, Query(filters={'binary': (AGENT,)}))
    assert agent.host == HOST


def test_explain_profile_placement_unreachable_raises(
    client: Conductor, context: RequestContext, profile: DeviceProfile
) -> None:
    with pytest.raises(ServiceUnavailable, match='Placement'):
        client.explain_device_profile(context, profile.uuid, HOST)


def test_host_events_are_counted_once(
    client: Conductor, deployable: DeployableRecord
) -> None:
    events = [HostEvent(n, HostEventKind.HEALTH, '0000:3b:00.0', NOW) for n in (1, 2)]
    assert client.report_events(daemon_context(), HOST, events) == 2
    assert client.report_events(daemon_context(), HOST, events) == 2


def test_recovery_result_is_accepted(
    client: Conductor, deployable: DeployableRecord
) -> None:
    result = RecoveryResult(HOST, 'boot', ('unknown',), {'lost': 'no room'}, ('new',))
    assert client.report_recovery(daemon_context(), HOST, result) == ()


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
