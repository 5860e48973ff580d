# SPDX-License-Identifier: Apache-2.0
"""The conductor is told what it lacks, no more; and is told again until it hears."""

import logging
import threading
from pathlib import Path

import pytest

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.journal import Journal, News
from cyborg_lite.agent.measuring import Measurements
from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.agent.recovery import Recovery
from cyborg_lite.agent.reporting import Reporter, Sources
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import InvalidInput, ServiceUnavailable
from cyborg_lite.model.host_events import HostEventKind
from cyborg_lite.model.inventory import Device
from cyborg_lite.model.usage import Usage
from tests.fakes.drivers import PreparingDriver, finding, handle
from tests.fakes.rebooting import boot
from tests.fakes.report_keeper import ReportKeeper

_AN_HOUR, _AT_EACH_TURN = 3600.0, 0.0
_AWAY = ServiceUnavailable(what='cyborg-lite-conductor')
_ONE = '0000:01:00.0'

# What each process says first.
_FIRST = ['heartbeat', 'report_recovery', 'report_host', 'report_events']


class MeasuredDriver(PreparingDriver):
    """Its devices draw as much power as it is told."""

    power = 50.0

    def usage(self, device: Device) -> Usage:
        return Usage(power=self.power)


class Agent:
    """A reporter with all it needs, turned by hand."""

    def __init__(self, root: Path, heartbeat_interval: float = _AN_HOUR) -> None:
        boot(root, 'boot-1')
        host = Host('compute-1', root)
        self.driver = MeasuredDriver(host, {})
        self.driver.findings = [finding(_ONE)]
        self.conductor = ReportKeeper()
        self.stopping = threading.Event()
        drivers = {'scripted': self.driver}
        self.cache, self.journal = Cache(root / 'state'), Journal(root / 'state')
        self.measurements = Measurements(drivers)
        self.discovery = Discovery(host, drivers, 60.0, removal_scans=1)
        self.discovery.look()
        parts = self.discovery, self.cache, self.journal
        self.preparation = Preparation(*parts)
        recovery = Recovery(
            self.discovery, self.preparation, self.cache, self.journal, 0.0
        )
        self.reporter = Reporter(
            Sources(self.discovery, self.measurements, recovery, self.journal),
            self.conductor,
            heartbeat_interval,
            self.stopping,
        )
        self.reporter.rebuilt()

    def turn(self) -> list[str]:
        """The calls that one more turn of the loop makes."""
        before = len(self.conductor.calls)
        self.discovery.look()
        self.reporter.tell()
        self.measurements.finish()
        return self.conductor.calls[before:]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


@pytest.fixture
def beating(tmp_path: Path) -> Agent:
    """Whose heartbeat is due at each turn."""
    return Agent(tmp_path, _AT_EACH_TURN)


def test_the_first_turn_is_a_heartbeat_and_the_report(agent: Agent) -> None:
    assert agent.turn() == _FIRST
    assert agent.conductor.reports['compute-1'] == agent.discovery.report()
    assert agent.conductor.vitals[0].boot_id == 'boot-1'


def test_a_conductor_that_holds_the_digest_is_told_once_by_each_process(
    agent: Agent,
) -> None:
    agent.conductor.reports['compute-1'] = agent.discovery.report()
    assert agent.turn() == _FIRST
    assert agent.turn() == []


def test_what_has_not_changed_is_not_told_again(agent: Agent) -> None:
    agent.turn()
    assert [agent.turn() for _ in range(5)] == [[]] * 5


def test_a_heartbeat_is_all_while_nothing_changes(beating: Agent) -> None:
    beating.turn()
    assert [beating.turn() for _ in range(3)] == [['heartbeat']] * 3


def test_a_change_is_told_at_once(agent: Agent) -> None:
    agent.turn()
    agent.driver.findings = []
    assert agent.turn() == ['report_host']
    assert agent.conductor.reports['compute-1'].devices == ()


def test_a_conductor_that_forgot_is_told_anew(beating: Agent) -> None:
    """What it forgot may be more than the inventory."""
    beating.turn()
    beating.conductor.reports.clear()
    assert beating.turn() == ['heartbeat', 'report_recovery', 'report_host']
    assert beating.turn() == ['heartbeat']


@pytest.mark.parametrize('failure', [_AWAY, InvalidInput(reason='x'), KeyError('x')])
def test_what_the_conductor_did_not_hear_is_told_when_it_is_back(
    agent: Agent, failure: Exception
) -> None:
    agent.conductor.refusal = failure
    assert [agent.turn() for _ in range(3)] == [['heartbeat']] * 3
    agent.conductor.refusal = None
    assert agent.turn() == _FIRST
    assert agent.turn() == []


def test_a_report_that_was_lost_is_sent_again(agent: Agent) -> None:
    agent.turn()
    agent.driver.findings = []
    agent.conductor.refusal = _AWAY
    assert agent.turn() == ['report_host']
    agent.conductor.refusal = None
    assert agent.turn() == ['report_host']
    assert agent.conductor.reports['compute-1'].devices == ()


