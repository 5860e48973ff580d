# SPDX-License-Identifier: Apache-2.0
"""Tests of the client of the conductor: arguments on the wire, and parsed answers."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest

from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.model.arqs import Actor, Arq, Binding, State, Step
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.devices import Attribute, DeviceStatus
from cyborg_lite.model.host_events import HostEvent, HostEventKind, RecoveryResult
from cyborg_lite.model.services import HeartbeatDetails
from cyborg_lite.model.usage import Usage
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import RequestContext, daemon_context
from cyborg_lite.rpc.transport import Caller
from tests.builders.reports import card, report
from tests.doubles.drivers import handle
from tests.doubles.recording_caller import RecordingCaller

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ARQ = Arq('u', State.INITIAL, 'gpu', 0, {'resources:PGPU': '1'}, NOW)
PROFILE = DeviceProfile('u', 'gpu', None, ({'resources:PGPU': '1'},), NOW)


@pytest.fixture
def caller() -> RecordingCaller:
    return RecordingCaller()


@pytest.fixture
def client(caller: RecordingCaller) -> ConductorAPI:
    # The caller needs a message bus, which no test of this module uses.
    with mock.patch('cyborg_lite.rpc.conductor.Caller', autospec=Caller) as factory:
        factory.return_value = caller
        return ConductorAPI(mock.sentinel.transport)


Call = Callable[[ConductorAPI, RequestContext], object]
CALLS: list[tuple[Call, str, dict[str, Any]]] = [
    (
        lambda client, context: client.unbind_arqs(context, ('a', 'b')),
        'unbind_arqs',
        {'uuids': ['a', 'b']},
    ),
    (
        lambda client, context: client.delete_arqs(context, ('a',)),
        'delete_arqs',
        {'uuids': ['a']},
    ),
    (
        lambda client, context: client.delete_arqs_of_instance(context, 'i'),
        'delete_arqs_of_instance',
        {'instance': 'i'},
    ),
    (
        lambda client, context: client.bind_arqs(
            context, {'a': Binding('h', 'r', 'i')}
        ),
        'bind_arqs',
        {'bindings': {'a': wire.dump(Binding('h', 'r', 'i'))}},
    ),
    (
        lambda client, context: client.delete_device_profiles(context, ('p',)),
        'delete_device_profiles',
        {'names': ['p']},
    ),
    (
        lambda client, context: client.revoke_profile_access(context, 'u', ('p',)),
        'revoke_profile_access',
        {'uuid': 'u', 'projects': ['p']},
    ),
    (
        lambda client, context: client.set_device_status(
            context, 'u', DeviceStatus.MAINTAINING, 'a new fan'
        ),
        'set_device_status',
        {'uuid': 'u', 'status': 'maintaining', 'reason': 'a new fan'},
    ),
    (
        lambda client, context: client.delete_attribute(context, 'u'),
        'delete_attribute',
        {'uuid': 'u'},
    ),
    (
        lambda client, context: client.delete_attribute(context, 'u', 3),
        'delete_attribute',
        {'uuid': 'u', 'generation': 3},
    ),
]


@pytest.mark.parametrize(('call', 'method', 'arguments'), CALLS)
def test_command_sends_plain_arguments(
    client: ConductorAPI,
    caller: RecordingCaller,
    call: Call,
    method: str,
    arguments: dict[str, Any],
) -> None:
    assert call(client, daemon_context()) is None
    assert (caller.method, caller.arguments) == (method, arguments)


def test_create_arqs_sends_image_and_returns_arqs(
    client: ConductorAPI, caller: RecordingCaller
) -> None:
    caller.answer = [wire.dump(ARQ)]
    assert client.create_arqs(daemon_context(), 'gpu', 'image') == (ARQ,)
    assert caller.arguments == {'device_profile_name': 'gpu', 'image_uuid': 'image'}


def test_list_arq_steps_returns_steps(
    client: ConductorAPI, caller: RecordingCaller
) -> None:
    step = Step('Bound', Actor.AGENT, NOW)
    caller.answer = [wire.dump(step)]
    assert client.list_arq_steps(daemon_context(), 'u') == (step,)


def test_create_device_profiles_sends_possible_flag(
    client: ConductorAPI, caller: RecordingCaller
) -> None:
    caller.answer = [wire.dump(PROFILE)]
    context = daemon_context()
    assert client.create_device_profiles(context, [PROFILE], possible=True) == (
        PROFILE,
    )
    assert caller.arguments['possible'] is True


def test_grant_profile_access_returns_all_projects(
    client: ConductorAPI, caller: RecordingCaller
) -> None:
    caller.answer = ['p', 'q']
    assert client.grant_profile_access(daemon_context(), 'u', ['q']) == ('p', 'q')


def test_create_attribute_returns_attribute(
    client: ConductorAPI, caller: RecordingCaller
) -> None:
    attribute = Attribute('u', 7, 'k', 'v', NOW)
    caller.answer = wire.dump(attribute)
    context = daemon_context()
    assert client.create_attribute(context, 7, key='k', value='v') == attribute
    assert caller.arguments == {'deployable_id': 7, 'key': 'k', 'value': 'v'}


def test_heartbeat_without_details_sends_no_details(
    client: ConductorAPI, caller: RecordingCaller
) -> None:
    caller.answer = True
    assert client.heartbeat(daemon_context(), 'h', 'digest', '1.0') is True
    assert caller.arguments == {'host': 'h', 'digest': 'digest', 'version': '1.0'}


def test_heartbeat_omits_default_telemetry(
    client: ConductorAPI, caller: RecordingCaller
) -> None:
    caller.answer = False
    details = HeartbeatDetails('boot-1', {'card': Usage(power=5.0)})
    assert client.heartbeat(daemon_context(), 'h', 'd', '1.0', details) is False
    expected = {'boot_id': 'boot-1', 'figures': {'card': {'power': 5.0}}}
    assert caller.arguments['vitals'] == expected


def test_report_recovery_returns_handles_to_rebuild(
    client: ConductorAPI, caller: RecordingCaller
) -> None:
    caller.answer = [wire.dump(handle())]
    result = RecoveryResult('h', 'boot-1', ('a',), {'b': 'no type'})
    assert client.report_recovery(daemon_context(), result) == (handle(),)
    assert caller.arguments == {
        'host': 'h',
        'boot_id': 'boot-1',
        'rebuilt': ['a'],
        'lost': {'b': 'no type'},
    }


def test_report_recovery_connects_only_at_newer_conductor(
    client: ConductorAPI, caller: RecordingCaller
) -> None:
    caller.answer = []
    result = RecoveryResult('h', 'boot-1', ('a',), {}, ('a',))
    client.report_recovery(daemon_context(), result)
    assert caller.arguments['connecting'] == ['a']
    caller.unsupported = '1.14'
    client.report_recovery(daemon_context(), result)
    assert 'connecting' not in caller.arguments


def test_report_events_returns_last_number(
    client: ConductorAPI, caller: RecordingCaller
) -> None:
    caller.answer = 7
    event = HostEvent(7, HostEventKind.HOTPLUG, '0000:01:00.0', NOW)
    assert client.report_events(daemon_context(), 'h', [event]) == 7
    assert wire.load_all(HostEvent, caller.arguments['events']) == (event,)


def test_is_reachable_follows_answer_of_conductor(
    client: ConductorAPI, caller: RecordingCaller
) -> None:
    assert client.is_reachable(daemon_context())
    assert caller.method == 'echo'
    caller.error = ServiceUnavailable(what='cyborg-lite-conductor')
    assert not client.is_reachable(daemon_context())


def test_report_host_returns_stored_number(
    client: ConductorAPI, caller: RecordingCaller
) -> None:
    # A conductor of an earlier release returns None.
    assert client.report_host(daemon_context(), report(card(1))) == 0
    assert caller.arguments == {'report': wire.dump(report(card(1)))}
