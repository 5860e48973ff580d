# SPDX-License-Identifier: Apache-2.0
"""Tests of heartbeats: short and whole ones, their answers and their telemetry."""

from pathlib import Path

from cyborg_lite.model.hosts.incarnations import DatabaseMark
from tests.doubles.reporting_agent import ALWAYS_DUE, ReportingAgent


def send_power_values(agent: ReportingAgent, *powers: float) -> None:
    """Send one heartbeat after each measurement of the power."""
    for power in powers:
        agent.driver.power = power
        agent.send_reports()


def list_power_values(agent: ReportingAgent) -> list[list[float | None]]:
    """Return the power values of each received heartbeat."""
    return [
        [usage.power for usage in heartbeat.telemetry.values()]
        for heartbeat in agent.conductor.heartbeats
    ]


def test_heartbeat_contains_changed_telemetry_only(
    heartbeat_agent: ReportingAgent,
) -> None:
    send_power_values(heartbeat_agent, 50.0, 50.0, 75.0, 75.0, 75.0)
    # Telemetry of one call is sent with the next heartbeat.
    assert list_power_values(heartbeat_agent) == [[], [50.0], [], [75.0], []]


def test_unchanged_host_sends_short_heartbeats(heartbeat_agent: ReportingAgent) -> None:
    heartbeat_agent.conductor.remembers_heartbeats = True
    heartbeat_agent.send_reports()
    heartbeat_agent.driver.power = 75.0
    # The first whole heartbeat tells that the process has started.
    calls = [heartbeat_agent.send_reports() for _ in range(23)]
    short = [['repeat'], ['repeat_without_answer']]
    assert calls == [['heartbeat'], *short * 10, ['heartbeat'], short[0]]
    # From time to time all telemetry is sent again.
    powers = list_power_values(heartbeat_agent)
    assert powers == [[], [50.0], [75.0], *[[]] * 19, [75.0], []]


def test_latest_mark_is_remembered_and_reported(tmp_path: Path) -> None:
    agent = ReportingAgent(tmp_path, ALWAYS_DUE)
    agent.conductor.remembers_heartbeats = True
    agent.send_reports()
    marks = [DatabaseMark(1, 5, 'a', 2), DatabaseMark(1, 4, 'b', 3), DatabaseMark(0, 9)]
    for mark in marks:  # conductors may read one after the other
        agent.conductor.mark = mark
        for _ in range(2):
            agent.send_reports()
    restarted = ReportingAgent(tmp_path, ALWAYS_DUE, agent.conductor)
    restarted.send_reports()
    assert agent.conductor.heartbeats[-1].mark == DatabaseMark(1, 5, 'a', 3)


def test_refused_short_heartbeat_is_followed_by_whole_one(
    heartbeat_agent: ReportingAgent,
) -> None:
    conductor = heartbeat_agent.conductor
    conductor.remembers_heartbeats = True
    for _ in range(4):
        heartbeat_agent.send_reports()
    assert conductor.calls[-1] == 'repeat_without_answer'
    conductor.token = ''
    assert heartbeat_agent.send_reports() == ['repeat', 'heartbeat']
    assert list_power_values(heartbeat_agent)[-1] == [50.0]
    assert heartbeat_agent.send_reports() == ['repeat']


def test_earlier_value_after_heartbeat_without_answer_is_sent(
    heartbeat_agent: ReportingAgent,
) -> None:
    """The conductor may have stored the value between."""
    heartbeat_agent.conductor.remembers_heartbeats = True
    send_power_values(heartbeat_agent, 50.0, 50.0, 75.0, 50.0, 50.0, 50.0)
    powers = list_power_values(heartbeat_agent)
    assert powers == [[], [50.0], [], [75.0], [50.0], []]


def test_heartbeat_unknown_digest_sends_telemetry_again(
    heartbeat_agent: ReportingAgent,
) -> None:
    heartbeat_agent.send_reports()
    heartbeat_agent.send_reports()
    heartbeat_agent.conductor.reports.clear()
    heartbeat_agent.send_reports()
    heartbeat_agent.send_reports()
    assert list_power_values(heartbeat_agent) == [[], [50.0], [], [50.0]]
