# SPDX-License-Identifier: Apache-2.0
"""Tests of the detection of repeated messages."""

import random

import pytest

from cyborg_lite.rpc.replay import Challenged, ReplayGuard

_SENDER, _EPOCH = 'agent:compute-1', 'epoch'


def challenge(guard: ReplayGuard, epoch: str = _EPOCH) -> dict[str, str]:
    """Return the token that the guard gives for an unknown epoch."""
    with pytest.raises(Challenged) as caught:
        guard.accept(_SENDER, epoch, 1, {})
    return {caught.value.receiver: caught.value.token}


def test_numbers_in_any_order_are_accepted_once() -> None:
    guard = ReplayGuard()
    tokens = challenge(guard)
    numbers = list(range(1, 2000))
    random.shuffle(numbers)
    assert all(guard.accept(_SENDER, _EPOCH, number, tokens) for number in numbers)
    assert not any(guard.accept(_SENDER, _EPOCH, number, tokens) for number in numbers)


def test_number_far_below_highest_is_refused() -> None:
    guard = ReplayGuard()
    tokens = challenge(guard)
    assert guard.accept(_SENDER, _EPOCH, 10_000, tokens)
    assert not guard.accept(_SENDER, _EPOCH, 1, {})
    assert guard.accept(_SENDER, _EPOCH, 9_000, {})


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
