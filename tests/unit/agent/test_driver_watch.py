# SPDX-License-Identifier: Apache-2.0
"""What one driver says stands until it says otherwise, and goes slowly."""

import time
from pathlib import Path

import pytest

from cyborg_lite.agent.driver_watch import DriverWatch
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.inventory import Health
from tests.fakes.drivers import HangingDriver, ScriptedDriver, finding

HOST = Host('compute-1', Path('/nonexistent'))
ONE, OTHER = '0000:01:00.0', '0000:02:00.0'
SCANS = 3


@pytest.fixture
def driver() -> ScriptedDriver:
    driver = ScriptedDriver(HOST, {})
    driver.findings = [finding(ONE), finding(OTHER, offered=False)]
    return driver


def watch_of(driver: Driver) -> DriverWatch:
    return DriverWatch('scripted', driver, SCANS, HOST.name)


def look(watch: DriverWatch, seconds: float = 60.0) -> None:
    watch.begin()
    watch.finish(time.monotonic() + seconds)


def healths(watch: DriverWatch) -> dict[str, Health]:
    shown = {each.address: each.device for each in watch.shown()}
    return {address: one.health for address, one in shown.items() if one is not None}


def test_before_the_first_look_nothing_is_known_and_that_is_said(
    driver: ScriptedDriver,
) -> None:
    watch = watch_of(driver)
    assert watch.shown() == ()
    assert watch.trouble == 'it has not answered yet'
    look(watch)
    assert watch.trouble == ''
    assert watch.shown() == tuple(driver.findings)


def test_only_devices_are_kept_for_another_process(driver: ScriptedDriver) -> None:
    watch = watch_of(driver)
    look(watch)
    assert [each.address for each in watch.devices] == [ONE]
    successor = watch_of(ScriptedDriver(HOST, {}))
    for each in watch.devices:
        successor.recall(each)
    assert [each.address for each in successor.devices] == [ONE]


def test_a_device_that_is_missing_is_gone_at_the_last_of_some_looks(
    driver: ScriptedDriver,
) -> None:
    watch = watch_of(driver)
    look(watch)
    driver.findings = []
    seen = []
    for _ in range(SCANS):
        look(watch)
        seen.append(healths(watch))
    assert seen == [{ONE: Health.GONE}] * (SCANS - 1) + [{}]
    assert watch.misses == {}


def test_a_device_that_is_back_in_time_has_missed_nothing(
    driver: ScriptedDriver,
) -> None:
    watch = watch_of(driver)
    here = driver.findings
    for found in (here, [], here, [], [], here):
        driver.findings = found
        look(watch)
    assert healths(watch) == {ONE: Health.OK}
    assert watch.misses == {}


def test_a_look_that_fails_is_no_look_without_the_device(
    driver: ScriptedDriver,
) -> None:
    watch = watch_of(driver)
    look(watch)
    driver.findings, driver.failure = [], OSError('the card is on fire')
    for _ in range(2 * SCANS):
        look(watch)
    assert healths(watch) == {ONE: Health.DEGRADED}
    assert watch.trouble == 'OSError: the card is on fire'


def test_a_driver_that_hangs_is_asked_no_second_time_and_heard_in_the_end() -> None:
    driver = HangingDriver(HOST, {})
    driver.findings = [finding(ONE)]
    watch = watch_of(driver)
    try:
        for _ in range(3):
            look(watch, seconds=0)
        assert (driver.looks, watch.trouble) == (1, 'it does not return')
    finally:
        driver.let_go.set()
    assert watch._thread is not None
    watch._thread.join()
    assert healths(watch) == {ONE: Health.OK}
    assert watch.trouble == ''
