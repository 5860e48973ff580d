# SPDX-License-Identifier: Apache-2.0
"""Tests of the recovery of handles after a host reboot."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.arqs.recovery import HostRecovery
from cyborg_lite.agent.bitstreams.programming import Programming
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.bitstreams import LoadingFailed
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.drivers import DeviceGone
from cyborg_lite.model.bitstreams.bitstreams import LoadOrder
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import RecoveryResult, check_events
from cyborg_lite.model.limits import check_message
from tests.builders.bitstream_files import bitstream
from tests.doubles.drivers import handle, refusal
from tests.doubles.rebootable_host import ForgetfulDriver, boot
from tests.doubles.report_receiver import ReportKeeper

_FIRST, _SECOND = '0000:01:00.0', '0000:02:00.0'
_UNLIMITED = 3600.0


class AgentProcess:
    """Recovery and its components, as created by one process of the agent."""

    def __init__(self, directory: Path, driver: ForgetfulDriver) -> None:
        state = directory / 'state'
        self.driver = driver
        self.cache, self.journal = Cache(state), Journal(state)
        self.cache.open()
        self.journal.open()
        host = Host('compute-1', directory)
        self.discovery = Discovery(host, {'scripted': driver}, 60.0)
        self.discovery.scan()
        self.locks = DeviceLocks()
        components = self.discovery, self.cache, self.journal
        self.preparation = Preparation(*components, self.locks)
        self.stopping = threading.Event()
        self.recovery = self.recover_within(_UNLIMITED)

    def recover_within(self, timeout_s: float) -> HostRecovery:
        return HostRecovery(
            self.discovery, self.preparation, self.cache, self.journal, timeout_s
        )

    def rebuild(self) -> bool:
        return self.recovery.rebuild(self.stopping, 0.0)


Start = Callable[[], AgentProcess]


@pytest.fixture
def driver(tmp_path: Path) -> ForgetfulDriver:
    boot(tmp_path, 'boot-1')
    return ForgetfulDriver(Host('compute-1', tmp_path), _FIRST, _SECOND)


@pytest.fixture
def start(tmp_path: Path, driver: ForgetfulDriver) -> Start:
    return lambda: AgentProcess(tmp_path, driver)


@pytest.fixture
def agent_in_use(start: Start) -> AgentProcess:
    """Return an agent with three prepared handles."""
    agent = start()
    handles = [handle(_FIRST, 'a'), handle(_FIRST, 'b'), handle(_SECOND, 'c')]
    agent.preparation.prepare(handles)
    agent.driver.attempts.clear()
    return agent


def test_rebuild_after_reboot_prepares_all_handles(
    agent_in_use: AgentProcess, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    agent = start()
    assert agent.rebuild()
    assert agent.driver.prepared == {'a', 'b', 'c'}
    events = [
        (event.kind, event.arq_uuid) for event in agent.journal.list_unsent(9)[3:]
    ]
    expected = [('Rebuilt', f'arq-of-{uuid}') for uuid in 'abc']
    assert sorted(events) == expected


def test_rebuild_second_restart_does_nothing(
    agent_in_use: AgentProcess, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    start().rebuild()
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
    agent_in_use: AgentProcess, start: Start, tmp_path: Path, slow: int, late: int
) -> None:
    boot(tmp_path, 'boot-2')
    agent_in_use.driver.slow, agent_in_use.driver.late = slow, late
    agent = start()
    assert not late or agent.discovery.find_driver(_FIRST) is None
    agent.rebuild()
    assert agent.driver.prepared == {'a', 'b', 'c'}
    assert agent.driver.slow == 0


def test_rebuild_timeout_reports_lost_handle(
    agent_in_use: AgentProcess,
    start: Start,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    boot(tmp_path, 'boot-2')
    agent_in_use.driver.refusals['b'] = refusal('No such type.')
    agent = start()
    agent.recovery = agent.recover_within(0.0)
    caplog.set_level(logging.ERROR)
    agent.rebuild()
    assert agent.driver.prepared == {'a', 'c'}
    conductor = ReportKeeper()
    assert agent.recovery.report_recovery(conductor.client)
    (result,) = conductor.outcomes
    assert sorted(result.rebuilt) == ['a', 'c']
    assert result.lost == {'b': 'No such type.'}
    assert [record.levelname for record in caplog.records] == ['ERROR']
    assert agent.journal.list_unsent(9)[-1].kind == 'NotRebuilt'


def test_rebuild_reason_of_any_text_can_be_reported(
    agent_in_use: AgentProcess, start: Start, tmp_path: Path
) -> None:
    """The conductor refuses a whole report because of one reason."""
    boot(tmp_path, 'boot-2')
    agent_in_use.driver.refusals['b'] = refusal('\0\udc80' + 'x' * 5000)
    agent = start()
    agent.recovery = agent.recover_within(0.0)
    agent.rebuild()
    conductor = ReportKeeper()
    assert agent.recovery.report_recovery(conductor.client)
    (result,) = conductor.outcomes
    check_message(result.host, result)
    check_events('compute-1', agent.journal.list_unsent(9))


def test_rebuild_driver_exception_affects_only_its_handle(
    agent_in_use: AgentProcess, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    agent_in_use.driver.refusals['a'] = ZeroDivisionError()
    agent = start()
    agent.recovery = agent.recover_within(0.0)
    agent.rebuild()
    assert agent.driver.prepared == {'b', 'c'}


def test_rebuild_stuck_driver_affects_only_its_device(
    agent_in_use: AgentProcess, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    agent = start()
    stuck = agent.cache.handles['a'].handle.control_address
    expected = {
        uuid
        for uuid, entry in agent.cache.handles.items()
        if entry.handle.control_address != stuck
    }
    agent.recovery = agent.recover_within(0.0)
    with agent.locks.lock(stuck):
        assert agent.recovery.rebuild(agent.stopping, 0.0, longest_attempt=0.5)
        assert agent.driver.prepared == expected
        conductor = ReportKeeper()
        assert agent.recovery.report_recovery(conductor.client)
        assert set(conductor.outcomes[0].rebuilt) == expected
        assert conductor.outcomes[0].lost['a'] == 'The driver has not returned.'
    while {entry.boot_id for entry in agent.cache.handles.values()} != {'boot-2'}:
        agent.stopping.wait(0.01)
    assert agent.recovery.report_recovery(conductor.client)
    assert conductor.outcomes[1].lost == {}


def test_rebuild_retries_lost_handle_after_restart(
    agent_in_use: AgentProcess, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    agent_in_use.driver.refusals['b'] = refusal()
    first_process = start()
    first_process.recovery = first_process.recover_within(0.0)
    first_process.rebuild()
    del agent_in_use.driver.refusals['b']
    assert start().rebuild()
    assert agent_in_use.driver.prepared == {'a', 'b', 'c'}


def test_rebuild_stopped_reports_nothing_lost(
    agent_in_use: AgentProcess, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    agent_in_use.driver.slow = 10**9
    agent = start()
    agent.stopping.set()
    agent.rebuild()
    conductor = ReportKeeper()
    agent.recovery.report_recovery(conductor.client)
    assert conductor.outcomes == [RecoveryResult('compute-1', 'boot-2')]


def test_report_recovery_omits_released_lost_handle(
    agent_in_use: AgentProcess, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    agent_in_use.driver.refusals['b'] = refusal()
    agent = start()
    agent.recovery = agent.recover_within(0.0)
    agent.rebuild()
    del agent_in_use.driver.refusals['b']
    agent.preparation.release([handle(_FIRST, 'b')])
    conductor = ReportKeeper()
    agent.recovery.report_recovery(conductor.client)
    assert conductor.outcomes[0].lost == {}


# --- handles that the cache does not contain ---


def test_report_recovery_rebuilds_handles_of_conductor(start: Start) -> None:
    agent, conductor = start(), ReportKeeper()
    conductor.provisioning = [handle(_FIRST, 'a'), handle(_SECOND, 'c')]
    assert not agent.recovery.report_recovery(conductor.client)
    assert agent.driver.prepared == {'a', 'c'}
    assert agent.recovery.report_recovery(conductor.client)
    assert sorted(conductor.outcomes[-1].rebuilt) == ['a', 'c']
    assert set(agent.cache.handles) == {'a', 'c'}


def test_report_recovery_handle_of_conductor_waits_until_timeout(start: Start) -> None:
    agent, conductor = start(), ReportKeeper()
    conductor.provisioning = [handle(_FIRST, 'a')]
    agent.driver.refusals['a'] = refusal('No such type.')
    assert [agent.recovery.report_recovery(conductor.client) for _ in range(3)] == [
        False
    ] * 3
    agent.recovery = agent.recover_within(0.0)
    assert not agent.recovery.report_recovery(conductor.client)
    assert agent.recovery.report_recovery(conductor.client)
    assert conductor.outcomes[-1].lost == {'a': 'No such type.'}


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
    conductor = ReportKeeper()
    agent.recovery.report_recovery(conductor.client)
    (result,) = conductor.outcomes
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


def restart_after_reboot(
    agent: AgentProcess, start: Start, tmp_path: Path, load: RecordingLoader | None
) -> AgentProcess:
    """Return the next process after a reboot of the host."""
    agent.preparation.prepare([with_load()])
    boot(tmp_path, 'boot-2')
    restarted = start()
    components = restarted.discovery, restarted.cache, restarted.journal
    no_glance = Programming(restarted.discovery, None, restarted.locks).program
    locks = restarted.locks
    restarted.preparation = Preparation(*components, locks, load or no_glance)
    return restarted


def test_rebuild_retries_failed_load(start: Start, tmp_path: Path) -> None:
    load = RecordingLoader(
        ServiceUnavailable(what='Glance'), DeviceGone(address=_FIRST)
    )
    agent = restart_after_reboot(start(), start, tmp_path, load)
    agent.recovery = agent.recover_within(_UNLIMITED)
    agent.driver.attempts.clear()
    assert agent.rebuild()
    assert len(load.orders) == 3
    assert agent.driver.attempts == ['a']


@pytest.mark.parametrize('with_glance', [True, False])
def test_rebuild_failed_load_is_lost_with_reason(
    with_glance: bool, start: Start, tmp_path: Path
) -> None:
    failure = LoadingFailed(image='x', reason='CRC error')
    load = RecordingLoader(failure) if with_glance else None
    agent = restart_after_reboot(start(), start, tmp_path, load)
    agent.recovery = agent.recover_within(0)
    agent.rebuild()
    conductor = ReportKeeper()
    agent.recovery.report_recovery(conductor.client)
    reason = conductor.outcomes[-1].lost['a']
    assert ('CRC error' if with_glance else 'section [glance] is empty') in reason
