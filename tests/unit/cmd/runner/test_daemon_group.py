# SPDX-License-Identifier: Apache-2.0
"""Tests of several daemons in one process: start and stop order."""

import pytest

from cyborg_lite.cmd.runner.daemon_group import DaemonGroup
from cyborg_lite.errors.daemons import ConfigurationError


class RecordingDaemon:
    """A daemon that appends each call to a list."""

    def __init__(self, name: str, calls: list[str], *, fails: bool = False) -> None:
        self._name = name
        self._calls = calls
        self._fails = fails

    def start(self) -> None:
        if self._fails:
            raise ConfigurationError(reason='It is Monday.')
        self._calls.append(f'{self._name} starts')

    def stop(self) -> None:
        self._calls.append(f'{self._name} stops')

    def wait(self) -> None:
        self._calls.append(f'{self._name} ended')


class RetirableDaemon(RecordingDaemon):
    def retire(self) -> None:
        self._calls.append(f'{self._name} retires')


def test_stop_retires_agent_before_conductor_stops() -> None:
    """Otherwise the agent would wait for the answer to a report."""
    calls: list[str] = []
    daemons = [RetirableDaemon('agent', calls), RecordingDaemon('conductor', calls)]
    daemon = DaemonGroup(daemons)
    daemon.start()
    daemon.stop()
    daemon.wait()
    assert calls[2:4] == ['agent retires', 'conductor stops']


def test_wait_stops_daemons_in_reverse_order() -> None:
    calls: list[str] = []
    daemons = [RecordingDaemon(name, calls) for name in ('agent', 'conductor', 'api')]
    daemon = DaemonGroup(daemons, lambda: calls.append('schema'))
    daemon.start()
    daemon.stop()
    daemon.wait()
    assert calls == [
        *('schema', 'agent starts', 'conductor starts', 'api starts'),
        *('api stops', 'api ended', 'conductor stops', 'conductor ended'),
        *('agent stops', 'agent ended'),
    ]


def test_start_failure_stops_earlier_daemons() -> None:
    calls: list[str] = []
    agent = RecordingDaemon('agent', calls)
    conductor = RecordingDaemon('conductor', calls, fails=True)
    daemon = DaemonGroup([agent, conductor])
    with pytest.raises(ConfigurationError):
        daemon.start()
    assert calls == ['agent starts', 'agent stops', 'agent ended']
