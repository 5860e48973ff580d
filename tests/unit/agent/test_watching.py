# SPDX-License-Identifier: Apache-2.0
"""The hardware is looked at when there is a reason to, and what changed is noted."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.fingerprint import fingerprint
from cyborg_lite.agent.journal import Journal
from cyborg_lite.agent.watching import Timing, Watcher
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.inventory import Health
from tests.fakes.drivers import ScriptedDriver, finding

_ONE, _OTHER = '0000:01:00.0', '0000:02:00.0'
_AN_HOUR = 3600.0
_DEVICES = 'sys/bus/pci/devices'


class Agent:
    """A watch that is turned by hand, of a host with a tree of its own."""

    def __init__(self, root: Path, discovery_interval: float = _AN_HOUR) -> None:
        self.root = root
        self.host = Host('compute-1', root)
        self.driver = ScriptedDriver(self.host, {})
        self.driver.findings = [finding(_ONE)]
        self.cache, self.journal = Cache(root / 'state'), Journal(root / 'state')
        self.cache.open()
        self.journal.open()
        self.discovery = Discovery(self.host, {'scripted': self.driver}, 60.0)
        self.stopping = threading.Event()
        timing = Timing(discovery_interval, _AN_HOUR, 60.0, fingerprint_interval=0.0)
        self.watcher = Watcher(
            self.discovery, self.cache, self.journal, timing, self.stopping
        )
        self.watcher.recall()
        self.watcher.look()

    def news(self) -> list[tuple[str, str]]:
        return [(event.kind, event.address) for event in self.journal.waiting(99)]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


def plug(root: Path, address: str, driver: str) -> None:
    where = root / 'sys/devices' / address
    where.mkdir(parents=True)
    bind(root, address, driver)
    listed = root / _DEVICES
    listed.mkdir(parents=True, exist_ok=True)
    (listed / address).symlink_to(where)


def bind(root: Path, address: str, driver: str) -> None:
    target = root / 'sys/bus/pci/drivers' / driver
    target.mkdir(parents=True, exist_ok=True)
    link = root / 'sys/devices' / address / 'driver'
    link.unlink(missing_ok=True)
    link.symlink_to(target)


# --- when -------------------------------------------------------------------------


def test_a_host_that_does_not_change_is_not_looked_at(agent: Agent) -> None:
    assert [agent.watcher.turn() for _ in range(5)] == [False] * 5
    assert agent.driver.looks == 1


def test_a_slow_round_is_made_all_the_same(tmp_path: Path) -> None:
    agent = Agent(tmp_path, discovery_interval=0.0)
    assert [agent.watcher.turn() for _ in range(3)] == [False] * 3
    assert agent.driver.looks == 4


def test_every_change_of_names_and_links_is_seen(tmp_path: Path) -> None:
    host = Host('compute-1', tmp_path)
    seen = [fingerprint(host)]

    def changed() -> bool:
        seen.append(fingerprint(host))
        return seen[-1] != seen[-2]

    assert not changed()
    plug(tmp_path, _ONE, 'nvidia')
    assert changed()
    plug(tmp_path, _OTHER, 'nvidia')
    assert changed()
    bind(tmp_path, _ONE, 'vfio-pci')
    assert changed()
    (tmp_path / _DEVICES / _OTHER).unlink()
    assert changed()
    (tmp_path / 'sys/bus/mdev/devices/5e1').mkdir(parents=True)
    assert changed()
    assert not changed()


def test_a_glance_opens_no_file_of_a_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading one may wake it up, or never return."""
    plug(tmp_path, _ONE, 'nvidia')

    def forbidden(*_: object) -> bytes:
        raise AssertionError('a file was read')

    monkeypatch.setattr(Host, 'raw', forbidden)
    fingerprint(Host('compute-1', tmp_path))


def test_a_change_is_looked_at_once(agent: Agent) -> None:
    agent.driver.findings = [finding(_ONE), finding(_OTHER)]
    plug(agent.root, _OTHER, 'nvidia')
    assert [agent.watcher.turn() for _ in range(3)] == [True, False, False]
    assert agent.driver.looks == 2


def test_a_look_can_be_asked_for(agent: Agent) -> None:
    agent.watcher.want()
    assert [agent.watcher.turn() for _ in range(3)] == [False] * 3
    assert agent.driver.looks == 2


def test_a_missing_device_is_looked_for_until_it_is_settled(agent: Agent) -> None:
    agent.driver.findings = []
    agent.watcher.want()
    assert [agent.watcher.turn() for _ in range(5)] == [True, False, True, False, False]
    assert agent.driver.looks == 4


def test_the_loop_survives_a_mistake_and_ends_when_told_to(agent: Agent) -> None:
    turns: list[str] = []

    def turn() -> bool:
        turns.append('turn')
        if turns.count('turn') == 1:
            raise ZeroDivisionError
        if turns.count('turn') == 3:
            agent.stopping.set()
        return True

    agent.watcher.turn = turn  # type: ignore[method-assign]  # what it calls is tested above
    agent.watcher.run(lambda: turns.append('changed'))
    assert turns == ['turn', 'turn', 'changed', 'turn', 'changed']


# --- what is noted ------------------------------------------------------------------


def test_a_host_that_was_never_looked_at_has_no_news(agent: Agent) -> None:
    assert agent.news() == []


def test_what_comes_goes_and_falls_ill_is_noted(agent: Agent) -> None:
    ill = finding(_ONE)
    assert ill.device is not None
    device = replace(ill.device, health=Health.FAILED, health_reason='lost')
    stories = [
        [finding(_ONE), finding(_OTHER)],
        [replace(ill, device=device), finding(_OTHER)],
        *[[finding(_ONE)]] * 3,
    ]
    for findings in stories:
        agent.driver.findings = findings
        agent.watcher.look()
    assert agent.news() == [
        ('DeviceCame', _OTHER),
        ('HealthChanged', _ONE),
        ('HealthChanged', _ONE),
        ('HealthChanged', _OTHER),
        ('DeviceLost', _OTHER),
    ]
    reasons = [event.reason for event in agent.journal.waiting(9)]
    assert reasons[:3] == ['Card', 'failed: lost', 'ok']


def test_what_changed_while_no_agent_ran_is_noted(tmp_path: Path) -> None:
    before = Agent(tmp_path)
    before.driver.findings = [finding(_ONE), finding(_OTHER)]
    before.watcher.look()
    kept = before.cache.findings
    assert [one.address for one in kept or ()] == [_ONE, _OTHER]
    after = Agent(tmp_path)
    expected = [('DeviceCame', _OTHER), ('HealthChanged', _OTHER)]
    assert after.news() == expected
    assert after.discovery.unsettled
