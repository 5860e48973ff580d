# SPDX-License-Identifier: Apache-2.0
"""Tests of the hardware monitor: when it scans and which events it records."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.inventory.hardware_monitor import AgentIntervals, HardwareMonitor
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.inventory.host_report import Health
from tests.doubles.drivers import ScriptedDriver, discovery_result

_FIRST, _SECOND = '0000:01:00.0', '0000:02:00.0'
_AN_HOUR = 3600.0
_DEVICES = 'sys/bus/pci/devices'


class Agent:
    """Monitor of a host with its own sysfs tree, driven by the test."""

    def __init__(self, root: Path, discovery_interval: float = _AN_HOUR) -> None:
        self.root = root
        self.host = Host('compute-1', root)
        self.driver = ScriptedDriver(self.host, {})
        self.driver.results = [discovery_result(_FIRST)]
        self.cache, self.journal = Cache(root / 'state'), Journal(root / 'state')
        self.cache.open()
        self.journal.open()
        self.discovery = Discovery(self.host, {'scripted': self.driver}, 60.0)
        self.stopping = threading.Event()
        intervals = AgentIntervals(
            discovery_interval, _AN_HOUR, 60.0, fingerprint_interval=0.0
        )
        self.monitor = HardwareMonitor(
            self.discovery, self.cache, self.journal, intervals, self.stopping
        )
        self.monitor.restore_results()
        self.monitor.scan()

    def list_events(self) -> list[tuple[str, str]]:
        return [(event.kind, event.address) for event in self.journal.list_unsent(99)]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


def plug(root: Path, address: str, driver: str) -> None:
    device_directory = root / 'sys/devices' / address
    device_directory.mkdir(parents=True)
    bind(root, address, driver)
    bus_directory = root / _DEVICES
    bus_directory.mkdir(parents=True, exist_ok=True)
    (bus_directory / address).symlink_to(device_directory)


def bind(root: Path, address: str, driver: str) -> None:
    target = root / 'sys/bus/pci/drivers' / driver
    target.mkdir(parents=True, exist_ok=True)
    link = root / 'sys/devices' / address / 'driver'
    link.unlink(missing_ok=True)
    link.symlink_to(target)


# --- scan conditions ---


def test_check_unchanged_host_does_not_scan(agent: Agent) -> None:
    assert [agent.monitor.check() for _ in range(5)] == [False] * 5
    assert agent.driver.scan_count == 1


def test_check_scans_after_discovery_interval(tmp_path: Path) -> None:
    agent = Agent(tmp_path, discovery_interval=0.0)
    assert [agent.monitor.check() for _ in range(3)] == [False] * 3
    assert agent.driver.scan_count == 4


def test_check_changed_host_scans_once(agent: Agent) -> None:
    agent.driver.results = [discovery_result(_FIRST), discovery_result(_SECOND)]
    plug(agent.root, _SECOND, 'nvidia')
    assert [agent.monitor.check() for _ in range(3)] == [True, False, False]
    assert agent.driver.scan_count == 2


def test_request_scan_triggers_one_scan(agent: Agent) -> None:
    agent.monitor.request_scan()
    assert [agent.monitor.check() for _ in range(3)] == [False] * 3
    assert agent.driver.scan_count == 2


def test_check_scans_until_missing_device_is_removed(agent: Agent) -> None:
    agent.driver.results = []
    agent.monitor.request_scan()
    assert [agent.monitor.check() for _ in range(5)] == [
        True,
        False,
        True,
        False,
        False,
    ]
    assert agent.driver.scan_count == 4


def test_run_survives_exception_and_stops_on_event(agent: Agent) -> None:
    calls: list[str] = []

    def check() -> bool:
        calls.append('check')
        if calls.count('check') == 1:
            raise ZeroDivisionError
        if calls.count('check') == 3:
            agent.stopping.set()
        return True

    agent.monitor.check = check  # type: ignore[method-assign]  # what it calls is tested above
    agent.monitor.on_change = lambda: calls.append('changed')
    agent.monitor.run()
    assert calls == ['check', 'check', 'changed', 'check', 'changed']


# --- recorded events ---


def test_scan_records_new_failed_and_lost_devices(agent: Agent) -> None:
    failed_result = discovery_result(_FIRST)
    assert failed_result.device is not None
    device = replace(failed_result.device, health=Health.FAILED, health_reason='lost')
    scans = [
        [discovery_result(_FIRST), discovery_result(_SECOND)],
        [replace(failed_result, device=device), discovery_result(_SECOND)],
        *[[discovery_result(_FIRST)]] * 3,
    ]
    for results in scans:
        agent.driver.results = results
        agent.monitor.scan()
    assert agent.list_events() == [
        ('DeviceCame', _SECOND),
        ('HealthChanged', _FIRST),
        ('HealthChanged', _FIRST),
        ('HealthChanged', _SECOND),
        ('DeviceLost', _SECOND),
    ]
    reasons = [event.reason for event in agent.journal.list_unsent(9)]
    assert reasons[:3] == ['Card', 'failed: lost', 'ok']


def test_scan_after_restart_records_changes_since_last_process(tmp_path: Path) -> None:
    before = Agent(tmp_path)
    before.driver.results = [discovery_result(_FIRST), discovery_result(_SECOND)]
    before.monitor.scan()
    stored_results = before.cache.results
    assert [result.address for result in stored_results or ()] == [_FIRST, _SECOND]
    after = Agent(tmp_path)
    expected = [('DeviceCame', _SECOND), ('HealthChanged', _SECOND)]
    assert after.list_events() == expected
    assert after.discovery.has_missing_devices
