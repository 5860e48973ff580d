# SPDX-License-Identifier: Apache-2.0
"""Calls that several threads make at the same time."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from cyborg_lite.errors.base import CyborgError

T = TypeVar('T')


def run_at_once(calls: Sequence[Callable[[], T]]) -> list[T | type[CyborgError]]:
    """Return the result of each call, or the class of the error that it raised."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T | type[CyborgError]:
        barrier.wait()
        try:
            return call()
        except CyborgError as error:
            return type(error)

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
