# SPDX-License-Identifier: Apache-2.0
"""Handles are made ready all or none, and given back as far as they can be."""

import contextlib
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.journal import Journal
from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.drivers.base import Driver, Preparing
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import DeviceGone, DriverError
from cyborg_lite.model.devices import HeldHandle
from tests.fakes.drivers import (
    PreparingDriver,
    ScriptedDriver,
    finding,
    handle,
    refusal,
)

_HOST = Host('compute-1', Path('/nonexistent'))
_ONE, _OTHER = '0000:01:00.0', '0000:02:00.0'


@pytest.fixture
def driver() -> PreparingDriver:
    driver = PreparingDriver(_HOST, {})
    driver.findings = [finding(_ONE), finding(_OTHER)]
    return driver


class Prepare(Protocol):
    def __call__(self, **drivers: Driver) -> Preparation: ...


@pytest.fixture
def prepared(cache: Cache, journal: Journal) -> Prepare:
    """A preparation with these drivers, which have looked once."""

    def _prepared(**drivers: Driver) -> Preparation:
        discovery = Discovery(_HOST, drivers, 60.0)
        discovery.look()
        return Preparation(discovery, cache, journal)

    return _prepared


def test_all_handles_are_prepared_and_released(
    driver: PreparingDriver, prepared: Prepare
) -> None:
    preparation = prepared(scripted=driver)
    handles = [handle(_ONE, 'a'), handle(_ONE, 'b'), handle(_OTHER, 'c')]
    preparation.prepare(handles)
    assert driver.prepared == {'a', 'b', 'c'}
    preparation.prepare(handles)
    assert driver.prepared == {'a', 'b', 'c'}
    preparation.release(handles)
    preparation.release(handles)
    assert driver.prepared == set()


def turn(number: int) -> HeldHandle:
    return replace(handle(_ONE, 'a'), turn=number)


def test_what_was_released_is_not_prepared_by_an_older_order(
    driver: PreparingDriver, prepared: Prepare, cache: Cache
) -> None:
    """The host stood still, and heard of both in the wrong order."""
    preparation = prepared(scripted=driver)
    preparation.release([turn(1)])
    with pytest.raises(DriverError, match='was released before'):
        preparation.prepare([turn(1)])
    assert (driver.prepared, cache.kept) == (set(), {})
    preparation.prepare([turn(2)])
    assert driver.prepared == {'a'}


