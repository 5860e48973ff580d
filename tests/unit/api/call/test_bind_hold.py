# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for a bind, with their limits."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import repeat

import pytest

from cyborg_lite.api.call import bind_hold
from cyborg_lite.api.call.bind_hold import BindHold
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.arqs.arqs import Arq, State

LONG = 600.0  # seconds; longer than the limit of a test


@pytest.fixture(autouse=True)
def fast_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bind_hold, '_FIRST_INTERVAL', 0.001)


def build_hold(
    seconds: float = LONG, places: int = 1, stopping: threading.Event | None = None
) -> BindHold:
    return BindHold(seconds, places, stopping or threading.Event())


def build_arqs(*states: State) -> tuple[Arq, ...]:
    return tuple(
        Arq(
            uuid=f'arq-{number}',
            state=state,
            device_profile_name='dp1',
            device_profile_group_id=0,
            device_profile_group={},
            created_at=datetime.now(UTC),
        )
        for number, state in enumerate(states)
    )


STARTED = build_arqs(State.BOUND, State.BIND_STARTED)
BOUND = build_arqs(State.BOUND, State.BOUND)


def never_read() -> tuple[Arq, ...]:
    raise AssertionError('the ARQs are read again')


def read_in_turn(*reads: tuple[Arq, ...] | Exception) -> Callable[[], tuple[Arq, ...]]:
    """Return a function that returns or raises one of the reads at each call."""
    remaining_reads = iter(reads)

    def read() -> tuple[Arq, ...]:
        result = next(remaining_reads)
        if isinstance(result, Exception):
            raise result
        return result

    return read


@pytest.mark.parametrize(
    'outcome',
    [
        BOUND,
        build_arqs(State.BIND_FAILED, State.BIND_FAILED),
        build_arqs(State.DELETING),
        (),
    ],
)
def test_wait_for_bind_returns_outcome(outcome: tuple[Arq, ...]) -> None:
    read = read_in_turn(STARTED, STARTED, outcome)
    assert build_hold().wait_for_bind(STARTED, read) is outcome


@pytest.mark.parametrize('state', sorted(set(State) - {State.BIND_STARTED}))
def test_wait_for_bind_without_bind_reads_nothing(state: State) -> None:
    arqs = build_arqs(State.BOUND, state)
    assert build_hold().wait_for_bind(arqs, never_read) is arqs


def test_wait_for_bind_ends_after_limit() -> None:
    read = repeat(STARTED).__next__
    assert build_hold(seconds=0.01).wait_for_bind(STARTED, read) is STARTED


def test_wait_for_bind_limit_zero_reads_nothing() -> None:
    assert build_hold(seconds=0).wait_for_bind(STARTED, never_read) is STARTED


def test_wait_for_bind_without_place_reads_nothing() -> None:
    hold = build_hold(places=1)

    def read() -> tuple[Arq, ...]:
        assert hold.wait_for_bind(STARTED, never_read) is STARTED
        return BOUND

    for _ in range(2):  # the place becomes free
        assert hold.wait_for_bind(STARTED, read) is BOUND


def test_wait_for_bind_error_frees_place() -> None:
    hold = build_hold(places=1)
    with pytest.raises(ZeroDivisionError):
        hold.wait_for_bind(STARTED, read_in_turn(ZeroDivisionError()))
    assert hold.wait_for_bind(STARTED, read_in_turn(BOUND)) is BOUND


def test_wait_for_bind_ends_at_stop() -> None:
    stopping = threading.Event()

    def read() -> tuple[Arq, ...]:
        stopping.set()
        return STARTED

    assert build_hold(stopping=stopping).wait_for_bind(STARTED, read) is STARTED


def test_wait_for_bind_survives_restart_of_conductor() -> None:
    error = ServiceUnavailable(what='cyborg-lite-conductor')
    read = read_in_turn(error, STARTED, error, BOUND)
    assert build_hold().wait_for_bind(STARTED, read) is BOUND
