# SPDX-License-Identifier: Apache-2.0
"""Tests of the preparation and release of handles."""

import contextlib
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal
from cyborg_lite.drivers.base import Driver, PreparesHandles
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.drivers import DeviceGone, DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle, ConfirmedHandle
from tests.doubles.drivers import (
    PreparingDriver,
    ScriptedDriver,
    discovery_result,
    handle,
    refusal,
)

_HOST = Host('compute-1', Path('/nonexistent'))
_FIRST, _SECOND = '0000:01:00.0', '0000:02:00.0'


class _EventfulDriver(PreparingDriver):
    """Driver during whose calls for one handle something else happens."""

    def __init__(self) -> None:
        super().__init__(_HOST, {})
        self.results = [discovery_result(_FIRST), discovery_result(_SECOND)]
        # What happens before a preparation and during a release, by handle.
        self.before: dict[str, Callable[[], object]] = {}
        self.meanwhile: dict[str, Callable[[], object]] = {}

    def prepare(self, handle: AllocatedHandle) -> None:
        self.before.get(handle.uuid, list)()
        super().prepare(handle)

    def release(self, handle: AllocatedHandle) -> None:
        super().release(handle)
        self.meanwhile.get(handle.uuid, list)()


@pytest.fixture
def driver() -> _EventfulDriver:
    return _EventfulDriver()


class Prepare(Protocol):
    def __call__(
        self, *, cache: Cache = ..., locks: DeviceLocks = ..., **drivers: Driver
    ) -> Preparation: ...


@pytest.fixture
def build_preparation(cache: Cache, journal: Journal) -> Prepare:
    """Return a factory of preparations whose drivers have scanned once."""

    def _build_preparation(
        *, cache: Cache = cache, locks: DeviceLocks | None = None, **drivers: Driver
    ) -> Preparation:
        discovery = Discovery(_HOST, drivers, 60.0)
        discovery.scan()
        return Preparation(discovery, cache, journal, locks or DeviceLocks())

    return _build_preparation


@pytest.fixture
def preparation(build_preparation: Prepare, driver: _EventfulDriver) -> Preparation:
    return build_preparation(scripted=driver)


def test_prepare_and_release_are_idempotent(
    driver: _EventfulDriver, journal: Journal, preparation: Preparation
) -> None:
    handles = [handle(_FIRST, 'a'), handle(_SECOND, 'b')]
    for _ in range(2):
        preparation.prepare(handles)
        assert driver.prepared == {'a', 'b'}
    for _ in range(2):
        preparation.release(handles)
        assert driver.prepared == set()
    events = [(event.kind, event.arq_uuid) for event in journal.list_unsent(9)]
    assert events == [
        (kind, f'arq-of-{uuid}') for kind in ('Prepared', 'Released') for uuid in 'ab'
    ]


def with_generation(number: int) -> AllocatedHandle:
    return replace(handle(_FIRST, 'a'), generation=number)


def test_prepare_after_release_of_same_generation_raises(
    driver: _EventfulDriver, preparation: Preparation, cache: Cache
) -> None:
    """After a pause the agent may receive stale RPCs out of order."""
    preparation.release([with_generation(1)])
    with pytest.raises(DriverError, match='was released before'):
        preparation.prepare([with_generation(1)])
    assert (driver.prepared, cache.handles) == (set(), {})
    preparation.prepare([with_generation(2)])
    assert driver.prepared == {'a'}


