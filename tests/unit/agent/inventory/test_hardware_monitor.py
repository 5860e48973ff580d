# SPDX-License-Identifier: Apache-2.0
"""Tests of the hardware monitor: its scans, its events and its fingerprint."""

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.inventory.hardware_monitor import (
    AgentIntervals,
    HardwareMonitor,
    compute_fingerprint,
)
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.inventory.host_report import Health
from tests.doubles.drivers import ScriptedDriver, discovery_result
from tests.hosts.kernel import FakeKernel
from tests.hosts.pci_links import bind_driver

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


def plug(root: Path, address: str) -> None:
    device_directory = root / 'sys/devices' / address
    device_directory.mkdir(parents=True)
    bus_directory = root / _DEVICES
    bus_directory.mkdir(parents=True, exist_ok=True)
    (bus_directory / address).symlink_to(device_directory)


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
    plug(agent.root, _SECOND)
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


# --- the fingerprint of names and links ---


CARD = '0000:3b:00.0'
MDEV = 'fa000000-0000-4000-8000-000000000001'


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('t4-mdev', tmp_path)


def directory(kernel: FakeKernel) -> Path:
    return kernel.root / 'sys/bus/pci/devices' / CARD


def unplug(kernel: FakeKernel) -> None:
    directory(kernel).unlink()


def rebind(kernel: FakeKernel) -> None:
    bind_driver(Host('compute-1', kernel.root), CARD, 'vfio-pci')


def unbind(kernel: FakeKernel) -> None:
    bind_driver(Host('compute-1', kernel.root), CARD, None)


def make_mdev(kernel: FakeKernel) -> None:
    path = f'{CARD}/mdev_supported_types/nvidia-231/create'
    kernel.write(kernel.root, f'sys/bus/pci/devices/{path}', MDEV)


def remove_mdev_types(kernel: FakeKernel) -> None:
    shutil.rmtree(kernel.root / 'sys/class/mdev_bus')


@pytest.mark.parametrize(
    'change', [unplug, rebind, unbind, make_mdev, remove_mdev_types]
)
def test_fingerprint_changes_with_names_and_links(
    kernel: FakeKernel, change: Callable[[FakeKernel], None]
) -> None:
    host = Host('compute-1', kernel.root)
    before = compute_fingerprint(host)
    assert compute_fingerprint(host) == before
    change(kernel)
    assert compute_fingerprint(host) != before


def test_fingerprint_reads_no_file(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read may wake a suspended device or never return."""

    paths: list[str] = []
    monkeypatch.setattr(Host, 'raw', lambda _host, path, *_: paths.append(path))
    assert compute_fingerprint(Host('compute-1', kernel.root))
    assert paths == []


def test_fingerprint_of_empty_host_is_constant(tmp_path: Path) -> None:
    assert compute_fingerprint(Host('compute-1', tmp_path)) == compute_fingerprint(
        Host('compute-2', tmp_path)
    )
