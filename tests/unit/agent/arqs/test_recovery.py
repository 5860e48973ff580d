# SPDX-License-Identifier: Apache-2.0
"""Tests of the recovery of handles after a host reboot."""

import functools
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.arqs.recovery import HostRecovery
from cyborg_lite.agent.bitstreams.programming import Programming
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.bitstreams import LoadingFailed
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.drivers import DeviceGone
from cyborg_lite.model.bitstreams.bitstreams import LoadOrder
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import RecoveryResult, check_events
from cyborg_lite.model.limits import check_message
from tests.builders.agent_parts import AgentParts
from tests.builders.bitstream_files import bitstream
from tests.doubles.drivers import handle, refusal
from tests.doubles.rebootable_host import ForgetfulDriver, boot
from tests.doubles.report_receiver import ReportKeeper

_FIRST, _SECOND = '0000:01:00.0', '0000:02:00.0'
_UNLIMITED = 3600.0


class AgentProcess(AgentParts):
    """Components as one process of the agent creates them, and its conductor."""

    def __init__(
        self, directory: Path, driver: ForgetfulDriver, patience: float = _UNLIMITED
    ) -> None:
        host, drivers = Host('compute-1', directory), {'scripted': driver}
        super().__init__(host, drivers, directory / 'state', patience=patience)
        self.driver = driver
        self.stopping = threading.Event()
        self.conductor = ReportKeeper()

    def rebuild(self) -> bool:
        return self.recovery.rebuild(self.stopping, 0.0)

    def report(self) -> bool:
        """Report the recovery; return True if the conductor needs nothing more."""
        return self.recovery.report_recovery(self.conductor.client)


Start = Callable[..., AgentProcess]


@pytest.fixture
def driver(tmp_path: Path) -> ForgetfulDriver:
    boot(tmp_path, 'boot-1')
    return ForgetfulDriver(Host('compute-1', tmp_path), _FIRST, _SECOND)


@pytest.fixture
def start(tmp_path: Path, driver: ForgetfulDriver) -> Start:
    """Return a function that starts a process of the agent."""
    return functools.partial(AgentProcess, tmp_path, driver)


@pytest.fixture
def agent_in_use(start: Start) -> AgentProcess:
    """Return an agent with three prepared handles."""
    agent = start()
    handles = [handle(_FIRST, 'a'), handle(_FIRST, 'b'), handle(_SECOND, 'c')]
    agent.preparation.prepare(handles)
    agent.driver.attempts.clear()
    return agent


@pytest.fixture
def reboot(agent_in_use: AgentProcess, start: Start, tmp_path: Path) -> Start:
    """Return a function that reboots the host and starts its agent again."""

    def boot_and_start(timeout_s: float = _UNLIMITED) -> AgentProcess:
        boot(tmp_path, 'boot-2')
        return start(timeout_s)

    return boot_and_start


def test_rebuild_after_reboot_prepares_all_handles(reboot: Start) -> None:
    agent = reboot()
    assert agent.rebuild()
    assert agent.driver.prepared == {'a', 'b', 'c'}
    events = [
        (event.kind, event.arq_uuid) for event in agent.journal.list_unsent(9)[3:]
    ]
    expected = [('Rebuilt', f'arq-of-{uuid}') for uuid in 'abc']
    assert sorted(events) == expected


def test_rebuild_second_restart_does_nothing(
    agent_in_use: AgentProcess, reboot: Start, start: Start
) -> None:
    reboot().rebuild()
    agent_in_use.driver.attempts.clear()
    assert not start().rebuild()
    assert agent_in_use.driver.attempts == []


def test_rebuild_finishes_interrupted_preparation(
    agent_in_use: AgentProcess, start: Start
) -> None:
    agent_in_use.cache.add_handles([handle(_FIRST, 'unfinished')])
    agent = start()
    assert agent.rebuild()
    assert agent.driver.attempts == ['unfinished']


