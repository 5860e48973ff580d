# SPDX-License-Identifier: Apache-2.0
"""Tests of calls that overlap: two of one bind, and two claims of one handle."""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from tests.doubles.drivers import PreparingDriver, discovery_result, handle, refusal

_HOST = Host('compute-1', Path('/nonexistent'))
_FIRST, _SECOND = '0000:01:00.0', '0000:02:00.0'
Build: TypeAlias = Callable[[PreparingDriver], Preparation]


@pytest.fixture
def driver() -> PreparingDriver:
    driver = PreparingDriver(_HOST, {})
    driver.results = [discovery_result(_FIRST), discovery_result(_SECOND)]
    return driver


@pytest.fixture
def build(cache: Cache, journal: Journal) -> Build:
    """Return a factory of preparations whose driver has scanned once."""

    def _build(driver: PreparingDriver) -> Preparation:
        discovery = Discovery(_HOST, {'scripted': driver}, 60.0)
        discovery.scan()
        return Preparation(discovery, cache, journal, DeviceLocks())

    return _build


def with_generation(number: int) -> AllocatedHandle:
    return replace(handle(_FIRST, 'a'), generation=number)


class _SlowDriver(PreparingDriver):
    """Driver whose first call for one handle fails when the test says so."""

    def __init__(self, slow: str) -> None:
        super().__init__(_HOST, {})
        self.results = [discovery_result(_FIRST), discovery_result(_SECOND)]
        self.called, self.may_fail = threading.Event(), threading.Event()
        self._slow = slow

    def prepare(self, handle: AllocatedHandle) -> None:
        if handle.uuid == self._slow and not self.called.is_set():
            self.called.set()
            self.may_fail.wait()
            raise refusal()
        super().prepare(handle)


@pytest.mark.parametrize('second_card', [_FIRST, _SECOND])
@pytest.mark.parametrize('slow', ['a', 'b'])
def test_prepare_repeated_during_failing_call_confirms_all_or_none(
    slow: str, second_card: str, cache: Cache, build: Build
) -> None:
    """The call of the conductor timed out, or another conductor repeats it."""
    driver = _SlowDriver(slow)
    preparation = build(driver)
    handles = [handle(_FIRST, 'a'), handle(second_card, 'b')]
    with ThreadPoolExecutor() as executor:
        first = executor.submit(preparation.prepare, handles)
        assert driver.called.wait(30.0)
        repeated = executor.submit(preparation.prepare, handles)
        # A call that waits for the first one would go on after its failure.
        with contextlib.suppress(TimeoutError):
            repeated.exception(0.5)
        driver.may_fail.set()
        assert isinstance(first.exception(), DriverError)
    with pytest.raises(ServiceUnavailable, match=_FIRST):
        repeated.result()
    assert (driver.prepared, cache.handles) == (set(), {})
    assert {item.uuid for item in preparation.prepare(handles)} == {'a', 'b'}
    assert driver.prepared == set(cache.handles) == {'a', 'b'}


def test_prepare_late_repetition_fails_keeps_prepared_handles(
    driver: PreparingDriver, cache: Cache, build: Build
) -> None:
    """The ARQs may be Bound since an earlier call."""
    preparation = build(driver)
    handles = [handle(_FIRST, 'a'), handle(_FIRST, 'b')]
    preparation.prepare(handles)
    driver.refusals['b'] = refusal()
    with pytest.raises(DriverError):
        preparation.prepare(handles)
    assert driver.prepared == set(cache.handles) == {'a', 'b'}


class _EventfulDriver(PreparingDriver):
    """Driver during whose calls for one handle something else happens."""

    def __init__(self, uuid: str) -> None:
        super().__init__(_HOST, {})
        self.results = [discovery_result(_FIRST), discovery_result(_SECOND)]
        self.meanwhile: Callable[[], object] = lambda: None
        self._uuid = uuid

    def prepare(self, handle: AllocatedHandle) -> None:
        if handle.uuid == self._uuid:
            self.meanwhile()
        super().prepare(handle)

    def release(self, handle: AllocatedHandle) -> None:
        super().release(handle)
        if handle.uuid == self._uuid:
            self.meanwhile()


_later_claims = pytest.mark.parametrize(
    'later',
    [
        with_generation(2),
        replace(with_generation(1), arq_uuid='another-arq'),
    ],
)


@_later_claims
def test_prepare_failure_keeps_handle_of_later_claim(
    later: AllocatedHandle, cache: Cache, build: Build
) -> None:
    driver = _EventfulDriver('b')
    driver.meanwhile = lambda: cache.add_handles([later])
    driver.refusals['b'] = refusal()
    with pytest.raises(DriverError):
        build(driver).prepare([with_generation(1), handle(_SECOND, 'b')])
    assert driver.prepared == {'a'}
    assert [entry.handle for entry in cache.handles.values()] == [later]


@_later_claims
def test_release_keeps_entry_of_later_claim(
    later: AllocatedHandle, cache: Cache, build: Build
) -> None:
    """The later claim is stored while the driver releases the earlier one."""
    driver = _EventfulDriver('a')
    preparation = build(driver)
    preparation.prepare([with_generation(1)])
    driver.meanwhile = lambda: cache.add_handles([later])
    preparation.release([with_generation(1)])
    assert [entry.handle for entry in cache.handles.values()] == [later]


@_later_claims
def test_prepare_does_not_confirm_handle_of_later_claim(
    later: AllocatedHandle, cache: Cache, build: Build
) -> None:
    driver = _EventfulDriver('b')
    driver.meanwhile = lambda: cache.add_handles([later])
    handles = [with_generation(1), handle(_SECOND, 'b')]
    confirmed = build(driver).prepare(handles)
    assert [item.uuid for item in confirmed] == ['b']
    assert cache.handles['a'].boot_id is None


def test_prepare_does_not_confirm_handle_released_meanwhile(
    build: Build,
) -> None:
    driver = _EventfulDriver('b')
    preparation = build(driver)
    driver.meanwhile = lambda: preparation.release([with_generation(1)])
    confirmed = preparation.prepare([with_generation(1), handle(_SECOND, 'b')])
    assert [item.uuid for item in confirmed] == ['b']


def test_claim_of_same_generation_by_another_arq_changes_nothing(
    driver: PreparingDriver, cache: Cache, build: Build
) -> None:
    """A restored database uses generations again."""
    preparation = build(driver)
    preparation.prepare([with_generation(1)])
    of_other_arq = replace(with_generation(1), arq_uuid='another-arq')
    with pytest.raises(DriverError, match='claimed by another ARQ'):
        preparation.prepare([of_other_arq])
    preparation.release([of_other_arq])
    assert driver.prepared == {'a'}
    assert cache.handles['a'].handle == with_generation(1)
    assert preparation.prepare([with_generation(1)])


def test_rebuild_handle_of_earlier_claim_does_nothing(
    driver: PreparingDriver, cache: Cache, build: Build
) -> None:
    cache.add_handles([with_generation(2)])
    build(driver).rebuild(with_generation(1))
    assert driver.prepared == set()
