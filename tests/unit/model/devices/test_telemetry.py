# SPDX-License-Identifier: Apache-2.0
"""Tests of the JSON form of telemetry."""

from cyborg_lite.model.devices.telemetry import (
    Usage,
    telemetry_values,
)
from cyborg_lite.model.inventory.host_report import Health


def test_telemetry_values_returns_known_numbers() -> None:
    usage = Usage(Health.FAILED, 'lost', busy_percent=0.0, power=5.0, counters={'a': 1})
    assert telemetry_values(usage) == {'busy_percent': 0.0, 'power': 5.0}
