# SPDX-License-Identifier: Apache-2.0
"""What a host has lost without a boot is made again, or told of once."""

import threading
from pathlib import Path
from typing import Final

import pytest

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.journal import Journal
from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.agent.upkeep import Upkeep
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.host_events import HostEventKind
from tests.fakes.drivers import PreparingDriver, finding, handle, refusal

CARD: Final = '0000:01:00.0'


class CheckingDriver(PreparingDriver):
    def is_prepared(self, handle: HeldHandle) -> bool:
        self.looks += 1
        return handle.uuid in self.prepared


class Bench:
    """An agent's parts, with two handles that are ready."""

    def __init__(self, cache: Cache, journal: Journal, driver: PreparingDriver) -> None:
        driver.findings = [finding(CARD)]
        discovery = Discovery(
            Host('compute-1', Path('/nowhere')), {'scripted': driver}, 60.0
        )
        discovery.look()
        self.driver, self.journal = driver, journal
        self.preparation = Preparation(discovery, cache, journal)
        self.stopping = threading.Event()
        self.upkeep = Upkeep(self.preparation, cache, journal, self.stopping)
        self.preparation.prepare([handle(CARD, 'a'), handle(CARD, 'b')])
        self.heard()

    def heard(self) -> list[tuple[str, str]]:
        """Kinds and requests of events since the last time."""
        events = self.journal.waiting(100)
        self.journal.heard(0)
        self.journal.heard(max((event.number for event in events), default=0))
        return [(event.kind, event.arq_uuid or '') for event in events]


@pytest.fixture
def driver() -> CheckingDriver:
    return CheckingDriver(Host('compute-1', Path('/nowhere')), {})


@pytest.fixture
def bench(cache: Cache, journal: Journal, driver: CheckingDriver) -> Bench:
    return Bench(cache, journal, driver)


def test_what_is_there_is_left_alone(bench: Bench, driver: CheckingDriver) -> None:
    driver.refused = dict.fromkeys('ab', refusal())
    bench.upkeep.turn()
    assert bench.heard() == []


def test_what_is_lost_is_made_again(bench: Bench, driver: CheckingDriver) -> None:
    driver.prepared.remove('b')
    for _ in range(2):
        bench.upkeep.turn()
    assert driver.prepared == {'a', 'b'}
    assert bench.heard() == [(HostEventKind.REBUILT, 'arq-of-b')]


@pytest.mark.parametrize('trouble', [refusal(), RuntimeError('a mistake')])
def test_what_cannot_be_helped_is_told_once_and_tried_again(
    bench: Bench, driver: CheckingDriver, trouble: Exception
) -> None:
    driver.prepared.clear()
    driver.refused['a'] = trouble
    for _ in range(3):
        bench.upkeep.turn()
    assert driver.prepared == {'b'}
    assert bench.heard() == [
        (HostEventKind.REBUILT, 'arq-of-b'),
        (HostEventKind.NOT_REBUILT, 'arq-of-a'),
    ]
    driver.refused.clear()
    bench.upkeep.turn()
    assert driver.prepared == {'a', 'b'}
    assert bench.heard() == [(HostEventKind.REBUILT, 'arq-of-a')]


def test_what_was_released_stays_so(bench: Bench, driver: CheckingDriver) -> None:
    bench.preparation.release([handle(CARD, 'a')])
    bench.upkeep.turn()
    assert driver.prepared == {'b'}


def test_what_is_about_to_be_prepared_is_not_lost(
    bench: Bench, cache: Cache, driver: CheckingDriver
) -> None:
    cache.intend([handle(CARD, 'c')])
    bench.upkeep.turn()
    assert driver.prepared == {'a', 'b'}


def test_what_a_boot_has_undone_is_left_to_the_recovery(
    bench: Bench, cache: Cache, driver: CheckingDriver
) -> None:
    driver.prepared.clear()
    cache.ready(['a', 'b'], 'an earlier boot')
    bench.upkeep.turn()
    assert (driver.prepared, bench.heard()) == (set(), [])


def test_a_driver_that_cannot_tell_is_not_asked(cache: Cache, journal: Journal) -> None:
    driver = PreparingDriver(Host('compute-1', Path('/nowhere')), {})
    bench = Bench(cache, journal, driver)
    driver.prepared.clear()
    bench.upkeep.turn()
    assert driver.prepared == set()


def test_the_loop_looks_at_once_and_whenever_it_is_woken_and_ends(
    bench: Bench, driver: CheckingDriver
) -> None:
    turns = threading.Semaphore(0)
    turn = bench.upkeep.turn

    def counted() -> None:
        turn()
        turns.release()
        raise RuntimeError('a mistake of ours')

    bench.upkeep.turn = counted  # type: ignore[method-assign]  # to hear of it
    loop = threading.Thread(target=bench.upkeep.run)
    loop.start()
    assert turns.acquire(timeout=30)
    bench.upkeep.wake()
    assert turns.acquire(timeout=30)
    bench.stopping.set()
    bench.upkeep.wake()
    loop.join(30)
    assert not loop.is_alive()
