# SPDX-License-Identifier: Apache-2.0
"""Tests of the repair of prepared handles that vanish without a host reboot."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from cyborg_lite.agent.arqs.handle_repair import HandleRepair
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import HostEventKind
from tests.builders.agent_parts import AgentParts
from tests.doubles.drivers import (
    PreparingDriver,
    ScriptedDriver,
    discovery_result,
    handle,
    refusal,
)

CARD: Final = '0000:01:00.0'
OTHER_CARD: Final = '0000:02:00.0'
HOST: Final = Host('compute-1', Path('/nowhere'))


class CheckingDriver(PreparingDriver):
    is_silent = False  # it cannot tell what is prepared

    def is_prepared(self, handle: AllocatedHandle) -> bool:
        self.scan_count += 1
        if self.is_silent:
            raise refusal('The target does not answer.')
        return handle.uuid in self.prepared


class RepairContext(AgentParts):
    """Components of the agent with two prepared handles."""

    def __init__(
        self,
        state_path: Path,
        driver: ScriptedDriver | None = None,
        longest_wait: float = 60.0,
    ) -> None:
        """Build the components.

        :param driver: None: a driver that checks handles
        """
        self.driver = CheckingDriver(HOST, {})
        driver = driver or self.driver
        driver.results = [discovery_result(CARD), discovery_result(OTHER_CARD)]
        super().__init__(HOST, {'scripted': driver}, state_path, longest_wait)
        self.stopping = threading.Event()
        self.repair = HandleRepair(
            self.preparation, self.cache, self.journal, self.stopping
        )
        self.preparation.prepare([handle(CARD, 'a'), handle(CARD, 'b')])
        self.acknowledge()

    def adopt(self, *handles: AllocatedHandle) -> None:
        self.repair.adopt_later(handles)
        self.repair.adopt_unknown()

    def acknowledge(self) -> list[tuple[str, str]]:
        """Acknowledge all events; return the kind and ARQ of each new event."""
        events = self.journal.list_unsent(100)
        self.journal.acknowledge(0)
        self.journal.acknowledge(max((event.number for event in events), default=0))
        return [(event.kind, event.arq_uuid or '') for event in events]


@pytest.fixture
def context(tmp_path: Path) -> RepairContext:
    return RepairContext(tmp_path)


def test_repair_handles_lost_handle_is_rebuilt(context: RepairContext) -> None:
    context.driver.prepared.remove('b')
    for _ in range(2):
        context.repair.repair_handles()
    assert context.driver.prepared == {'a', 'b'}
    assert context.acknowledge() == [(HostEventKind.REBUILT, 'arq-of-b')]


@pytest.mark.parametrize('error', [refusal(), RuntimeError('a mistake')])
def test_repair_handles_failure_is_reported_once_and_retried(
    context: RepairContext, error: Exception
) -> None:
    context.driver.prepared.clear()
    context.driver.refusals['a'] = error
    for _ in range(3):
        context.repair.repair_handles()
    assert context.driver.prepared == {'b'}
    assert context.acknowledge() == [
        (HostEventKind.REBUILT, 'arq-of-b'),
        (HostEventKind.NOT_REBUILT, 'arq-of-a'),
    ]
    context.driver.refusals.clear()
    context.repair.repair_handles()
    assert context.driver.prepared == {'a', 'b'}
    assert context.acknowledge() == [(HostEventKind.REBUILT, 'arq-of-a')]


def test_repair_handles_unprepared_handle_is_skipped(context: RepairContext) -> None:
    context.cache.add_handles([handle(CARD, 'c')])
    context.repair.repair_handles()
    assert context.driver.prepared == {'a', 'b'}


def test_repair_handles_of_earlier_boot_is_skipped(context: RepairContext) -> None:
    context.driver.prepared.clear()
    context.cache.mark_prepared(['a', 'b'], 'an earlier boot')
    context.repair.repair_handles()
    assert (context.driver.prepared, context.acknowledge()) == (set(), [])


def test_repair_handles_without_check_ability_is_skipped(tmp_path: Path) -> None:
    driver = PreparingDriver(HOST, {})
    context = RepairContext(tmp_path, driver)
    driver.prepared.clear()
    context.repair.repair_handles()
    assert driver.prepared == set()


def test_run_repairs_at_start_and_on_wake_until_stopped(context: RepairContext) -> None:
    repairs = threading.Semaphore(0)
    repair = context.repair.repair_handles

    def count_repair() -> None:
        repair()
        repairs.release()
        raise RuntimeError('a fault of the agent')

    context.repair.repair_handles = count_repair  # type: ignore[method-assign]  # to hear of it
    loop = threading.Thread(target=context.repair.run)
    loop.start()
    assert repairs.acquire(timeout=30)
    context.repair.wake()
    assert repairs.acquire(timeout=30)
    context.stopping.set()
    context.repair.wake()
    loop.join(30)
    assert not loop.is_alive()


def test_repair_handles_busy_device_is_neither_lost_nor_awaited(tmp_path: Path) -> None:
    """A driver call that does not return must not delay the other devices."""
    context = RepairContext(tmp_path, longest_wait=0.01)
    context.preparation.prepare([handle(OTHER_CARD, 'c')])
    context.acknowledge()
    context.driver.prepared.clear()
    with context.locks.lock(CARD):
        context.repair.repair_handles()
    assert context.driver.prepared == {'c'}
    assert context.acknowledge() == [(HostEventKind.REBUILT, 'arq-of-c')]
    context.repair.repair_handles()
    assert context.driver.prepared == {'a', 'b', 'c'}


def test_release_abandoned_ignores_handle_that_was_released(
    context: RepairContext, caplog: pytest.LogCaptureFixture
) -> None:
    """A cleaning run of the unit may run, and the driver must not touch the unit."""
    context.repair.release_later([handle(CARD, 'a'), handle(CARD, 'b')])
    context.preparation.release([handle(CARD, 'a')])
    context.driver.refusals['a'] = refusal()
    context.repair.release_abandoned()
    assert context.driver.prepared == set()
    assert 'Cannot release' not in caplog.text


def test_adopt_unknown_stores_prepared_handle(context: RepairContext) -> None:
    """The agent has lost its state; it repairs the handle from now on."""
    context.cache.remove_handles(['a', 'b'])
    context.adopt(handle(CARD, 'a'))
    assert context.cache.handles.keys() == {'a'}
    context.driver.prepared.clear()
    context.repair.repair_handles()
    assert context.driver.prepared == {'a'}


def test_adopt_unknown_stores_handle_without_preparation(tmp_path: Path) -> None:
    driver = ScriptedDriver(HOST, {})
    context = RepairContext(tmp_path, driver)
    context.cache.remove_handles(['a', 'b'])
    context.adopt(handle(CARD, 'a'))
    assert context.cache.handles.keys() == {'a'}
    assert context.acknowledge() == []


def test_adopt_unknown_reports_handle_that_host_lacks(context: RepairContext) -> None:
    """A guest may run: the handle is not prepared again."""
    context.cache.remove_handles(['a', 'b'])
    context.driver.prepared.clear()
    for _ in range(2):
        context.adopt(handle(CARD, 'a'))
    assert (context.driver.prepared, context.cache.handles) == (set(), {})
    assert context.acknowledge() == [(HostEventKind.NOT_REBUILT, 'arq-of-a')]


def test_repair_and_adopt_change_nothing_while_driver_is_silent(
    context: RepairContext,
) -> None:
    """The agent takes a handle neither as lost nor as prepared."""
    context.cache.remove_handles(['a'])
    context.driver.prepared.clear()
    context.driver.is_silent = True
    for _ in range(2):
        context.adopt(handle(CARD, 'a'))
        context.repair.repair_handles()
    assert (context.driver.prepared, set(context.cache.handles)) == (set(), {'b'})
    assert context.acknowledge() == [(HostEventKind.NOT_REBUILT, 'arq-of-a')]
    context.driver.is_silent = False
    context.driver.prepared.add('a')
    context.adopt(handle(CARD, 'a'))
    context.repair.repair_handles()
    assert context.driver.prepared == set(context.cache.handles) == {'a', 'b'}


def test_adopt_unknown_ignores_handle_released_meanwhile(
    context: RepairContext,
) -> None:
    released = replace(handle(CARD, 'a'), generation=3)
    context.preparation.release([released])
    context.driver.prepared.add('a')
    context.adopt(released)
    assert 'a' not in context.cache.handles