def test_prepare_released_while_waiting_raises(
    driver: _EventfulDriver, preparation: Preparation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release of the same generation arrives before the lock is taken."""
    find_driver = Discovery.find_driver

    def release_and_find(discovery: Discovery, address: str) -> Driver | None:
        monkeypatch.setattr(Discovery, 'find_driver', find_driver)
        preparation.release([with_generation(1)])
        return find_driver(discovery, address)

    monkeypatch.setattr(Discovery, 'find_driver', release_and_find)
    with pytest.raises(DriverError, match='was released before'):
        preparation.prepare([with_generation(1)])
    assert driver.prepared == set()


def test_release_older_generation_is_ignored(
    driver: _EventfulDriver, preparation: Preparation, cache: Cache
) -> None:
    preparation.prepare([with_generation(2)])
    preparation.release([with_generation(1)])
    with pytest.raises(DriverError, match='was released before'):
        preparation.prepare([with_generation(1)])
    assert driver.prepared == {'a'}
    assert cache.handles['a'].handle.generation == 2
    preparation.release([with_generation(2)])
    assert driver.prepared == set()


class _PausedCache(Cache):
    """Cache that pauses the call of generation 1 just before it stores the handle."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.is_paused = threading.Event()
        self.resume = threading.Event()

    def add_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        added = list(handles)
        if added[0].generation == 1:
            self.is_paused.set()
            self.resume.wait(0.5)  # with a guard around both steps nobody resumes it
        super().add_handles(added)


def test_prepare_between_check_and_entry_keeps_newer_generation(
    driver: _EventfulDriver, build_preparation: Prepare, tmp_path: Path
) -> None:
    """A stale call must not overwrite the intent of a newer one."""
    cache = _PausedCache(tmp_path)
    preparation = build_preparation(cache=cache, scripted=driver)

    def prepare_stale() -> None:
        with contextlib.suppress(DriverError):
            preparation.prepare([with_generation(1)])

    stale = threading.Thread(target=prepare_stale)
    stale.start()
    assert cache.is_paused.wait(30.0)
    preparation.prepare([with_generation(2)])
    cache.resume.set()
    stale.join()
    assert cache.handles['a'].handle.generation == 2
    assert driver.prepared == {'a'}


class _OvertakenCache(Cache):
    """Cache that stores generation 2 as soon as generation 1 is stored."""

    def add_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        super().add_handles(handles)
        super().add_handles([with_generation(2)])


def test_prepare_overtaken_keeps_intent_of_newer_generation(
    driver: _EventfulDriver, build_preparation: Prepare, tmp_path: Path
) -> None:
    """The cleanup of the stale call must not remove what the newer one stored."""
    cache = _OvertakenCache(tmp_path)
    preparation = build_preparation(cache=cache, scripted=driver)
    with pytest.raises(DriverError, match='was released before'):
        preparation.prepare([with_generation(1)])
    assert cache.handles['a'].handle.generation == 2


def test_prepare_after_failure_accepts_same_generation(
    driver: _EventfulDriver, preparation: Preparation
) -> None:
    """The handles stay allocated to the ARQ after the failed call."""
    driver.refusals['b'] = RuntimeError('a mistake')
    handles = [with_generation(1), handle(_FIRST, 'b')]
    with pytest.raises(RuntimeError):
        preparation.prepare(handles)
    driver.refusals.clear()
    preparation.prepare(handles)
    assert driver.prepared == {'a', 'b'}


@pytest.mark.parametrize('failure', [refusal(), RuntimeError('a mistake')])
def test_prepare_failure_releases_only_handles_of_call(
    driver: _EventfulDriver,
    cache: Cache,
    failure: Exception,
    preparation: Preparation,
) -> None:
    preparation.prepare([handle(_FIRST, 'earlier')])
    driver.refusals['b'] = failure
    with pytest.raises(type(failure)):
        preparation.prepare([handle(_FIRST, uuid) for uuid in 'abc'])
    assert driver.prepared == set(cache.handles) == {'earlier'}


@pytest.mark.parametrize('failure', [refusal(), RuntimeError('a mistake')])
def test_release_failure_releases_remaining_handles(
    driver: _EventfulDriver,
    cache: Cache,
    failure: Exception,
    preparation: Preparation,
) -> None:
    handles = [handle(_FIRST, uuid) for uuid in 'abc']
    preparation.prepare(handles)
    driver.refusals['a'] = failure
    with pytest.raises(DriverError):
        preparation.release(handles)
    assert driver.prepared == set(cache.handles) == {'a'}


def test_prepare_driver_without_preparation_is_not_called(
    build_preparation: Prepare,
) -> None:
    driver = ScriptedDriver(_HOST, {})
    driver.results = [discovery_result(_FIRST)]
    assert not isinstance(driver, PreparesHandles)
    preparation = build_preparation(scripted=driver)
    preparation.prepare([handle(_FIRST)])
    preparation.release([handle(_FIRST)])


def test_missing_device_is_released_but_not_prepared(
    preparation: Preparation,
) -> None:
    missing = handle('0000:09:00.0')
    preparation.release([missing])
    with pytest.raises(DeviceGone):
        preparation.prepare([missing])


def test_unavailable_driver_raises_driver_error(
    driver: _EventfulDriver, build_preparation: Prepare
) -> None:
    driver.failure = OSError('not now')
    preparation = build_preparation(scripted=driver)
    for method in (preparation.prepare, preparation.release):
        with pytest.raises(DriverError, match='scripted does not answer') as caught:
            method([handle(_FIRST)])
        assert not isinstance(caught.value, DeviceGone)


# --- cache and journal ---


def test_prepare_caches_handles_before_driver_call(
    driver: _EventfulDriver, cache: Cache, preparation: Preparation
) -> None:
    """After a crash the agent recognizes its own leftovers."""

    def list_boots() -> dict[str, str | None]:
        return {uuid: entry.boot_id for uuid, entry in cache.handles.items()}

    snapshots: list[dict[str, str | None]] = []
    driver.before['a'] = lambda: snapshots.append(list_boots())
    preparation.prepare([handle(_FIRST, 'a'), handle(_FIRST, 'b')])
    assert snapshots == [{'a': None, 'b': None}]
    assert list_boots() == {'a': '', 'b': ''}


def test_rebuild_released_handle_does_nothing(
    driver: _EventfulDriver, cache: Cache, preparation: Preparation
) -> None:
    cache.add_handles([handle(_FIRST, 'a')])
    preparation.release([handle(_FIRST, 'a')])
    preparation.rebuild(handle(_FIRST, 'a'))
    assert driver.prepared == set()
    assert cache.handles == {}


class _ConnectingDriver(PreparingDriver):
    """Driver that records the handles that it connects and releases."""

    def __init__(self) -> None:
        super().__init__(_HOST, {})
        self.results = [discovery_result(_FIRST)]
        self.connected: list[AllocatedHandle] = []
        self.released: list[AllocatedHandle] = []

    def connect(self, handle: AllocatedHandle) -> None:
        self.connected.append(handle)

    def release(self, handle: AllocatedHandle) -> None:
        super().release(handle)
        self.released.append(handle)


def test_prepare_names_handles_to_connect(
    driver: _EventfulDriver, build_preparation: Prepare
) -> None:
    driver.results = [discovery_result(_SECOND)]
    connecting = _ConnectingDriver()
    connecting.results = [discovery_result(_FIRST, 'connecting')]
    preparation = build_preparation(scripted=driver, connecting=connecting)
    handles = [
        replace(handle(address, uuid), bind_generation=3)
        for address, uuid in ((_FIRST, 'a'), (_SECOND, 'b'))
    ]
    confirmed = preparation.prepare(handles)
    assert confirmed == (
        ConfirmedHandle('a', 'arq-of-a', 3),
        ConfirmedHandle('b', 'arq-of-b', 3),
    )
    assert [item.needs_connect for item in confirmed] == [True, False]


def test_connect_ignores_released_and_newer_handles(build_preparation: Prepare) -> None:
    driver = _ConnectingDriver()
    preparation = build_preparation(scripted=driver)
    preparation.prepare([with_generation(2)])
    preparation.connect([with_generation(1)])
    preparation.connect([with_generation(2)])
    preparation.release([with_generation(2)])
    preparation.connect([with_generation(2)])
    assert driver.connected == [with_generation(2)]


def test_release_has_instance_of_prepare(build_preparation: Prepare) -> None:
    driver = _ConnectingDriver()
    preparation = build_preparation(scripted=driver)
    bound_handle = replace(with_generation(1), instance_uuid='instance')
    preparation.prepare([bound_handle])
    preparation.release([with_generation(1)])
    assert driver.released == [bound_handle]


def test_calls_for_stuck_device_end(
    driver: _EventfulDriver, cache: Cache, build_preparation: Prepare
) -> None:
    """Calls without an end would use up the threads of the RPC server."""
    called, may_return = threading.Event(), threading.Event()

    def hang() -> None:
        called.set()
        may_return.wait()

    driver.before['a'] = hang
    preparation = build_preparation(locks=DeviceLocks(0.01), scripted=driver)
    with ThreadPoolExecutor() as executor:
        executor.submit(preparation.prepare, [handle(_FIRST, 'a')])
        assert called.wait(20.0)
        try:
            with pytest.raises(ServiceUnavailable, match=_FIRST):
                preparation.prepare([handle(_FIRST, 'a')])
            preparation.prepare([handle(_SECOND, 'b')])
            assert driver.prepared == {'b'}
            with pytest.raises(DriverError, match=_FIRST):
                preparation.release([handle(_FIRST, 'a'), handle(_SECOND, 'b')])
            assert driver.prepared == set()
            assert 'a' in cache.handles  # an object of it may exist
        finally:
            may_return.set()


# --- calls that overlap ---


@pytest.mark.parametrize('second_card', [_FIRST, _SECOND])
@pytest.mark.parametrize('slow', ['a', 'b'])
def test_prepare_repeated_during_failing_call_confirms_all_or_none(
    slow: str,
    second_card: str,
    driver: _EventfulDriver,
    cache: Cache,
    preparation: Preparation,
) -> None:
    """The call of the conductor timed out, or another conductor repeats it."""
    called, may_fail = threading.Event(), threading.Event()

    def fail_once() -> None:
        del driver.before[slow]
        called.set()
        may_fail.wait()
        raise refusal()

    driver.before[slow] = fail_once
    handles = [handle(_FIRST, 'a'), handle(second_card, 'b')]
    with ThreadPoolExecutor() as executor:
        first = executor.submit(preparation.prepare, handles)
        assert called.wait(30.0)
        repeated = executor.submit(preparation.prepare, handles)
        # A call that waits for the first one would go on after its failure.
        with contextlib.suppress(TimeoutError):
            repeated.exception(0.5)
        may_fail.set()
        assert isinstance(first.exception(), DriverError)
    with pytest.raises(ServiceUnavailable, match=_FIRST):
        repeated.result()
    assert (driver.prepared, cache.handles) == (set(), {})
    assert {item.uuid for item in preparation.prepare(handles)} == {'a', 'b'}
    assert driver.prepared == set(cache.handles) == {'a', 'b'}


def test_prepare_late_repetition_fails_keeps_prepared_handles(
    driver: _EventfulDriver, cache: Cache, preparation: Preparation
) -> None:
    """The ARQs may be Bound since an earlier call."""
    handles = [handle(_FIRST, 'a'), handle(_FIRST, 'b')]
    preparation.prepare(handles)
    driver.refusals['b'] = refusal()
    with pytest.raises(DriverError):
        preparation.prepare(handles)
    assert driver.prepared == set(cache.handles) == {'a', 'b'}


_later_claims = pytest.mark.parametrize(
    'later',
    [
        with_generation(2),
        replace(with_generation(1), arq_uuid='another-arq'),
    ],
)


@_later_claims
def test_prepare_failure_keeps_handle_of_later_claim(
    later: AllocatedHandle,
    driver: _EventfulDriver,
    cache: Cache,
    preparation: Preparation,
) -> None:
    driver.before['b'] = lambda: cache.add_handles([later])
    driver.refusals['b'] = refusal()
    with pytest.raises(DriverError):
        preparation.prepare([with_generation(1), handle(_SECOND, 'b')])
    assert driver.prepared == {'a'}
    assert [entry.handle for entry in cache.handles.values()] == [later]


@_later_claims
def test_release_keeps_entry_of_later_claim(
    later: AllocatedHandle,
    driver: _EventfulDriver,
    cache: Cache,
    preparation: Preparation,
) -> None:
    """The later claim is stored while the driver releases the earlier one."""
    preparation.prepare([with_generation(1)])
    driver.meanwhile['a'] = lambda: cache.add_handles([later])
    preparation.release([with_generation(1)])
    assert [entry.handle for entry in cache.handles.values()] == [later]


@_later_claims
def test_prepare_does_not_confirm_handle_of_later_claim(
    later: AllocatedHandle,
    driver: _EventfulDriver,
    cache: Cache,
    preparation: Preparation,
) -> None:
    driver.before['b'] = lambda: cache.add_handles([later])
    handles = [with_generation(1), handle(_SECOND, 'b')]
    confirmed = preparation.prepare(handles)
    assert [item.uuid for item in confirmed] == ['b']
    assert cache.handles['a'].boot_id is None


def test_prepare_does_not_confirm_handle_released_meanwhile(
    driver: _EventfulDriver, preparation: Preparation
) -> None:
    driver.before['b'] = lambda: preparation.release([with_generation(1)])
    confirmed = preparation.prepare([with_generation(1), handle(_SECOND, 'b')])
    assert [item.uuid for item in confirmed] == ['b']


@pytest.mark.parametrize(
    'values',
    [{'generation': 1}, {'generation': 2}, {'uuid': 'another-uuid', 'generation': 0}],
)
def test_claim_of_prepared_unit_by_another_arq_changes_nothing(
    driver: _EventfulDriver,
    cache: Cache,
    preparation: Preparation,
    values: dict[str, Any],  # of several types
) -> None:
    """A restored database uses generations again, and gives handles other uuids."""
    preparation.prepare([with_generation(1)])
    of_other_arq = replace(with_generation(1), arq_uuid='another-arq', **values)
    with pytest.raises(DriverError, match='is prepared for ARQ arq-of-a of instance'):
        preparation.prepare([of_other_arq])
    preparation.release([of_other_arq])
    assert driver.prepared == {'a'}
    assert cache.handles['a'].handle == with_generation(1)
    assert preparation.prepare([with_generation(1)])


def test_rebuild_handle_of_earlier_claim_does_nothing(
    driver: _EventfulDriver, cache: Cache, preparation: Preparation
) -> None:
    cache.add_handles([with_generation(2)])
    preparation.rebuild(with_generation(1))
    assert driver.prepared == set()
