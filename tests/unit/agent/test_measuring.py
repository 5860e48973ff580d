# SPDX-License-Identifier: Apache-2.0
"""Figures are asked for, never waited for, and noise is no news."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.measuring import Measurements, rounded
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import DriverError
from cyborg_lite.model.inventory import Device, Health
from cyborg_lite.model.usage import Usage
from tests.fakes.drivers import ScriptedDriver, finding

_HOST = Host('compute-1', Path('/nonexistent'))
_ONE, _OTHER = '0000:01:00.0', '0000:02:00.0'


class MeasuringDriver(ScriptedDriver):
    """Tells what it is told to tell of each device."""

    def __init__(self) -> None:
        super().__init__(_HOST, {})
        self.usages: dict[str, Usage | Exception] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.asked = 0

    def usage(self, device: Device) -> Usage:
        self.asked += 1
        self.gate.wait()
        said = self.usages[device.address]
        if isinstance(said, Exception):
            raise said
        return said


def measured(driver: MeasuringDriver) -> Measurements:
    measurements = Measurements({'scripted': driver})
    measurements.begin([finding(_ONE), finding(_OTHER)])
    measurements.finish()
    return measurements


def test_each_device_is_measured() -> None:
    driver = MeasuringDriver()
    driver.usages = {_ONE: Usage(power=50.0), _OTHER: Usage(power=100.0)}
    assert measured(driver).figures == driver.usages


def test_a_driver_that_cannot_tell_is_not_asked() -> None:
    measurements = Measurements({'scripted': ScriptedDriver(_HOST, {})})
    measurements.begin([finding(_ONE)])
    measurements.finish()
    assert measurements.figures == {}


def test_one_device_that_fails_costs_only_its_own_figures() -> None:
    driver = MeasuringDriver()
    for failure in (DriverError(reason='no'), ZeroDivisionError()):
        driver.usages = {_ONE: failure, _OTHER: Usage(power=100.0)}
        assert set(measured(driver).figures) == {_OTHER}


@pytest.mark.parametrize(
    'nonsense',
    [
        Usage(reason='x' * 5000),
        Usage(reason='\0'),
        Usage(counters={f'c{number}': 1 for number in range(33)}),
        Usage(counters={'errors': -1}),
        Usage(power=float('nan')),
        Usage(temperature=float('inf')),
        Usage(memory_total=2**70),
        Usage(units_total='many'),  # type: ignore[arg-type]  # it is the point
        'not a usage',
        None,
    ],
)
def test_figures_that_cannot_be_kept_cost_only_their_own_device(
    nonsense: Usage,
) -> None:
    """The conductor refuses a whole heartbeat for one wrong figure."""
    driver = MeasuringDriver()
    driver.usages = {_ONE: nonsense, _OTHER: Usage(power=100.0)}
    assert set(measured(driver).figures) == {_OTHER}


def test_a_driver_that_hangs_is_not_waited_for_and_not_asked_twice() -> None:
    driver = MeasuringDriver()
    driver.usages = {_ONE: Usage(), _OTHER: Usage()}
    driver.gate.clear()
    measurements = Measurements({'scripted': driver})
    try:
        for _ in range(3):
            measurements.begin([finding(_ONE), finding(_OTHER)])
        assert measurements.figures == {}
    finally:
        driver.gate.set()
    measurements.finish()
    assert driver.asked == 2
    assert set(measurements.figures) == {_ONE, _OTHER}


def test_a_device_that_falls_ill_or_gets_well_is_news() -> None:
    driver = MeasuringDriver()
    driver.usages = {_ONE: Usage(power=50.0), _OTHER: Usage()}
    rung: list[str] = []
    measurements = measured(driver)
    measurements.watch(lambda: rung.append('news'))

    def again(usage: Usage) -> int:
        driver.usages[_ONE] = usage
        measurements.begin([finding(_ONE), finding(_OTHER)])
        measurements.finish()
        return len(rung)

    assert again(Usage(power=75.0)) == 0
    assert again(Usage(Health.FAILED, 'lost')) == 1
    assert again(Usage(Health.FAILED, 'lost')) == 1
    assert again(Usage()) == 2


def test_ill_health_that_only_figures_show_is_reported() -> None:
    driver = MeasuringDriver()
    driver.usages = {_ONE: Usage(Health.FAILED, 'lost'), _OTHER: Usage()}
    measurements = measured(driver)
    shown = measurements.amended(finding(_ONE)).device
    assert shown is not None
    assert (shown.health, shown.health_reason) == (Health.FAILED, 'lost')
    assert measurements.amended(finding(_OTHER)) == finding(_OTHER)
    refused = finding(_ONE, offered=False)
    assert measurements.amended(refused) == refused
    # What the driver said of it when it looked is better known than that.
    device = replace(shown, health=Health.BUSY, health_reason='mine')
    busy = replace(finding(_ONE), device=device)
    assert measurements.amended(busy) == busy


def test_noise_is_rounded_away() -> None:
    noisy = Usage(busy_percent=41.0, temperature=61.4, power=101.9, memory_used=10**9)
    other = Usage(
        busy_percent=42.0, temperature=62.3, power=98.2, memory_used=10**9 + 9
    )
    assert rounded(noisy) == rounded(other)
    assert rounded(noisy) != rounded(replace(noisy, busy_percent=60.0))
    unknown = Usage()
    assert rounded(unknown) == unknown
    assert rounded(Usage(busy_percent=0.0)).busy_percent == 0.0
