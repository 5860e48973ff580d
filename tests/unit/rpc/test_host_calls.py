# SPDX-License-Identifier: Apache-2.0
"""Tests of the calls of agents, to conductors of this and of earlier releases."""

from datetime import UTC, datetime

import pytest

from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.model.host_events import HostEvent, HostEventKind, RecoveryResult
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.report_changes import ReportChanges, diff_reports
from cyborg_lite.model.services import HeartbeatDetails
from cyborg_lite.model.usage import Usage
from cyborg_lite.rpc import compression, wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.earlier_peers import UPGRADE_TIME
from cyborg_lite.rpc.host_calls import HostCalls
from tests.builders.reports import card, report
from tests.doubles.recording_caller import RecordingCaller

CONTEXT = RequestContext()
HOST = 'compute-1'
REPORT = report(card(0x3B))
REPORT_TIME = datetime(2026, 11, 22, tzinfo=UTC)


class Calls(HostCalls):
    """The calls with a caller that records them."""

    def __init__(self, unsupported: str = '') -> None:
        self._caller = self.caller = RecordingCaller()
        self.caller.unsupported = unsupported


@pytest.mark.parametrize(('answer', 'number'), [(7, 7), (0, 0), (None, 0)])
def test_report_host_returns_number(answer: int | None, number: int) -> None:
    calls = Calls()
    calls.caller.answer = answer
    assert calls.report_host(CONTEXT, REPORT) == number
    assert wire.load(HostReport, calls.caller.arguments['report']) == REPORT


@pytest.mark.parametrize('answer', [7, 0, None])
def test_report_changes_returns_answer(answer: int | None) -> None:
    calls = Calls()
    calls.caller.answer = answer
    changes = diff_reports(REPORT)
    assert calls.report_changes(CONTEXT, changes) == answer
    arguments = calls.caller.arguments
    assert arguments['host'] == REPORT.hostname
    assert compression.load(ReportChanges, arguments['changes']) == changes


def test_calls_unknown_to_earlier_conductor_return_none() -> None:
    assert Calls('1.6').report_changes(CONTEXT, diff_reports(REPORT)) is None
    assert Calls('1.2').reconcile_handles(CONTEXT, HOST, ['a']) is None
    assert Calls('1.13').repeat(CONTEXT, HOST, 'token') is False


def test_calls_without_conductor_raise() -> None:
    calls = Calls()
    calls.caller.error = ServiceUnavailable(what='conductor')
    for call in (
        lambda: calls.report_changes(CONTEXT, diff_reports(REPORT)),
        lambda: calls.reconcile_handles(CONTEXT, HOST, ['a']),
        lambda: calls.repeat(CONTEXT, HOST, 'token'),
        lambda: calls.report_recovery(CONTEXT, RecoveryResult(HOST, 'b', ('h',))),
    ):
        with pytest.raises(ServiceUnavailable):
            call()


def test_reconcile_handles_returns_handles_to_release() -> None:
    calls = Calls()
    calls.caller.answer = ['b']
    assert calls.reconcile_handles(CONTEXT, HOST, ('a', 'b')) == ('b',)
    assert calls.caller.arguments == {'host': HOST, 'handles': ['a', 'b']}


def test_heartbeat_omits_defaults() -> None:
    calls = Calls()
    calls.caller.answer = 1
    assert calls.heartbeat(CONTEXT, HOST, 'd', '1.0') is True
    assert calls.caller.arguments == {'host': HOST, 'digest': 'd', 'version': '1.0'}
    calls.heartbeat(CONTEXT, HOST, 'd', '1.0', HeartbeatDetails(boot_id='b'))
    assert calls.caller.arguments['vitals'] == {'boot_id': 'b'}


def test_heartbeat_sends_details() -> None:
    calls = Calls()
    details = HeartbeatDetails(
        boot_id='b', identity='i', started=True, telemetry={'0': Usage(busy_percent=3)}
    )
    assert calls.heartbeat(CONTEXT, HOST, 'd', '1.0', details) is False
    vitals = calls.caller.arguments['vitals']
    assert (vitals['boot_id'], vitals['identity'], vitals['started']) == (
        'b',
        'i',
        True,
    )
    assert vitals['figures']['0']['busy_percent'] == 3


def test_repeat_is_tried_again_after_upgrade_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a conductor logs each call that it does not know."""
    calls = Calls('1.13')
    now = 1000.0
    monkeypatch.setattr('cyborg_lite.rpc.host_calls.time.monotonic', lambda: now)
    assert not calls.repeat(CONTEXT, HOST, 'token')
    calls.caller.unsupported, calls.caller.answer = '', True
    calls.caller.method = ''
    assert not calls.repeat(CONTEXT, HOST, 'token')
    assert not calls.caller.method
    now += UPGRADE_TIME
    assert calls.repeat(CONTEXT, HOST, 'token')
    assert calls.caller.arguments == {'host': HOST, 'token': 'token'}


def test_recovery_is_repeated_without_connecting_handles() -> None:
    """A conductor of an earlier release does not connect handles again."""
    result = RecoveryResult(HOST, 'b', ('h',), {}, ('h',))
    calls = Calls()
    calls.caller.answer = []
    assert calls.report_recovery(CONTEXT, result) == ()
    assert calls.caller.arguments['connecting'] == ['h']
    calls = Calls('1.14')
    calls.caller.answer = []
    assert calls.report_recovery(CONTEXT, result) == ()
    assert 'connecting' not in calls.caller.arguments
    assert calls.caller.arguments['rebuilt'] == ['h']


def test_report_events_returns_last_number() -> None:
    calls = Calls()
    calls.caller.answer = '9'
    event = HostEvent(9, HostEventKind.RELEASED, 'x', REPORT_TIME, 'u')
    assert calls.report_events(CONTEXT, HOST, [event]) == 9
    assert wire.load_all(HostEvent, calls.caller.arguments['events']) == (event,)
