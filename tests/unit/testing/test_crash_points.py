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


def test_step_has_two_points() -> None:
    crash_point = CrashPoint()
    with crash_point.activate():
        assert run_process(crash_point) == ['one', 'two']
    assert crash_point.points == ['before one', 'after one', 'before two', 'after two']
    assert crash_point.reached is None


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


def test_step_inactive_does_not_raise() -> None:
    crash_point = CrashPoint(0)
    assert run_process(crash_point) == ['one', 'two']
    assert crash_point.points == []


def test_on_crash_is_called_before_exception() -> None:
    crash_point, points = CrashPoint(1), []
    crash_point.on_crash = lambda: points.append(crash_point.reached)
    with crash_point.activate():
        run_process(crash_point)
    assert points == ['after one']
