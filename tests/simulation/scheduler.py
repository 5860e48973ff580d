# SPDX-License-Identifier: Apache-2.0
"""Threads that run one at a time in an order that a seed decides, in virtual time.

``install`` replaces the classes of ``threading`` and the clocks of ``time`` before
other modules are imported. A thread runs until it waits: for a lock, for a condition,
for a time, or at a ``pause``. The scheduler then chooses one of the threads that can
run. If there is none, the time jumps to the next time that a thread waits for.

The threads are real ones, so that ``threading.local`` and the identity of a thread need
no replacement, but each waits until it is chosen.
"""

import _thread
import concurrent.futures.thread  # noqa: F401  # must get locks of the library
import heapq
import itertools
import os
import queue
import random
import secrets
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Self

START: Final = 1_800_000_000.0
"""Seconds since the epoch at the start of the virtual time."""
_TICK: Final = 1e-6  # seconds that pass when a clock is read
_SLICE: Final = 0.002  # seconds that pass at most when a thread pauses


class Stuck(Exception):
    """Error of a simulation whose threads all wait, none of them for a time."""


class Task:
    """A thread, and the node that it belongs to."""

    def __init__(self, name: str, node: str, seed: int) -> None:
        self.name = name
        self.node = node
        # Its decisions do not depend on those of other threads.
        self.random = random.Random(f'{seed} {node} {name}')
        self.is_waiting = False
        self.number = 0  # of the wait; an earlier timer is out of date
        self.thread: Thread | None = None  # None: of the simulation itself
        self._gate = _thread.allocate_lock()
        self._gate.acquire()

    def resume(self) -> None:
        """Let the thread run."""
        self._gate.release()

    def hold(self) -> None:
        """Wait until the thread is resumed."""
        self._gate.acquire()


class Scheduler:
    """Chooses the thread that runs."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now = 0.0
        self.current = Task('main', 'world', seed)
        self.switches = 0
        self.offsets: dict[str, float] = {}
        """Error of the clock of a node, in seconds."""
        self._ready: list[Task] = []
        self._timers: list[tuple[float, int, Task, int]] = []
        self._numbers = itertools.count()
        self._dead_nodes: set[str] = set()
        self._frozen: dict[str, list[Task]] = {}

    # --- called by the thread that runs ---

    def pause(self) -> None:
        """Let another thread run, if one can."""
        self.now += self.random.random() * _SLICE
        self._ready.append(self.current)
        self.current.is_waiting = True
        self._switch()

    def wait(self, timeout: float | None) -> None:
        """Wait until ``wake`` or the timeout."""
        task = self.current
        task.is_waiting = True
        task.number = next(self._numbers)
        if timeout is not None:
            due = self.now + max(0.0, timeout)
            heapq.heappush(self._timers, (due, task.number, task, task.number))
        self._switch()

    def wake(self, task: Task) -> None:
        """Let a waiting thread run."""
        frozen = self._frozen.get(task.node, ())
        if task.is_waiting and task not in self._ready and task not in frozen:
            self._ready.append(task)

    def start(
        self, name: str, run: Callable[[], None], node: str | None = None
    ) -> None:
        """Start a thread.

        :param node: None: of the current thread
        """
        task = Task(name, node or self.current.node, self.seed)
        task.is_waiting = True

        def first() -> None:
            task.hold()
            try:
                run()
            finally:
                self._choose().resume()

        _thread.start_new_thread(first, ())
        self._ready.append(task)

    def kill(self, node: str) -> None:
        """End the threads of a node where they are; they never run again."""
        self._dead_nodes.add(node)

    def freeze(self, node: str) -> None:
        """Let no thread of a node run, as on a machine that stands still."""
        self._frozen.setdefault(node, [])

    def thaw(self, node: str) -> None:
        """Let the threads of a node run again."""
        self._ready += self._frozen.pop(node, [])

    def _switch(self) -> None:
        task = self.current
        chosen = self._choose()
        if chosen is not task:
            chosen.resume()
            task.hold()

    def _choose(self) -> Task:
        """Return the thread that runs next, and make it the current one."""
        self.switches += 1
        while True:
            self._fire_timers()
            if not self._ready:
                self._jump()
                continue
            task = self._ready.pop(self.random.randrange(len(self._ready)))
            if task.node in self._frozen:
                self._frozen[task.node].append(task)
            elif task.node not in self._dead_nodes:
                task.is_waiting = False
                task.number = -1
                self.current = task
                return task

    def _fire_timers(self) -> None:
        while self._timers and self._timers[0][0] <= self.now:
            _, _, task, number = heapq.heappop(self._timers)
            if task.number == number:
                self.wake(task)

    def _jump(self) -> None:
        if not self._timers:
            raise Stuck
        self.now = max(self.now, self._timers[0][0])


_scheduler: Scheduler | None = None


def use(scheduler: Scheduler) -> None:
    """Let a scheduler decide about the threads of this process."""
    global _scheduler
    _scheduler = scheduler


def find_scheduler() -> Scheduler:
    """Return the scheduler of this process."""
    assert _scheduler is not None, 'a thread waits before the simulation starts'
    return _scheduler


def pause() -> None:
    """Let another thread run, if one can and the simulation has started."""
    if _scheduler is not None:
        _scheduler.pause()


def read_time() -> float:
    """Return the seconds since the epoch by the clock of the current node."""
    now = read_real_time()
    if _scheduler is None or not _scheduler.offsets:
        return now
    node, _, _ = _scheduler.current.node.partition('.')  # without the start
    return now + _scheduler.offsets.get(node, 0.0)


def read_real_time() -> float:
    """Return the seconds since the epoch by a clock that is never wrong."""
    return START + read_monotonic()


def read_monotonic() -> float:
    """Return the seconds since the start of the simulation."""
    if _scheduler is None:
        return 0.0
    _scheduler.now += _TICK
    return _scheduler.now


def sleep(seconds: float) -> None:
    """Wait in virtual time."""
    scheduler = find_scheduler()
    deadline = scheduler.now + seconds
    while scheduler.now < deadline:
        scheduler.wait(deadline - scheduler.now)


def _current() -> Any:
    """Return the running thread as owner of a lock."""
    return None if _scheduler is None else _scheduler.current


class Lock:
    """Replacement of ``threading.Lock``."""

    def __init__(self) -> None:
        self._is_locked = False
        self._waiting: deque[Task] = deque()
        self.locked = lambda: self._is_locked

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Wait for the lock; return False if it was not free in time."""
        if not self._is_locked:
            self._is_locked = True
            return True
        if not blocking:
            return False
        scheduler = find_scheduler()
        deadline = None if timeout < 0 else scheduler.now + timeout
        while self._is_locked:
            remaining = None if deadline is None else deadline - scheduler.now
            if remaining is not None and remaining <= 0:
                return False
            self._waiting.append(scheduler.current)
            scheduler.wait(remaining)
            if scheduler.current in self._waiting:
                self._waiting.remove(scheduler.current)
        self._is_locked = True
        return True

    def release(self) -> None:
        """Free the lock and wake the threads that wait for it."""
        assert self._is_locked
        self._is_locked = False
        while self._waiting:
            find_scheduler().wake(self._waiting.popleft())

    def _at_fork_reinit(self) -> None:
        """Be free in a child process; ``logging`` calls it."""
        self.__init__()  # type: ignore[misc]

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()


