# SPDX-License-Identifier: Apache-2.0
"""Tests of the locks of devices."""

import threading

import pytest

from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.errors.daemons import ServiceUnavailable

_FIRST, _SECOND = '0000:01:00.0', '0000:02:00.0'


def test_lock_held_too_long_raises() -> None:
    locks = DeviceLocks(longest_wait=0.01)
    with (
        locks.lock(_FIRST),
        pytest.raises(ServiceUnavailable, match=_FIRST),
        locks.lock(_FIRST),
    ):
        pass
    with locks.lock(_FIRST), locks.lock(_SECOND):
        pass


def test_check_unlocked_during_other_call_raises() -> None:
    locks = DeviceLocks()
    with locks.lock(_FIRST), pytest.raises(ServiceUnavailable, match=_FIRST):
        locks.check_unlocked(_FIRST)
    locks.check_unlocked(_FIRST)


def test_lock_waits_for_end_of_other_call() -> None:
    locks, entered = DeviceLocks(), threading.Event()

    def hold() -> None:
        with locks.lock(_FIRST):
            entered.set()

    with locks.lock(_FIRST):
        holder = threading.Thread(target=hold)
        holder.start()
        assert not entered.wait(0.05)
    holder.join()
    assert entered.is_set()