@pytest.mark.parametrize(('slow', 'late'), [(20, 0), (0, 4)])
def test_rebuild_waits_for_slow_driver_and_late_device(
    agent_in_use: AgentProcess, reboot: Start, slow: int, late: int
) -> None:
    agent_in_use.driver.slow, agent_in_use.driver.late = slow, late
    agent = reboot()
    assert not late or agent.discovery.find_driver(_FIRST) is None
    agent.rebuild()
    assert agent.driver.prepared == {'a', 'b', 'c'}
    assert agent.driver.slow == 0


def test_rebuild_timeout_reports_lost_handle(
    agent_in_use: AgentProcess, reboot: Start, caplog: pytest.LogCaptureFixture
) -> None:
    agent_in_use.driver.refusals['b'] = refusal('No such type.')
    agent = reboot(0.0)
    caplog.set_level(logging.ERROR)
    agent.rebuild()
    assert agent.driver.prepared == {'a', 'c'}
    assert agent.report()
    (result,) = agent.conductor.outcomes
    assert sorted(result.rebuilt) == ['a', 'c']
    assert result.lost == {'b': 'No such type.'}
    assert [record.levelname for record in caplog.records] == ['ERROR']
    assert agent.journal.list_unsent(9)[-1].kind == 'NotRebuilt'


def test_rebuild_reason_of_any_text_can_be_reported(
    agent_in_use: AgentProcess, reboot: Start
) -> None:
    """The conductor refuses a whole report because of one reason."""
    agent_in_use.driver.refusals['b'] = refusal('\0\udc80' + 'x' * 5000)
    agent = reboot(0.0)
    agent.rebuild()
    assert agent.report()
    (result,) = agent.conductor.outcomes
    check_message(result.host, result)
    check_events('compute-1', agent.journal.list_unsent(9))


def test_rebuild_driver_exception_affects_only_its_handle(
    agent_in_use: AgentProcess, reboot: Start
) -> None:
    agent_in_use.driver.refusals['a'] = ZeroDivisionError()
    agent = reboot(0.0)
    agent.rebuild()
    assert agent.driver.prepared == {'b', 'c'}


def test_rebuild_stuck_driver_affects_only_its_device(reboot: Start) -> None:
    agent = reboot(0.0)
    stuck = agent.cache.handles['a'].handle.control_address
    expected = {
        uuid
        for uuid, entry in agent.cache.handles.items()
        if entry.handle.control_address != stuck
    }
    with agent.locks.lock(stuck):
        assert agent.recovery.rebuild(agent.stopping, 0.0, longest_attempt=0.5)
        assert agent.driver.prepared == expected
        assert agent.report()
        (outcome,) = agent.conductor.outcomes
        assert set(outcome.rebuilt) == expected
        assert outcome.lost['a'] == 'The driver has not returned.'
    while {entry.boot_id for entry in agent.cache.handles.values()} != {'boot-2'}:
        agent.stopping.wait(0.01)
    assert agent.report()
    assert agent.conductor.outcomes[1].lost == {}


def test_rebuild_retries_lost_handle_after_restart(
    agent_in_use: AgentProcess, reboot: Start, start: Start
) -> None:
    agent_in_use.driver.refusals['b'] = refusal()
    reboot(0.0).rebuild()
    del agent_in_use.driver.refusals['b']
    assert start().rebuild()
    assert agent_in_use.driver.prepared == {'a', 'b', 'c'}


def test_rebuild_stopped_reports_nothing_lost(
    agent_in_use: AgentProcess, reboot: Start
) -> None:
    agent_in_use.driver.slow = 10**9
    agent = reboot()
    agent.stopping.set()
    agent.rebuild()
    agent.report()
    assert agent.conductor.outcomes == [RecoveryResult('compute-1', 'boot-2')]


def test_report_recovery_omits_released_lost_handle(
    agent_in_use: AgentProcess, reboot: Start
) -> None:
    agent_in_use.driver.refusals['b'] = refusal()
    agent = reboot(0.0)
    agent.rebuild()
    del agent_in_use.driver.refusals['b']
    agent.preparation.release([handle(_FIRST, 'b')])
    agent.report()
    assert agent.conductor.outcomes[0].lost == {}


