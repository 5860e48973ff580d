# SPDX-License-Identifier: Apache-2.0
"""Tests of cleans on a host: background steps, stale orders, failures, aborts."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.devices.cleaning import Cleaning
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DeviceBusy, DeviceGone, DriverError
from cyborg_lite.model.devices.cleaning import (
    CleanOrder,
    CleanProgress,
    CleanProgressState,
    CleanStep,
)
from tests.doubles.cleaning import ERASE, CleaningDriver
from tests.doubles.drivers import ScriptedDriver, discovery_result, handle

_HOST = Host('compute-1', Path('/nonexistent'))
_TIMEOUT = 20.0  # seconds until a test gives up
RUNNING, WAITING = CleanProgressState.RUNNING, CleanProgressState.WAITING
UNKNOWN = CleanProgressState.UNKNOWN
SUCCEEDED, FAILED = CleanProgressState.SUCCEEDED, CleanProgressState.FAILED


@pytest.fixture
def driver() -> Iterator[CleaningDriver]:
    driver = CleaningDriver(_HOST, {})
    driver.results = [discovery_result()]
    yield driver
    for block in driver.blocks.values():
        block.set()


def build(
    driver: ScriptedDriver, cache: Cache, locks: DeviceLocks | None = None
) -> Cleaning:
    """Return the part of a new agent process."""
    discovery = Discovery(_HOST, {'scripted': driver}, 60.0)
    discovery.scan()
    return Cleaning(discovery, cache, locks or DeviceLocks())


@pytest.fixture
def cleaning(driver: CleaningDriver, cache: Cache) -> Cleaning:
    return build(driver, cache)


def order(number: int = 1, uuid: str = 'handle-1', **fields: object) -> CleanOrder:
    return CleanOrder(number, handle(uuid=uuid), **fields)  # type: ignore[arg-type]  # of tests


def start(cleaning: Cleaning, clean_order: CleanOrder) -> CleanProgress:
    """Start a cleaning run as the conductor does."""
    return cleaning.start(clean_order, cleaning.read(clean_order).session)


def finish(cleaning: Cleaning, clean_order: CleanOrder) -> CleanProgress:
    """Wait until the cleaning run does not run any more; return its progress."""
    wait_until(lambda: cleaning.read(clean_order).state is not RUNNING)
    return cleaning.read(clean_order)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_start_runs_steps_in_background(
    cleaning: Cleaning, driver: CleaningDriver
) -> None:
    driver.blocks['erase'] = threading.Event()
    assert start(cleaning, order()).state is RUNNING
    assert driver.started.wait(_TIMEOUT)
    assert cleaning.read(order()).text == '1/2 erase'
    assert start(cleaning, order()).state is RUNNING
    driver.blocks['erase'].set()
    progress = finish(cleaning, order())
    assert progress.state is SUCCEEDED
    assert [step.proof for step in progress.results] == [
        'erase-tool 1.0',
        'verify-tool 1.0',
    ]
    assert [name for _, name in driver.calls] == ['erase', 'verify']


def test_start_skips_completed_steps(
    cleaning: Cleaning, driver: CleaningDriver
) -> None:
    clean_order = order(completed=('erase',))
    start(cleaning, clean_order)
    assert finish(cleaning, clean_order).state is SUCCEEDED
    assert [name for _, name in driver.calls] == ['verify']


def test_stale_orders_are_refused(
    cleaning: Cleaning, driver: CleaningDriver, cache: Cache
) -> None:
    session = cleaning.read(order()).session
    start(cleaning, order(2))
    with pytest.raises(DriverError, match='a later one'):
        cleaning.read(order(1))
    with pytest.raises(DriverError, match='a later one'):
        cleaning.start(order(1), session)
    with pytest.raises(DriverError, match='before a restart'):
        build(driver, cache).start(order(3), session)
    assert finish(cleaning, order(2)).state is SUCCEEDED


@pytest.mark.parametrize('uuid', ['handle-1', 'former'])
def test_prepared_unit_is_not_cleaned(
    cleaning: Cleaning, driver: CleaningDriver, cache: Cache, uuid: str
) -> None:
    """A database that was lost gives the handle another uuid."""
    cache.add_handles([replace(handle(), uuid=uuid)])
    with pytest.raises(DriverError, match='an instance has the unit'):
        start(cleaning, order())
    assert driver.calls == []


def test_locked_device_waits_for_next_start(
    driver: CleaningDriver, cache: Cache
) -> None:
    locks = DeviceLocks(longest_wait=0.01)
    cleaning = build(driver, cache, locks)
    with locks.lock(handle().control_address):
        start(cleaning, order())
        progress = finish(cleaning, order())
    assert (progress.state, progress.reason) == (
        WAITING,
        'Another call changes the device.',
    )
    assert driver.calls == []
    start(cleaning, order())
    assert finish(cleaning, order()).state is SUCCEEDED


def test_unit_prepared_while_clean_waited_is_kept(
    driver: CleaningDriver, cache: Cache
) -> None:
    locks = DeviceLocks()
    cleaning = build(driver, cache, locks)
    with locks.lock(handle().control_address):
        start(cleaning, order())
        cache.add_handles([handle()])
    progress = finish(cleaning, order())
    assert progress.state is FAILED
    assert 'an instance has the unit' in progress.reason
    assert driver.calls == []


def test_failing_step_ends_clean(cleaning: Cleaning, driver: CleaningDriver) -> None:
    driver.failures['erase'] = DriverError(reason='medium error')
    start(cleaning, order())
    progress = finish(cleaning, order())
    assert (progress.state, progress.reason) == (FAILED, 'medium error')
    assert progress.results[0].error == 'medium error'
    driver.failures['erase'] = RuntimeError('bug')
    start(cleaning, order(2))
    assert 'see the log' in finish(cleaning, order(2)).reason


def test_busy_device_waits_for_next_start(
    cleaning: Cleaning, driver: CleaningDriver
) -> None:
    busy = DeviceBusy(address='0000:01:00.0', reason='a guest has it')
    driver.failures['verify'] = busy
    start(cleaning, order())
    progress = finish(cleaning, order())
    assert (progress.state, progress.reason) == (WAITING, busy.text)
    driver.failures.clear()
    start(cleaning, order())
    assert finish(cleaning, order()).state is SUCCEEDED
    assert [name for _, name in driver.calls] == ['erase', 'verify', 'verify']


def test_abort_ends_abortable_step(cleaning: Cleaning, driver: CleaningDriver) -> None:
    driver.blocks['erase'] = threading.Event()
    assert cleaning.abort(order()).state is CleanProgressState.UNKNOWN
    start(cleaning, order())
    assert driver.started.wait(_TIMEOUT)
    cleaning.abort(order())
    progress = finish(cleaning, order())
    assert (progress.state, progress.reason) == (
        FAILED,
        'The step was aborted by an operator.',
    )


def test_abort_waits_for_other_step(cleaning: Cleaning, driver: CleaningDriver) -> None:
    driver.steps = (CleanStep('format', 'all data'), ERASE)
    driver.blocks['format'] = threading.Event()
    start(cleaning, order())
    assert driver.started.wait(_TIMEOUT)
    assert cleaning.abort(order()).state is RUNNING
    driver.blocks['format'].set()
    assert finish(cleaning, order()).state is FAILED
    assert [name for _, name in driver.calls] == ['format']


@pytest.mark.parametrize(
    'steps', [(), (ERASE, ERASE), (CleanStep('x' * 41, 'nothing'),)]
)
def test_invalid_steps_fail_clean(
    cleaning: Cleaning, driver: CleaningDriver, steps: tuple[CleanStep, ...]
) -> None:
    driver.steps = steps
    start(cleaning, order())
    assert finish(cleaning, order()).state is FAILED
    assert driver.calls == []


def test_device_without_cleaning_driver_is_refused(cache: Cache) -> None:
    driver = ScriptedDriver(_HOST, {})
    with pytest.raises(DeviceGone):
        start(build(driver, cache), order())
    driver.results = [discovery_result()]
    with pytest.raises(DriverError, match='declares no cleaning steps'):
        start(build(driver, cache), order())


def test_result_of_earlier_clean_with_same_number_is_outdated(
    driver: CleaningDriver, cache: Cache
) -> None:
    """A restored database uses numbers again; the unit has data of another user."""
    now = [0.0]
    discovery = Discovery(_HOST, {'scripted': driver}, 60.0)
    discovery.scan()
    cleaning = Cleaning(discovery, cache, DeviceLocks(), read_clock=lambda: now[0])
    start(cleaning, order())
    assert finish(cleaning, order()).state is SUCCEEDED
    later_claim = replace(order(), handle=replace(order().handle, generation=9))
    assert cleaning.read(later_claim).state is UNKNOWN
    now[0] = 3600.0
    assert cleaning.read(order()).state is UNKNOWN
    driver.calls.clear()
    start(cleaning, order())
    assert finish(cleaning, order()).state is SUCCEEDED
    assert len(driver.calls) == 2
