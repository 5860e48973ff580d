# SPDX-License-Identifier: Apache-2.0
"""Tests of the JSON form of telemetry."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.model.devices.telemetry import (
    Usage,
    telemetry_values,
    usage_from_json,
    usage_to_json,
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
    assert usage_from_json(json.loads(json.dumps(usage_to_json(usage)))) == usage


def test_usage_to_json_omits_default_values() -> None:
    assert usage_to_json(Usage()) == {}
    assert usage_to_json(Usage(busy_percent=0.0)) == {'busy_percent': 0.0}
    assert usage_to_json(Usage(counters={'a': 1})) == {'counters': {'a': 1}}


def test_usage_from_json_ignores_unknown_keys() -> None:
    assert usage_from_json({'power': 50.0, 'fan': 3}) == Usage(power=50.0)


@pytest.mark.parametrize(
    'data', [{'power': 'much'}, {'memory_used': None}, {'health': 'unwell'}]
)
def test_usage_from_json_invalid_value_raises(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r'number|valid Health'):
        usage_from_json(data)


def test_telemetry_values_returns_known_numbers() -> None:
    usage = Usage(Health.FAILED, 'lost', busy_percent=0.0, power=5.0, counters={'a': 1})
    assert telemetry_values(usage) == {'busy_percent': 0.0, 'power': 5.0}
