# SPDX-License-Identifier: Apache-2.0
"""Tests of the watch of one driver: its results, errors and missing devices."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.driver_watch import DriverWatch
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.inventory.host_report import DiscoveryResult, Health
from tests.doubles.drivers import HangingDriver, ScriptedDriver, discovery_result

HOST = Host('compute-1', Path('/nonexistent'))
ADDRESS, OTHER_ADDRESS = '0000:01:00.0', '0000:02:00.0'
SCANS = 3


@pytest.fixture
def driver() -> ScriptedDriver:
    driver = ScriptedDriver(HOST, {})
    driver.results = [
        discovery_result(ADDRESS),
        discovery_result(OTHER_ADDRESS, is_offered=False),
    ]
    return driver


def watch_driver(driver: Driver) -> DriverWatch:
    return DriverWatch('scripted', driver, SCANS, HOST.name)


def scan(watch: DriverWatch, seconds: float = 60.0) -> None:
    watch.begin()
    watch.finish(time.monotonic() + seconds)


def healths(watch: DriverWatch) -> dict[str, Health]:
    devices = {result.address: result.device for result in watch.list_results()}
    return {
        address: device.health
        for address, device in devices.items()
        if device is not None
    }


def test_list_results_before_first_scan_is_empty_with_error(
    driver: ScriptedDriver,
) -> None:
    watch = watch_driver(driver)
    assert watch.list_results() == ()
    assert watch.error == 'it has not completed a scan yet'
    scan(watch)
    assert watch.error == ''
    assert watch.list_results() == tuple(driver.results)


def test_restore_result_transfers_devices_to_new_process(
    driver: ScriptedDriver,
) -> None:
    watch = watch_driver(driver)
    scan(watch)
    assert [result.address for result in watch.devices] == [ADDRESS]
    successor = watch_driver(ScriptedDriver(HOST, {}))
    for result in watch.devices:
        successor.restore_result(result)
    assert [result.address for result in successor.devices] == [ADDRESS]


def test_missing_device_is_gone_then_removed(
    driver: ScriptedDriver,
) -> None:
    watch = watch_driver(driver)
    scan(watch)
    driver.results = []
    observed = []
    for _ in range(SCANS):
        scan(watch)
        observed.append(healths(watch))
    assert observed == [{ADDRESS: Health.GONE}] * (SCANS - 1) + [{}]
    assert watch.misses == {}


def test_returned_device_resets_misses(
    driver: ScriptedDriver,
) -> None:
    watch = watch_driver(driver)
    present = driver.results
    for results in (present, [], present, [], [], present):
        driver.results = results
        scan(watch)
    assert healths(watch) == {ADDRESS: Health.OK}
    assert watch.misses == {}


def test_failed_scan_does_not_count_as_miss(
    driver: ScriptedDriver,
) -> None:
    watch = watch_driver(driver)
    scan(watch)
    driver.results, driver.failure = [], OSError('the card is on fire')
    for _ in range(2 * SCANS):
        scan(watch)
    assert healths(watch) == {ADDRESS: Health.DEGRADED}
    assert watch.error == 'OSError: the card is on fire'


def test_hanging_scan_is_not_repeated_and_completes_later() -> None:
    driver = HangingDriver(HOST, {})
    driver.results = [discovery_result(ADDRESS)]
    watch = watch_driver(driver)
    try:
        for _ in range(3):
            scan(watch, seconds=0)
        assert (driver.scan_count, watch.error) == (1, 'it exceeded driver_timeout')
    finally:
        driver.continue_scan.set()
    assert watch._thread is not None
    watch._thread.join()
    assert healths(watch) == {ADDRESS: Health.OK}
    assert watch.error == ''


def test_moved_card_is_not_reported_at_both_addresses(driver: ScriptedDriver) -> None:
    watch = watch_driver(driver)
    driver.results = [with_serial('0000:01:00.0')]
    scan(watch)
    driver.results = []
    scan(watch)
    assert healths(watch) == {'0000:01:00.0': Health.GONE}
    driver.results = [with_serial('0000:05:00.0')]
    scan(watch)
    assert healths(watch) == {'0000:05:00.0': Health.OK}


def test_card_with_common_serial_is_gone_as_before(driver: ScriptedDriver) -> None:
    watch = watch_driver(driver)
    driver.results = [with_serial('0000:01:00.0'), with_serial('0000:05:00.0')]
    scan(watch)
    driver.results = [with_serial('0000:05:00.0')]
    scan(watch)
    states = {'0000:01:00.0': Health.GONE, '0000:05:00.0': Health.OK}
    assert healths(watch) == states


def with_serial(address: str) -> DiscoveryResult:
    result = discovery_result(address)
    assert result.device is not None
    return replace(result, device=replace(result.device, hardware_id='S1'))