def test_an_order_that_waits_for_the_device_is_looked_at_again(
    driver: PreparingDriver, prepared: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release has come and gone meanwhile."""
    preparation = prepared(scripted=driver)
    intend = Cache.intend

    def overtaken(cache: Cache, handles: Iterable[HeldHandle]) -> None:
        intend(cache, handles)
        preparation.release([turn(1)])

    monkeypatch.setattr(Cache, 'intend', overtaken)
    with pytest.raises(DriverError, match='was released before'):
        preparation.prepare([turn(1)])
    assert driver.prepared == set()


def test_what_another_has_by_now_is_not_released_by_an_older_order(
    driver: PreparingDriver, prepared: Prepare, cache: Cache
) -> None:
    preparation = prepared(scripted=driver)
    preparation.prepare([turn(2)])
    preparation.release([turn(1)])
    with pytest.raises(DriverError, match='was released before'):
        preparation.prepare([turn(1)])
    assert driver.prepared == {'a'}
    assert cache.kept['a'].handle.turn == 2
    preparation.release([turn(2)])
    assert driver.prepared == set()


def test_one_that_failed_may_be_prepared_again_in_the_same_turn(
    driver: PreparingDriver, prepared: Prepare
) -> None:
    """The others were given back, but nobody has taken the handles from the request."""
    preparation = prepared(scripted=driver)
    driver.refused['b'] = RuntimeError('a mistake')
    both = [turn(1), handle(_ONE, 'b')]
    with pytest.raises(RuntimeError):
        preparation.prepare(both)
    driver.refused.clear()
    preparation.prepare(both)
    assert driver.prepared == {'a', 'b'}


@pytest.mark.parametrize('failure', [refusal(), RuntimeError('a mistake')])
def test_when_one_cannot_be_prepared_none_stays_so(
    driver: PreparingDriver, failure: Exception, prepared: Prepare
) -> None:
    driver.refused['c'] = failure
    preparation = prepared(scripted=driver)
    with pytest.raises(type(failure)):
        preparation.prepare([handle(_ONE, 'a'), handle(_ONE, 'b'), handle(_ONE, 'c')])
    assert driver.prepared == set()


def test_only_what_this_call_prepared_is_given_back(
    driver: PreparingDriver, prepared: Prepare
) -> None:
    preparation = prepared(scripted=driver)
    preparation.prepare([handle(_ONE, 'before')])
    driver.refused['b'] = refusal()
    with pytest.raises(DriverError):
        preparation.prepare([handle(_ONE, 'a'), handle(_ONE, 'b')])
    assert driver.prepared == {'before'}


@pytest.mark.parametrize('failure', [refusal(), RuntimeError('a mistake')])
def test_one_that_cannot_be_released_does_not_keep_the_others(
    driver: PreparingDriver, failure: Exception, prepared: Prepare
) -> None:
    preparation = prepared(scripted=driver)
    handles = [handle(_ONE, 'a'), handle(_ONE, 'b'), handle(_ONE, 'c')]
    preparation.prepare(handles)
    driver.refused['a'] = failure
    with pytest.raises(DriverError):
        preparation.release(handles)
    assert driver.prepared == {'a'}


def test_a_driver_whose_handles_need_nothing_is_not_asked(prepared: Prepare) -> None:
    driver = ScriptedDriver(_HOST, {})
    driver.findings = [finding(_ONE)]
    assert not isinstance(driver, Preparing)
    preparation = prepared(scripted=driver)
    preparation.prepare([handle(_ONE)])
    preparation.release([handle(_ONE)])


def test_a_device_that_is_gone_cannot_be_prepared(
    driver: PreparingDriver, prepared: Prepare
) -> None:
    with pytest.raises(DeviceGone):
        prepared(scripted=driver).prepare([handle('0000:09:00.0')])


def test_what_was_made_on_a_device_that_is_gone_is_gone(
    driver: PreparingDriver, prepared: Prepare
) -> None:
    prepared(scripted=driver).release([handle('0000:09:00.0')])
    assert driver.prepared == set()


def test_while_a_driver_is_silent_no_device_is_taken_for_gone(
    driver: PreparingDriver, prepared: Prepare
) -> None:
    driver.failure = OSError('not now')
    preparation = prepared(scripted=driver)
    for act in (preparation.prepare, preparation.release):
        with pytest.raises(DriverError, match='scripted does not answer') as caught:
            act([handle(_ONE)])
        assert not isinstance(caught.value, DeviceGone)


class _MeetingDriver(PreparingDriver):
    """Waits in ``prepare`` for a second caller, who may be kept from coming."""

    def __init__(self, host: Host, patience: float) -> None:
        super().__init__(host, {})
        self.met = 0
        self._meeting = threading.Barrier(2, timeout=patience)

    def prepare(self, handle: HeldHandle) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            self._meeting.wait()
            self.met += 1
        super().prepare(handle)


def _prepare_side_by_side(preparation: Preparation, handles: list[HeldHandle]) -> None:
    threads = [
        threading.Thread(target=preparation.prepare, args=([each],)) for each in handles
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_devices_do_not_wait_for_one_another(prepared: Prepare) -> None:
    driver = _MeetingDriver(_HOST, patience=30.0)
    driver.findings = [finding(_ONE), finding(_OTHER)]
    _prepare_side_by_side(
        prepared(scripted=driver), [handle(_ONE, 'a'), handle(_OTHER, 'b')]
    )
    assert driver.prepared == {'a', 'b'}
    assert driver.met == 2


def test_one_thing_at_a_time_happens_to_a_device(prepared: Prepare) -> None:
    driver = _MeetingDriver(_HOST, patience=0.5)
    driver.findings = [finding(_ONE)]
    _prepare_side_by_side(
        prepared(scripted=driver), [handle(_ONE, 'a'), handle(_ONE, 'b')]
    )
    assert driver.prepared == {'a', 'b'}
    assert driver.met == 0


# --- what is remembered ----------------------------------------------------------


class _WatchedDriver(PreparingDriver):
    """Notes what the agent knew when the driver was asked."""

    def __init__(self, cache: Cache) -> None:
        super().__init__(_HOST, {})
        self.findings = [finding(_ONE)]
        self.known: list[dict[str, str | None]] = []
        self._cache = cache

    def prepare(self, handle: HeldHandle) -> None:
        self.known.append({u: one.boot_id for u, one in self._cache.kept.items()})
        super().prepare(handle)


def test_a_handle_is_ours_before_anything_is_made_of_it(
    cache: Cache, prepared: Prepare
) -> None:
    """So that what a crash left behind is not taken for a stranger's."""
    driver = _WatchedDriver(cache)
    prepared(scripted=driver).prepare([handle(_ONE, 'a'), handle(_ONE, 'b')])
    assert driver.known[0] == {'a': None, 'b': None}
    assert {u: one.boot_id for u, one in cache.kept.items()} == {'a': '', 'b': ''}


def test_what_was_given_back_is_forgotten(
    driver: PreparingDriver, cache: Cache, prepared: Prepare
) -> None:
    preparation = prepared(scripted=driver)
    preparation.prepare([handle(_ONE, 'kept')])
    driver.refused['b'] = refusal()
    with pytest.raises(DriverError):
        preparation.prepare([handle(_ONE, 'a'), handle(_ONE, 'b'), handle(_ONE, 'c')])
    assert set(cache.kept) == {'kept'}
    preparation.release([handle(_ONE, 'kept')])
    assert cache.kept == {}


def test_what_cannot_be_released_is_not_forgotten(
    driver: PreparingDriver, cache: Cache, prepared: Prepare
) -> None:
    preparation = prepared(scripted=driver)
    preparation.prepare([handle(_ONE, 'a'), handle(_ONE, 'b')])
    driver.refused['a'] = refusal()
    with pytest.raises(DriverError):
        preparation.release([handle(_ONE, 'a'), handle(_ONE, 'b')])
    assert set(cache.kept) == {'a'}


def test_a_failure_does_not_forget_what_was_ready_before(
    driver: PreparingDriver, cache: Cache, prepared: Prepare
) -> None:
    preparation = prepared(scripted=driver)
    preparation.prepare([handle(_ONE, 'a')])
    driver.refused['x'] = refusal()
    with pytest.raises(DriverError):
        preparation.prepare([handle(_ONE, 'x'), handle(_ONE, 'a')])
    assert set(cache.kept) == {'a'}


def test_the_journal_tells_of_each_once(
    driver: PreparingDriver, journal: Journal, prepared: Prepare
) -> None:
    preparation = prepared(scripted=driver)
    for _ in range(2):
        preparation.prepare([handle(_ONE, 'a')])
    for _ in range(2):
        preparation.release([handle(_ONE, 'a')])
    told = [(event.kind, event.arq_uuid) for event in journal.waiting(9)]
    assert told == [('Prepared', 'arq-of-a'), ('Released', 'arq-of-a')]


def test_what_was_released_meanwhile_is_not_rebuilt(
    driver: PreparingDriver, cache: Cache, prepared: Prepare
) -> None:
    preparation = prepared(scripted=driver)
    cache.intend([handle(_ONE, 'a')])
    preparation.release([handle(_ONE, 'a')])
    preparation.rebuild(handle(_ONE, 'a'))
    assert driver.prepared == set()
    assert cache.kept == {}