def test_the_log_tells_of_changes_only(
    beating: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    beating.turn()
    caplog.set_level(logging.INFO)
    caplog.clear()
    for refusal in (_AWAY, _AWAY, _AWAY, None, None, _AWAY):
        beating.conductor.refusal = refusal
        beating.turn()
    assert [(record.levelname, record.message[:30]) for record in caplog.records] == [
        ('WARNING', 'The conductor is not told: The'),
        ('INFO', 'The conductor answers again.'),
        ('WARNING', 'The conductor is not told: The'),
    ]


def test_the_loop_ends_when_it_is_told_to(agent: Agent) -> None:
    agent.stopping.set()
    agent.reporter.run()
    assert agent.conductor.calls == _FIRST


# --- while the host is rebuilt ----------------------------------------------------


def test_a_host_that_is_being_rebuilt_only_says_that_it_lives(
    beating: Agent,
) -> None:
    """What is half rebuilt is no inventory."""
    beating.reporter._rebuilt.clear()
    assert [beating.turn() for _ in range(3)] == [['heartbeat']] * 3
    beating.reporter.rebuilt()
    assert beating.turn() == _FIRST


def test_what_was_rebuilt_is_told_before_the_inventory(beating: Agent) -> None:
    beating.preparation.prepare([handle(_ONE, 'a')])
    beating.turn()
    (outcome,) = beating.conductor.outcomes
    assert (outcome.boot_id, outcome.rebuilt) == ('boot-1', ('a',))


def test_what_the_conductor_misses_is_told_until_it_has_all(beating: Agent) -> None:
    beating.conductor.provisioning = [handle(_ONE, 'a')]
    beating.turn()
    assert beating.driver.prepared == {'a'}
    assert beating.turn() == ['heartbeat', 'report_recovery']
    assert beating.conductor.provisioning == []
    assert beating.turn() == ['heartbeat']


# --- figures ----------------------------------------------------------------------


def figures(agent: Agent) -> list[list[float | None]]:
    """The power in each heartbeat so far."""
    return [
        [usage.power for usage in vitals.figures.values()]
        for vitals in agent.conductor.vitals
    ]


def test_figures_are_told_when_they_have_changed(beating: Agent) -> None:
    for power in (50.0, 50.0, 75.0, 75.0, 75.0):
        beating.driver.power = power
        beating.turn()
    # Those of a turn are told with the next one.
    assert figures(beating) == [[], [50.0], [], [75.0], []]


def test_figures_that_were_not_heard_are_told_again(beating: Agent) -> None:
    beating.turn()
    beating.conductor.refusal = _AWAY
    beating.turn()
    beating.conductor.refusal = None
    beating.turn()
    beating.turn()
    assert figures(beating) == [[], [50.0], []]


def test_a_conductor_that_forgot_the_device_is_told_its_figures(
    beating: Agent,
) -> None:
    beating.turn()
    beating.turn()
    beating.conductor.reports.clear()
    beating.turn()
    beating.turn()
    assert figures(beating) == [[], [50.0], [], [50.0]]


# --- the journal ------------------------------------------------------------------


def note(agent: Agent, *addresses: str) -> None:
    agent.journal.note(News(HostEventKind.HOTPLUG, each) for each in addresses)


def heard(agent: Agent) -> list[str]:
    return [event.address for event in agent.conductor.events]


def test_events_are_told_in_order(agent: Agent) -> None:
    note(agent, 'a', 'b')
    agent.turn()
    note(agent, 'c')
    assert agent.turn() == ['report_events']
    assert heard(agent) == ['a', 'b', 'c']
    assert agent.turn() == []


def test_what_happened_while_the_conductor_was_away_is_told_once(
    agent: Agent,
) -> None:
    agent.turn()
    agent.conductor.refusal = _AWAY
    for address in 'abc':
        note(agent, address)
        agent.turn()
    agent.conductor.refusal = None
    agent.turn()
    assert heard(agent) == ['a', 'b', 'c']
    assert agent.turn() == []


def test_an_answer_that_was_lost_doubles_nothing(agent: Agent) -> None:
    agent.turn()
    note(agent, 'a')
    agent.conductor.answer_lost = True
    agent.turn()
    agent.conductor.answer_lost = False
    note(agent, 'b')
    agent.turn()
    assert heard(agent) == ['a', 'b']


def test_a_journal_that_was_lost_tells_its_events_all_the_same(agent: Agent) -> None:
    agent.conductor.last_event = 1000
    note(agent, 'a', 'b')
    agent.turn()
    assert heard(agent) == ['a', 'b']


def test_a_great_many_events_come_in_pages(agent: Agent) -> None:
    note(agent, *map(str, range(250)))
    agent.turn()
    while agent.turn():
        pass
    assert heard(agent) == list(map(str, range(250)))
