# SPDX-License-Identifier: Apache-2.0
"""Tests of the watch of one driver: its results, errors and missing devices."""

from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.driver_watch import DriverWatch
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.host.timed_scan import Patience
from cyborg_lite.model.inventory.host_report import DiscoveryResult, Health
from tests.doubles.drivers import ScriptedDriver, discovery_result

HOST = Host('compute-1', Path('/nonexistent'))
SCANS = 3


@pytest.fixture
def driver() -> ScriptedDriver:
    return ScriptedDriver(HOST, {})


@pytest.fixture
def watch(driver: ScriptedDriver) -> DriverWatch:
    return DriverWatch('scripted', driver, SCANS, HOST.name)


def scan(watch: DriverWatch) -> None:
    watch.begin()
    watch.finish(Patience(60.0))


def healths(watch: DriverWatch) -> dict[str, Health]:
    devices = {result.address: result.device for result in watch.list_results()}
    return {
        address: device.health
        for address, device in devices.items()
        if device is not None
    }


def test_moved_card_is_not_reported_at_both_addresses(
    driver: ScriptedDriver, watch: DriverWatch
) -> None:
    driver.results = [with_serial('0000:01:00.0')]
    scan(watch)
    driver.results = []
    scan(watch)
    assert healths(watch) == {'0000:01:00.0': Health.GONE}
    driver.results = [with_serial('0000:05:00.0')]
    scan(watch)
    assert healths(watch) == {'0000:05:00.0': Health.OK}


def test_card_with_common_serial_is_gone_as_before(
    driver: ScriptedDriver, watch: DriverWatch
) -> None:
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
