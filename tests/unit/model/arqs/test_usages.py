# SPDX-License-Identifier: Apache-2.0
"""Tests of the use of units by projects."""

import pytest

from cyborg_lite.model.arqs.usages import UnitUsage


@pytest.mark.parametrize(
    ('milliseconds', 'hours'), [(0, 0), (3_600_000, 1), (1, 0), (4, 0.000001)]
)
def test_unit_hours_have_six_decimals(milliseconds: int, hours: float) -> None:
    assert UnitUsage('p', 'PGPU', 'gpu', milliseconds).unit_hours == hours
