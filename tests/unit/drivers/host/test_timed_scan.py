# SPDX-License-Identifier: Apache-2.0
"""Tests of the time limit for each function of a scan."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.timed_scan import Patience, TimedScan

_LIMIT = 0.2  # seconds
_ADDRESSES = [f'0000:0{number}:00.0' for number in range(1, 5)]


class SlowReads:
    """An operation that blocks for some functions until the test releases them."""

    def __init__(self, *blocked: str) -> None:
        self.blocked = set(blocked)
        self.release = threading.Event()
        self.calls: list[str] = []

    def __call__(self, function: PciFunction) -> str:
        self.calls.append(function.address)
        if function.address in self.blocked:
            self.release.wait()
        return function.address


@pytest.fixture
def functions(tmp_path: Path) -> list[PciFunction]:
    host = Host('compute-1', tmp_path)
    return [PciFunction(host, address) for address in _ADDRESSES]


@pytest.fixture
def reads() -> Iterator[SlowReads]:
    slow_reads = SlowReads(*_ADDRESSES[1:3])
    yield slow_reads
    slow_reads.release.set()


def test_hung_function_is_not_read_again_until_it_returns(
    functions: list[PciFunction], reads: SlowReads
) -> None:
    scan = TimedScan(_LIMIT, _LIMIT)
    # Other tests leave threads that never return.
    before = set(threading.enumerate())
    list(scan.read(functions, reads))
    workers = set(threading.enumerate()) - before
    assert sum(item.is_hung for item in scan.read(functions, reads)) == 2
    assert reads.calls.count(_ADDRESSES[1]) == 1
    reads.release.set()
    for worker in workers:
        worker.join()
    values = [item.value for item in scan.read(functions, reads)]
    assert values == _ADDRESSES


@pytest.mark.parametrize(('delay', 'pauses'), [(0.0, 20), (1.0, 198)])
def test_wait_on_busy_machine_has_more_pauses(
    monkeypatch: pytest.MonkeyPatch, delay: float, pauses: int
) -> None:
    """The machine runs this process late: the hardware is not to blame."""
    clock, waits = [0.0], list[float]()

    def is_done(seconds: float) -> bool:
        waits.append(seconds)
        clock[0] += seconds + delay
        return False

    monkeypatch.setattr('time.monotonic', lambda: clock[0])
    assert not Patience(0.99).wait(is_done)
    # The last look does not wait.
    assert (len(waits[:-1]), waits[-1]) == (pauses, 0)


def test_wait_sees_answer_after_last_pause() -> None:
    answers = iter([False] * 4 + [True])
    assert Patience(0.19).wait(lambda _seconds: next(answers))


def test_error_of_operation_is_raised(functions: list[PciFunction]) -> None:
    def fail(_function: PciFunction) -> None:
        raise ValueError('no number')

    with pytest.raises(ValueError, match='no number'):
        list(TimedScan().read(functions, fail))


def test_unfinished_scan_leaves_no_thread(functions: list[PciFunction]) -> None:
    before = set(threading.enumerate())
    readings = TimedScan().read(functions, SlowReads())
    next(readings)
    (worker,) = set(threading.enumerate()) - before
    readings.close()  # type: ignore[attr-defined]  # it is a generator
    worker.join()
