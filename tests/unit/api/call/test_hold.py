# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for the end of work, with their limits."""

import threading
from collections.abc import Callable
from itertools import repeat

import pytest

from cyborg_lite.api.call import hold
from cyborg_lite.api.call.hold import Hold
from cyborg_lite.errors.daemons import ServiceUnavailable

LONG = 600.0  # seconds; longer than the limit of a test
RUNNING, ENDED = 'running', 'ended'


@pytest.fixture(autouse=True)
def fast_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, '_FIRST_INTERVAL', 0.001)


def build_hold(places: int = 1, stopping: threading.Event | None = None) -> Hold:
    return Hold(places, stopping or threading.Event())


def wait(
    hold: Hold, read: Callable[[], str], value: str = RUNNING, seconds: float = LONG
) -> str:
    return hold.wait(value, read, lambda current: current == RUNNING, seconds)


def never_read() -> str:
    raise AssertionError('the value is read again')


def read_in_turn(*reads: str | Exception) -> Callable[[], str]:
    """Return a function that returns or raises one of the reads at each call."""
    remaining_reads = iter(reads)

    def read() -> str:
        result = next(remaining_reads)
        if isinstance(result, Exception):
            raise result
        return result

    return read


def test_wait_ends_after_limit() -> None:
    assert wait(build_hold(), repeat(RUNNING).__next__, seconds=0.01) == RUNNING


def test_wait_without_place_reads_nothing() -> None:
    only = build_hold(places=1)

    def read() -> str:
        assert wait(only, never_read) == RUNNING
        return ENDED

    for _ in range(2):  # the place becomes free
        assert wait(only, read) == ENDED


def test_wait_error_frees_place() -> None:
    only = build_hold(places=1)
    with pytest.raises(ZeroDivisionError):
        wait(only, read_in_turn(ZeroDivisionError()))
    assert wait(only, read_in_turn(ENDED)) == ENDED


def test_wait_ends_at_stop() -> None:
    stopping = threading.Event()

    def read() -> str:
        stopping.set()
        return RUNNING

    assert wait(build_hold(stopping=stopping), read) == RUNNING


def test_wait_survives_restart_of_conductor() -> None:
    error = ServiceUnavailable(what='cyborg-lite-conductor')
    assert wait(build_hold(), read_in_turn(error, RUNNING, error, ENDED)) == ENDED
