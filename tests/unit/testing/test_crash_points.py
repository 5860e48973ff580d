# SPDX-License-Identifier: Apache-2.0
"""Tests of crash points: a process crashes once and takes no further steps."""

import pytest

from cyborg_lite.testing.crash_points import CrashPoint
from cyborg_lite.testing.fault_injection import ProcessCrash


def run_process(crash_point: CrashPoint) -> list[str]:
    """Run a process of two steps; return the steps that it completed."""
    steps = []
    try:
        for step in ('one', 'two'):
            with crash_point.step(step):
                steps.append(step)
    except ProcessCrash:
        pass
    return steps


@pytest.mark.parametrize(
    ('number', 'steps', 'point'),
    [
        (0, [], 'before one'),
        (1, ['one'], 'after one'),
        (2, ['one'], 'before two'),
        (3, ['one', 'two'], 'after two'),
    ],
)
def test_step_raises_at_selected_point(
    number: int, steps: list[str], point: str
) -> None:
    crash_point = CrashPoint(number)
    with crash_point.activate():
        assert run_process(crash_point) == steps
    assert crash_point.reached == point


def test_step_after_crash_raises_until_restart() -> None:
    crash_point = CrashPoint(0)
    with crash_point.activate():
        assert run_process(crash_point) == []
        assert run_process(crash_point) == []
        crash_point.restart()
        assert run_process(crash_point) == ['one', 'two']
