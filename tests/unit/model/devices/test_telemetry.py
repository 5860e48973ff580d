# SPDX-License-Identifier: Apache-2.0
"""Tests of the JSON form of telemetry."""

import json

from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite import codec
from cyborg_lite.model.devices.telemetry import (
    Usage,
    telemetry_values,
)
from cyborg_lite.model.inventory.host_report import Health

USAGES = st.builds(
    Usage,
    health=st.sampled_from(Health),
    reason=st.text(),
    busy_percent=st.none() | st.floats(0, 100),
    memory_used=st.none() | st.integers(0, 2**62),
    temperature=st.none() | st.floats(-50, 200),
    counters=st.dictionaries(st.text(), st.integers(0)),
)


@given(USAGES)
def test_usage_survives_json_round_trip(usage: Usage) -> None:
    assert codec.load(Usage, json.loads(json.dumps(codec.dump(usage)))) == usage


def test_telemetry_values_returns_known_numbers() -> None:
    usage = Usage(Health.FAILED, 'lost', busy_percent=0.0, power=5.0, counters={'a': 1})
    assert telemetry_values(usage) == {'busy_percent': 0.0, 'power': 5.0}
