# SPDX-License-Identifier: Apache-2.0
"""Tests of the telemetry collector: reads in the background, health and rounding."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.telemetry import TelemetryCollector, round_usage
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Device, Health
from tests.doubles.drivers import ScriptedDriver, discovery_result

_HOST = Host('compute-1', Path('/nonexistent'))
_FIRST, _SECOND = '0000:01:00.0', '0000:02:00.0'


class MeasuringDriver(ScriptedDriver):
    """Driver that returns the given usage or raises the given error."""

    def __init__(self) -> None:
        super().__init__(_HOST, {})
        self.usages: dict[str, Usage | Exception] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.read_count = 0

    def read_usage(self, device: Device) -> Usage:
        self.read_count += 1
        self.gate.wait()
        usage = self.usages[device.control_address]
        if isinstance(usage, Exception):
            raise usage
        return usage


def collect_telemetry(driver: MeasuringDriver) -> TelemetryCollector:
    collector = TelemetryCollector({'scripted': driver})
    collector.start_reading([discovery_result(_FIRST), discovery_result(_SECOND)])
    collector.wait()
    return collector


def test_start_reading_driver_without_telemetry_is_skipped() -> None:
    collector = TelemetryCollector({'scripted': ScriptedDriver(_HOST, {})})
    collector.start_reading([discovery_result(_FIRST)])
    collector.wait()
    assert collector.usages == {}


def test_start_reading_failed_device_affects_only_it() -> None:
    driver = MeasuringDriver()
    for failure in (DriverError(reason='no'), ZeroDivisionError()):
        driver.usages = {_FIRST: failure, _SECOND: Usage(power=100.0)}
        assert set(collect_telemetry(driver).usages) == {_SECOND}


@pytest.mark.parametrize(
    'invalid_usage',
    [
        Usage(reason='x' * 5000),
        Usage(reason='\0'),
        Usage(counters={f'c{number}': 1 for number in range(33)}),
        Usage(counters={'errors': -1}),
        Usage(power=float('nan')),
        Usage(temperature=float('inf')),
        Usage(memory_total=2**70),
        Usage(units_total='many'),  # type: ignore[arg-type]  # an invalid value
        'not a usage',
        None,
    ],
)
def test_start_reading_invalid_usage_affects_only_its_device(
    invalid_usage: Usage,
) -> None:
    """The conductor rejects a whole heartbeat for one invalid value."""
    driver = MeasuringDriver()
    driver.usages = {_FIRST: invalid_usage, _SECOND: Usage(power=100.0)}
    assert set(collect_telemetry(driver).usages) == {_SECOND}


def test_start_reading_hanging_driver_is_not_read_twice() -> None:
    driver = MeasuringDriver()
    driver.usages = {_FIRST: Usage(), _SECOND: Usage()}
    driver.gate.clear()
    collector = TelemetryCollector({'scripted': driver})
    try:
        for _ in range(3):
            collector.start_reading(
                [discovery_result(_FIRST), discovery_result(_SECOND)]
            )
        assert collector.usages == {}
    finally:
        driver.gate.set()
    collector.wait()
    assert driver.read_count == 2
    assert set(collector.usages) == {_FIRST, _SECOND}


def test_health_callback_is_called_on_changed_health() -> None:
    driver = MeasuringDriver()
    driver.usages = {_FIRST: Usage(power=50.0), _SECOND: Usage()}
    notifications: list[str] = []
    collector = collect_telemetry(driver)
    collector.on_health_change = lambda: notifications.append('news')

    def read_next(usage: Usage) -> int:
        driver.usages[_FIRST] = usage
        collector.start_reading([discovery_result(_FIRST), discovery_result(_SECOND)])
        collector.wait()
        return len(notifications)

    assert read_next(Usage(power=75.0)) == 0
    assert read_next(Usage(Health.FAILED, 'lost')) == 1
    assert read_next(Usage(Health.FAILED, 'lost')) == 1
    assert read_next(Usage()) == 2


def test_amend_reports_health_from_telemetry() -> None:
    driver = MeasuringDriver()
    driver.usages = {_FIRST: Usage(Health.FAILED, 'lost'), _SECOND: Usage()}
    collector = collect_telemetry(driver)
    device = collector.amend(discovery_result(_FIRST)).device
    assert device is not None
    assert (device.health, device.health_reason) == (Health.FAILED, 'lost')
    assert collector.amend(discovery_result(_SECOND)) == discovery_result(_SECOND)
    refused_result = discovery_result(_FIRST, is_offered=False)
    assert collector.amend(refused_result) == refused_result
    # The health from the last scan takes precedence.
    device = replace(device, health=Health.BUSY, health_reason='mine')
    busy = replace(discovery_result(_FIRST), device=device)
    assert collector.amend(busy) == busy


def test_round_usage_removes_noise() -> None:
    measured_usage = Usage(
        busy_percent=41.0, temperature=61.4, power=101.9, memory_used=10**9
    )
    similar = Usage(
        busy_percent=42.0, temperature=62.3, power=98.2, memory_used=10**9 + 9
    )
    assert round_usage(measured_usage) == round_usage(similar)
    assert round_usage(measured_usage) != round_usage(
        replace(measured_usage, busy_percent=60.0)
    )
    unknown = Usage()
    assert round_usage(unknown) == unknown
    assert round_usage(Usage(busy_percent=0.0)).busy_percent == 0.0