class RLock(Lock):
    """Replacement of ``threading.RLock``."""

    def __init__(self) -> None:
        super().__init__()
        self._owner: Any = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Wait for the lock unless the thread has it."""
        if self._count and self._owner is _current():
            self._count += 1
            return True
        if not super().acquire(blocking, timeout):
            return False
        self._owner, self._count = _current(), 1
        return True

    def release(self) -> None:
        """Free the lock when it is released as often as it was acquired."""
        self._count -= 1
        if not self._count:
            self._owner = None
            super().release()

    def release_whole(self) -> int:
        """Free the lock; return how often it was acquired."""
        count, self._count = self._count, 1
        self.release()
        return count

    def acquire_whole(self, count: int) -> None:
        """Wait for the lock and acquire it as often as before."""
        self.acquire()
        self._count = count


class Condition:
    """Replacement of ``threading.Condition``."""

    def __init__(self, lock: Any = None) -> None:
        self._lock = RLock() if lock is None else lock
        self.acquire, self.release = self._lock.acquire, self._lock.release
        self._waiting: deque[list[Any]] = deque()

    def __enter__(self) -> bool:
        return bool(self._lock.__enter__())

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__(*error)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a notification; return False after the timeout."""
        scheduler = find_scheduler()
        deadline = None if timeout is None else scheduler.now + timeout
        entry = [scheduler.current, False]
        self._waiting.append(entry)
        count = self._free()
        try:
            while not entry[1]:
                remaining = None if deadline is None else deadline - scheduler.now
                if remaining is not None and remaining <= 0:
                    break
                scheduler.wait(remaining)
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)
            self._take(count)
        return bool(entry[1])

    def _free(self) -> int:
        if isinstance(self._lock, RLock):
            return self._lock.release_whole()
        self._lock.release()
        return 1

    def _take(self, count: int) -> None:
        if isinstance(self._lock, RLock):
            self._lock.acquire_whole(count)
        else:
            self._lock.acquire()

    def wait_for(
        self, predicate: Callable[[], Any], timeout: float | None = None
    ) -> Any:
        """Wait until the predicate is true; return its last value."""
        deadline = None if timeout is None else read_monotonic() + timeout
        while not (result := predicate()):
            remaining = None if deadline is None else deadline - read_monotonic()
            if remaining is not None and remaining <= 0:
                break
            self.wait(remaining)
        return result

    def notify(self, n: int = 1) -> None:
        """Wake threads that wait."""
        while n and self._waiting:
            entry = self._waiting.popleft()
            entry[1] = True
            find_scheduler().wake(entry[0])
            n -= 1

    def notify_all(self) -> None:
        """Wake all threads that wait."""
        self.notify(len(self._waiting))


