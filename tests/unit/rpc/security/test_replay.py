# SPDX-License-Identifier: Apache-2.0
"""Tests of the detection of repeated messages."""

import random

import pytest

from cyborg_lite.rpc.security.replay import _WINDOW, Challenged, ReplayGuard

_SENDER, _EPOCH = 'agent:compute-1', 'epoch'


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def challenge(
    guard: ReplayGuard, epoch: str = _EPOCH, number: int = 1
) -> dict[str, str]:
    """Return the token that the guard gives for a call that it challenges."""
    with pytest.raises(Challenged) as caught:
        guard.accept(_SENDER, epoch, number, {})
    return {caught.value.receiver: caught.value.token}


def test_numbers_in_any_order_are_accepted_once() -> None:
    guard = ReplayGuard()
    tokens = challenge(guard)
    assert guard.accept(_SENDER, _EPOCH, 1, tokens)
    numbers = list(range(2, 2000))
    random.shuffle(numbers)
    assert all(guard.accept(_SENDER, _EPOCH, number, tokens) for number in numbers)
    assert not any(guard.accept(_SENDER, _EPOCH, number, tokens) for number in numbers)


def test_received_number_below_window_is_refused() -> None:
    """The window no longer contains the number, but contains the next one."""
    guard = ReplayGuard()
    assert guard.accept(_SENDER, _EPOCH, 1, challenge(guard))
    assert guard.accept(_SENDER, _EPOCH, 1 + _WINDOW, {})
    assert not guard.accept(_SENDER, _EPOCH, 1, {})
    assert guard.accept(_SENDER, _EPOCH, 2, {})


def test_huge_distance_to_highest_is_refused() -> None:
    """A shift by this distance would need more memory than any host has."""
    guard = ReplayGuard()
    assert guard.accept(_SENDER, _EPOCH, 1, challenge(guard))
    tokens = challenge(guard, number=-(10**18))
    assert not guard.accept(_SENDER, _EPOCH, -(10**18), tokens)


def test_call_before_last_challenge_is_challenged() -> None:
    """A call that another conductor received is refused after the period."""
    clock = Clock()
    guard = ReplayGuard(read_clock=clock)
    assert guard.accept(_SENDER, _EPOCH, 1, challenge(guard))
    clock.now += 299
    assert guard.accept(_SENDER, _EPOCH, 50, {})
    clock.now += 2
    tokens = challenge(guard, number=60)
    assert guard.accept(_SENDER, _EPOCH, 61, tokens)
    challenge(guard, number=40)
    assert guard.accept(_SENDER, _EPOCH, 62, {})


def test_concurrent_answers_to_one_challenge_are_accepted() -> None:
    guard = ReplayGuard(read_clock=Clock())
    tokens = challenge(guard)
    assert guard.accept(_SENDER, _EPOCH, 9, tokens)
    assert guard.accept(_SENDER, _EPOCH, 8, tokens)
    assert not guard.accept(_SENDER, _EPOCH, 8, tokens)


def test_old_token_is_challenged() -> None:
    clock = Clock()
    guard = ReplayGuard(read_clock=clock)
    tokens = challenge(guard)
    clock.now += 121
    with pytest.raises(Challenged):
        guard.accept(_SENDER, _EPOCH, 2, tokens)


def test_token_of_another_receiver_is_challenged() -> None:
    """A message that one conductor received cannot be repeated to another."""
    first, second = ReplayGuard(), ReplayGuard()
    tokens = challenge(first)
    assert first.accept(_SENDER, _EPOCH, 1, tokens)
    with pytest.raises(Challenged):
        second.accept(_SENDER, _EPOCH, 1, tokens)
    with pytest.raises(Challenged):
        first.accept('agent:compute-2', _EPOCH, 1, tokens)


def test_token_of_forgotten_epoch_is_challenged() -> None:
    guard = ReplayGuard(max_epochs=1)
    tokens = challenge(guard)
    assert guard.accept(_SENDER, _EPOCH, 1, tokens)
    assert guard.accept(_SENDER, 'next', 1, challenge(guard, 'next'))
    with pytest.raises(Challenged):
        guard.accept(_SENDER, _EPOCH, 1, tokens)
