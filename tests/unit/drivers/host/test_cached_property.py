# SPDX-License-Identifier: Apache-2.0
"""Tests of the cached property without a lock."""

import threading

from cyborg_lite.drivers.host.cached_property import cached_property


class Card:
    """An object whose property blocks until an event is set."""

    def __init__(self, is_ready: bool) -> None:
        self.reads = 0
        self.event = threading.Event()
        if is_ready:
            self.event.set()

    @cached_property
    def serial(self) -> str:
        """The serial number."""
        self.reads += 1
        self.event.wait()
        return 'S1'


def test_value_is_computed_once() -> None:
    card = Card(is_ready=True)
    assert (card.serial, card.serial, card.reads) == ('S1', 'S1', 1)
    assert Card.serial.__doc__ == 'The serial number.'


def test_blocked_object_blocks_no_other() -> None:
    """The property of functools has a lock for all objects in Python 3.11."""
    slow = Card(is_ready=False)
    thread = threading.Thread(target=lambda: slow.serial, daemon=True)
    thread.start()
    assert Card(is_ready=True).serial == 'S1'
    slow.event.set()
    thread.join()
    assert slow.serial == 'S1'