class Event:
    """Replacement of ``threading.Event``."""

    def __init__(self) -> None:
        self._condition = Condition(Lock())
        self._is_set = False

    def is_set(self) -> bool:
        """Check whether the event is set."""
        return self._is_set

    def set(self) -> None:
        """Set the event and wake the threads that wait."""
        self._is_set = True
        self._condition.notify_all()

    def clear(self) -> None:
        """Take the event back."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the event; return False after the timeout."""
        with self._condition:
            return bool(self._condition.wait_for(self.is_set, timeout))


class Semaphore:
    """Replacement of ``threading.Semaphore``."""

    def __init__(self, value: int = 1) -> None:
        self._condition = Condition(Lock())
        self._value = value

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Wait for the semaphore; return False if it was not free in time."""
        limit = timeout if blocking else 0
        with self._condition:
            if not self._condition.wait_for(lambda: self._value > 0, limit):
                return False
            self._value -= 1
        return True

    def release(self, n: int = 1) -> None:
        """Free the semaphore."""
        self._value += n
        self._condition.notify(n)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()


class Thread:
    """Replacement of ``threading.Thread``."""

    def __init__(  # noqa: PLR0913  # as in the library
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self.name = name or f'Thread-{target!r}'
        self.daemon = bool(daemon)
        self.ident: int | None = None
        self._target, self._arguments = target, (tuple(args), dict(kwargs or {}))
        self._over = Event()
        self._has_started = False

    def start(self) -> None:
        """Start the thread."""
        self._has_started = True
        self.ident = id(self)
        find_scheduler().start(self.name, self._live)

    def run(self) -> None:
        """Call the function of the thread."""
        if self._target is not None:
            self._target(*self._arguments[0], **self._arguments[1])

    def _live(self) -> None:
        find_scheduler().current.thread = self
        try:
            self.run()
        finally:
            self._over.set()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread, or for the timeout."""
        self._over.wait(timeout)

    def is_alive(self) -> bool:
        """Check whether the thread has started and not ended."""
        return self._has_started and not self._over.is_set()


_MAIN: Final = Thread(name='main')


def find_thread() -> Thread:
    """Return the thread that runs."""
    thread = None if _scheduler is None else _scheduler.current.thread
    return _MAIN if thread is None else thread


class SimpleQueue:
    """Replacement of ``queue.SimpleQueue``."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._condition = Condition(Lock())

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Add an item."""
        self._items.append(item)
        self._condition.notify()

    put_nowait = put

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Remove the first item; wait for one.

        :raises queue.Empty: there was none in time
        """
        limit = timeout if block else 0
        with self._condition:
            if not self._condition.wait_for(lambda: self._items, limit):
                raise queue.Empty
            return self._items.popleft()

    def get_nowait(self) -> Any:
        """Remove the first item."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Check whether there is no item."""
        return not self._items

    def qsize(self) -> int:
        """Return the number of items."""
        return len(self._items)


_CLASSES: Final = {
    'Lock': Lock,
    'RLock': RLock,
    'Condition': Condition,
    'Event': Event,
    'Semaphore': Semaphore,
    'BoundedSemaphore': Semaphore,
    'Thread': Thread,
    'current_thread': find_thread,
    'main_thread': lambda: _MAIN,
}
_CLOCKS: Final = {
    'time': read_time,
    'monotonic': read_monotonic,
    'perf_counter': read_monotonic,
    'time_ns': lambda: int(read_time() * 1e9),
    'monotonic_ns': lambda: int(read_monotonic() * 1e9),
    'sleep': sleep,
}


def _choose_uuid() -> uuid.UUID:
    return uuid.UUID(int=random.getrandbits(128), version=4)


def _choose_token(size: int = 16) -> str:
    return random.randbytes(size).hex()


def install() -> None:
    """Replace the threads, queues, clocks and random numbers of the library."""
    vars(threading).update(_CLASSES)
    vars(time).update(_CLOCKS)
    vars(queue)['SimpleQueue'] = SimpleQueue
    vars(uuid)['uuid4'] = _choose_uuid
    vars(secrets)['token_hex'] = _choose_token
    vars(secrets)['token_bytes'] = random.randbytes
    vars(os)['getpid'] = lambda: 1  # the log and the owners of jobs name it