# --- handles that the cache does not contain ---


def test_report_recovery_rebuilds_handles_of_conductor(start: Start) -> None:
    agent = start()
    agent.conductor.provisioning = [handle(_FIRST, 'a'), handle(_SECOND, 'c')]
    assert not agent.report()
    assert agent.driver.prepared == {'a', 'c'}
    assert agent.report()
    assert sorted(agent.conductor.outcomes[-1].rebuilt) == ['a', 'c']
    assert set(agent.cache.handles) == {'a', 'c'}


def test_report_recovery_handle_of_conductor_waits_until_timeout(start: Start) -> None:
    for timeout_s, answers in ((_UNLIMITED, [False] * 3), (0.0, [False, True])):
        agent = start(timeout_s)
        agent.conductor.provisioning = [handle(_FIRST, 'a')]
        agent.driver.refusals['a'] = refusal('No such type.')
        assert [agent.report() for _ in answers] == answers
    assert agent.conductor.outcomes[-1].lost == {'a': 'No such type.'}


class _ConnectingDriver(ForgetfulDriver):
    def connect(self, handle: AllocatedHandle) -> None:
        pass


def test_report_recovery_names_handles_to_connect(tmp_path: Path) -> None:
    boot(tmp_path, 'boot-1')
    driver = _ConnectingDriver(Host('compute-1', tmp_path), _FIRST)
    AgentProcess(tmp_path, driver).preparation.prepare([handle(_FIRST, 'a')])
    boot(tmp_path, 'boot-2')
    agent = AgentProcess(tmp_path, driver)
    agent.rebuild()
    agent.report()
    (result,) = agent.conductor.outcomes
    assert (result.rebuilt, result.connecting) == (('a',), ('a',))


# --- loaded bitstreams ---


class RecordingLoader:
    """Loader that records its orders and raises the given errors."""

    def __init__(self, *failures: CyborgError) -> None:
        self.failures = list(failures)
        self.orders: list[LoadOrder] = []

    def __call__(self, order: LoadOrder) -> None:
        self.orders.append(order)
        if self.failures:
            raise self.failures.pop(0)


def with_load(uuid: str = 'a') -> AllocatedHandle:
    order = LoadOrder(_FIRST, '_region0', bitstream())
    return replace(handle(_FIRST, uuid), load=order)


@pytest.fixture
def reboot_with_load(start: Start, tmp_path: Path) -> Start:
    """Return a function that reboots a host whose only handle needs a load."""

    def boot_and_start(load: RecordingLoader | None, timeout_s: float) -> AgentProcess:
        start().preparation.prepare([with_load()])
        boot(tmp_path, 'boot-2')
        agent = start()
        components = agent.discovery, agent.cache, agent.journal
        no_glance = Programming(agent.discovery, None, agent.locks).program
        preparation = Preparation(*components, agent.locks, load or no_glance)
        agent.recovery = HostRecovery(
            agent.discovery, preparation, agent.cache, agent.journal, timeout_s
        )
        agent.driver.attempts.clear()
        return agent

    return boot_and_start


def test_rebuild_retries_failed_load(reboot_with_load: Start) -> None:
    load = RecordingLoader(
        ServiceUnavailable(what='Glance'), DeviceGone(address=_FIRST)
    )
    agent = reboot_with_load(load, _UNLIMITED)
    assert agent.rebuild()
    assert len(load.orders) == 3
    assert agent.driver.attempts == ['a']


@pytest.mark.parametrize('with_glance', [True, False])
def test_rebuild_failed_load_is_lost_with_reason(
    with_glance: bool, reboot_with_load: Start
) -> None:
    failure = LoadingFailed(image='x', reason='CRC error')
    agent = reboot_with_load(RecordingLoader(failure) if with_glance else None, 0)
    agent.rebuild()
    agent.report()
    reason = agent.conductor.outcomes[-1].lost['a']
    assert ('CRC error' if with_glance else 'section [glance] is empty') in reason
