# SPDX-License-Identifier: Apache-2.0
"""Tests of the reporter: which calls it sends to the conductor, and when."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cyborg_lite.agent.hosts import reporting
from cyborg_lite.agent.state.journal import NewEvent
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.daemons import ConfigurationError, ServiceUnavailable
from cyborg_lite.errors.hosts import AgentIdentityRefused
from cyborg_lite.model.hosts.events import HostEventKind
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor
from tests.doubles.drivers import discovery_result, handle
from tests.doubles.report_receiver import ReportKeeper
from tests.doubles.reporting_agent import ADDRESS, ReportingAgent
from tests.support.wall_clock import STEPS, step_wall_clock

_UNAVAILABLE = ServiceUnavailable(what='cyborg-lite-conductor')

# The first calls of each process.
_REPORT = ['report_changes', 'reconcile_handles']
_FIRST_CALLS = [
    'heartbeat',
    'report_recovery',
    'report_changes',
    'report_events',
    'reconcile_handles',
]


@pytest.fixture
def agent(tmp_path: Path) -> ReportingAgent:
    return ReportingAgent(tmp_path)


def test_first_reports_include_heartbeat_and_host_report(agent: ReportingAgent) -> None:
    assert agent.send_reports() == _FIRST_CALLS
    assert (
        agent.conductor.reports['compute-1'].digest == agent.discovery.report().digest
    )
    assert agent.conductor.heartbeats[0].boot_id == 'boot-1'


def test_is_answered_follows_the_last_reports(heartbeat_agent: ReportingAgent) -> None:
    answers = []
    for refusal in (_UNAVAILABLE, None, _UNAVAILABLE):
        heartbeat_agent.conductor.refusal = refusal
        heartbeat_agent.send_reports()
        answers.append(heartbeat_agent.reporter.is_answered)
    assert answers == [False, True, False]


def test_known_digest_is_reported_once_per_process(agent: ReportingAgent) -> None:
    agent.conductor.reports['compute-1'] = agent.discovery.report()
    assert agent.send_reports() == _FIRST_CALLS
    assert agent.send_reports() == []


def test_heartbeat_unknown_digest_repeats_reports(
    heartbeat_agent: ReportingAgent,
) -> None:
    """The conductor may have lost more than the inventory."""
    heartbeat_agent.send_reports()
    heartbeat_agent.conductor.reports.clear()
    assert heartbeat_agent.send_reports() == [
        'heartbeat',
        'report_recovery',
        'report_changes',
        *_REPORT,
    ]
    assert heartbeat_agent.send_reports() == ['heartbeat']


@pytest.mark.parametrize(
    'failure', [_UNAVAILABLE, InvalidInput(reason='x'), KeyError('x')]
)
def test_failed_reports_are_repeated_after_recovery(
    agent: ReportingAgent, failure: Exception
) -> None:
    agent.conductor.refusal = failure
    assert [agent.send_reports() for _ in range(3)] == [['heartbeat']] * 3
    agent.conductor.refusal = None
    assert agent.send_reports() == _FIRST_CALLS
    assert agent.send_reports() == []


def test_failed_host_report_is_sent_again(agent: ReportingAgent) -> None:
    agent.send_reports()
    agent.driver.results = []
    agent.conductor.refusal = _UNAVAILABLE
    assert agent.send_reports() == ['report_changes']
    agent.conductor.refusal = None
    assert agent.send_reports() == _REPORT
    assert agent.conductor.reports['compute-1'].devices == ()


def test_run_ends_after_stop_event(agent: ReportingAgent) -> None:
    agent.stopping.set()
    agent.reporter.run()
    assert agent.conductor.calls == _FIRST_CALLS


# --- during a rebuild ---


def test_rebuild_sends_heartbeats_only(heartbeat_agent: ReportingAgent) -> None:
    """An inventory during a rebuild would be incomplete."""
    heartbeat_agent.reporter._rebuilt.clear()
    assert [heartbeat_agent.send_reports() for _ in range(3)] == [['heartbeat']] * 3
    heartbeat_agent.reporter.set_rebuilt()
    assert heartbeat_agent.send_reports() == _FIRST_CALLS


def test_recovery_is_reported_until_conductor_is_satisfied(
    heartbeat_agent: ReportingAgent,
) -> None:
    heartbeat_agent.conductor.provisioning = [handle(ADDRESS, 'a')]
    heartbeat_agent.send_reports()
    assert heartbeat_agent.driver.prepared == {'a'}
    assert heartbeat_agent.send_reports() == ['heartbeat', 'report_recovery']
    assert heartbeat_agent.conductor.provisioning == []
    assert heartbeat_agent.send_reports() == ['heartbeat']


# --- the journal ---


def append(agent: ReportingAgent, *addresses: str) -> None:
    agent.journal.append(NewEvent(HostEventKind.HOTPLUG, item) for item in addresses)


def list_received_addresses(agent: ReportingAgent) -> list[str]:
    return [event.address for event in agent.conductor.events]


def test_events_during_outage_are_sent_once(agent: ReportingAgent) -> None:
    agent.send_reports()
    agent.conductor.refusal = _UNAVAILABLE
    for address in 'abc':
        append(agent, address)
        agent.send_reports()
    agent.conductor.refusal = None
    agent.send_reports()
    assert list_received_addresses(agent) == ['a', 'b', 'c']
    assert agent.send_reports() == []


def test_events_with_lost_answer_are_not_duplicated(agent: ReportingAgent) -> None:
    agent.send_reports()
    append(agent, 'a')
    agent.conductor.answer_lost = True
    agent.send_reports()
    agent.conductor.answer_lost = False
    append(agent, 'b')
    agent.send_reports()
    assert list_received_addresses(agent) == ['a', 'b']


def test_events_of_new_journal_are_renumbered_and_sent(agent: ReportingAgent) -> None:
    agent.conductor.last_event = 1000
    append(agent, 'a', 'b')
    agent.send_reports()
    assert list_received_addresses(agent) == ['a', 'b']


def test_many_events_are_sent_in_pages(agent: ReportingAgent) -> None:
    append(agent, *map(str, range(250)))
    agent.send_reports()
    while agent.send_reports():
        pass
    assert list_received_addresses(agent) == list(map(str, range(250)))


@pytest.mark.parametrize('step', STEPS)
def test_wall_clock_step_changes_no_interval(
    agent: ReportingAgent, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    agent.send_reports()
    step_wall_clock(monkeypatch, step)
    assert agent.send_reports() == []
    agent.driver.results = []
    assert agent.send_reports() == _REPORT


class HalfDeadConductor(ReportKeeper):
    """Two conductors, one of them dead: it receives calls, and never replies."""

    def __init__(self, dead_calls: int) -> None:
        """Prepare the receiver.

        :param dead_calls: number of consecutive calls to the dead conductor
        """
        super().__init__()
        self.now = 0.0  # monotonic time
        self.received_at: list[float] = []
        self._dead_calls = dead_calls
        self._calls = 0

    def _record_call(self, method: str, context: RequestContext) -> None:
        is_heartbeat = method == 'heartbeat'
        if self._is_next_dead():
            report_timeout, heartbeat_timeout = self.timeouts
            self.now += heartbeat_timeout if is_heartbeat else report_timeout
            raise _UNAVAILABLE
        if is_heartbeat:
            self.received_at.append(self.now)

    # Any, here and below: arguments that the test does not read.
    @serves(Conductor.repeat)
    def repeat(
        self, context: RequestContext, *_: Any, **__: Any
    ) -> DatabaseMark | None:
        if not self.remembers_heartbeats:
            return None
        self._record_call('heartbeat', context)
        return NO_MARK

    @serves(Conductor.repeat_without_answer)
    def repeat_without_answer(
        self, context: RequestContext, *_: Any, **__: Any
    ) -> None:
        if not self._is_next_dead():
            self.received_at.append(self.now)

    def _is_next_dead(self) -> bool:
        self._calls += 1
        return self._calls % (self._dead_calls + 1) > 0


@pytest.mark.parametrize('has_short_heartbeats', [True, False])
@pytest.mark.parametrize('heartbeat_interval', [10.0, 30.0, 100.0])
def test_heartbeats_with_dead_conductor_arrive_in_time(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    heartbeat_interval: float,
    has_short_heartbeats: bool,
) -> None:
    """The documented ratio: agent_down_after is above three intervals."""
    conductor = HalfDeadConductor(dead_calls=3)
    conductor.remembers_heartbeats = has_short_heartbeats
    agent = ReportingAgent(tmp_path, heartbeat_interval, conductor)
    clock = SimpleNamespace(monotonic=lambda: conductor.now)
    monkeypatch.setattr(reporting, 'time', clock)  # the other modules keep the real one
    for _ in range(200):
        completed = agent.reporter.send_reports()
        conductor.now += agent.reporter.wait_seconds(completed)
    received = conductor.received_at
    assert len(received) > 20
    gaps = [later - earlier for earlier, later in pairwise(received)]
    assert max(gaps) < 3 * heartbeat_interval


# --- identity, order of reports, reconciliation ---


def test_heartbeats_have_identity_and_only_first_reports_start(
    heartbeat_agent: ReportingAgent,
) -> None:
    heartbeat_agent.send_reports()
    heartbeat_agent.send_reports()
    heartbeats = heartbeat_agent.conductor.heartbeats
    assert [heartbeat.identity for heartbeat in heartbeats] == ['identity-1'] * 2
    assert [heartbeat.started for heartbeat in heartbeats] == [True, False]


def test_refused_identity_sends_nothing_else(agent: ReportingAgent) -> None:
    agent.conductor.refusal = AgentIdentityRefused(host='compute-1', machine='node')
    assert agent.send_reports() == ['heartbeat']
    agent.conductor.refusal = None
    assert agent.send_reports()[0] == 'heartbeat'
    assert agent.accepted == [False, True]


def test_refused_queues_end_heartbeats_until_accepted(
    heartbeat_agent: ReportingAgent,
) -> None:
    """The conductor then counts the host as down, and binds nothing to it."""
    heartbeat_agent.queue_refusal = ConfigurationError(reason='queue with durable')
    assert heartbeat_agent.send_reports() == ['heartbeat']
    assert heartbeat_agent.send_reports() == []
    assert 'queue with durable' in heartbeat_agent.reporter.refusal
    heartbeat_agent.queue_refusal = None
    assert heartbeat_agent.send_reports()[0] == 'heartbeat'
    assert not heartbeat_agent.reporter.refusal


@pytest.mark.parametrize('stored', [1, 41])
def test_report_after_restart_exceeds_stored_number(
    agent: ReportingAgent, stored: int
) -> None:
    agent.conductor.last_report = stored
    calls = agent.send_reports()
    assert calls.count('report_changes') == 2
    assert agent.conductor.reports['compute-1'].number == stored + 1


def test_reports_reconcile_prepared_handles(agent: ReportingAgent) -> None:
    agent.preparation.prepare([handle(uuid='a'), handle(uuid='b')])
    agent.conductor.abandoned = {'a', 'of another host'}
    assert agent.send_reports()[-1] == 'reconcile_handles'
    assert agent.abandoned == ['a']
    assert 'reconcile_handles' not in agent.send_reports()
    agent.driver.results = [discovery_result('0000:09:00.0')]
    assert agent.send_reports()[-1] == 'reconcile_handles'


def test_host_that_never_serves_sends_no_heartbeat(
    heartbeat_agent: ReportingAgent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Let the host count as down, so that its free units are withheld."""
    monkeypatch.setattr(reporting, '_LONGEST_START', -1.0)
    rebuilt = heartbeat_agent.reporter._rebuilt
    rebuilt.clear()
    assert heartbeat_agent.send_reports() == []
    assert 'Devices are not restored' in heartbeat_agent.reporter.refusal
    rebuilt.set()
    assert heartbeat_agent.send_reports()[0] == 'heartbeat'
