# SPDX-License-Identifier: Apache-2.0
"""Wall clock that a test steps, as a time daemon or an operator does."""

import time
from typing import Final

import pytest

HOUR: Final = 3600.0
STEPS: Final = [pytest.param(HOUR, id='forward'), pytest.param(-HOUR, id='backward')]
"""Parameters of tests that step the clock in both directions."""

_LONGEST_SLEEP: Final = 60.0  # seconds; code that does not use the clock sleeps less


def step_wall_clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Step ``time.time`` of this process, and fail each sleep that lasts longer.

    The monotonic clock continues, as it does in the kernel.
    """
    wall_clock, sleep = time.time, time.sleep

    def sleep_briefly(duration: float) -> None:
        assert duration < _LONGEST_SLEEP, f'sleeps for {duration:.0f} s'
        sleep(duration)

    monkeypatch.setattr(time, 'time', lambda: wall_clock() + seconds)
    monkeypatch.setattr(time, 'sleep', sleep_briefly)
