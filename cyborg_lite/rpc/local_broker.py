# SPDX-License-Identifier: Apache-2.0
"""The queues behind ``local://``: who waits, and who gets what.

Nothing polls: a message wakes exactly one listener that has nothing to do. A message
to a topic without a listener waits for one; a fanout reaches those that are there.
"""

import threading
import time
from collections import defaultdict, deque
from types import TracebackType
from typing import Any

from oslo_messaging._drivers import base, common
from oslo_serialization import jsonutils

Key = tuple[str, str, str | None]  # exchange, topic, server; None: any server
Failure = tuple[type[BaseException], BaseException, TracebackType]


class Answer:
    """Where the caller waits: heartbeats, and at last a reply or a failure."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._beats = 0
        self._text: str | None = None

    def give(self, text: str) -> None:
        with self._changed:
            self._text = text
            self._changed.notify()

    def beat(self) -> None:
        with self._changed:
            self._beats += 1
            self._changed.notify()

    def wait(self, timeout: float | None, silence: float | None) -> str | None:
        """The text; None if it took too long, or nothing was heard for ``silence``.

        Both in seconds; None is no limit.
        """
        deadline = _in(timeout)
        with self._changed:
            while self._text is None:
                beats = self._beats
                self._changed.wait(_shorter(_until(deadline), silence))
                if self._text is None and self._beats == beats:
                    return None
            return self._text


def _in(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds


def _until(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _shorter(one: float | None, other: float | None) -> float | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


class Message(base.RpcIncomingMessage):  # type: ignore[misc]  # the library is untyped
    """One request on its way, as the server's side of the library knows it."""

    def __init__(self, broker: 'Broker', key: Key, text: str) -> None:
        context, body = jsonutils.loads(text)
        super().__init__(context, body)
        self.answer: Answer | None = None  # None: a cast
        self._broker = broker
        self._key = key

    def reply(self, reply: Any = None, failure: Failure | None = None) -> None:
        if self.answer is None:
            return
        told = failure and common.serialize_remote_exception(failure)
        self.answer.give(jsonutils.dumps({'result': reply, 'failure': told}))

    def heartbeat(self) -> None:
        if self.answer is not None:
            self.answer.beat()

    def requeue(self) -> None:
        self._broker.deliver(self._key, self)


class Listener(base.PollStyleListener):  # type: ignore[misc]  # the library is untyped
    """One server: what it was sent by name, what any server may take, and fanouts."""

    def __init__(self, broker: 'Broker', keys: tuple[Key, ...]) -> None:
        super().__init__()
        self.keys = keys
        self.fanned_out: deque[Message] = deque()
        self.idle = False  # True: waits, and no message was promised to it
        self.stopped = False
        self.wake_ups = 0
        self.bell = threading.Condition(broker.lock)
        self._broker = broker

    @base.batch_poll_helper  # type: ignore[untyped-decorator]  # the library is untyped
    def poll(self, timeout: float | None = None) -> Message | None:
        """The next message; None after ``timeout`` seconds or when stopped."""
        return self._broker.take(self, timeout)

    def stop(self) -> None:
        self._broker.leave(self)


class Broker:
    """The queues of one virtual host."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._queues: defaultdict[Key, deque[Message]] = defaultdict(deque)
        self._listeners: deque[Listener] = deque()

    def join(self, keys: tuple[Key, ...]) -> Listener:
        listener = Listener(self, keys)
        with self.lock:
            self._listeners.append(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Let it take nothing more, and pass on what was promised to it."""
        with self.lock:
            if listener.stopped:
                return
            listener.stopped = True
            self._listeners.remove(listener)
            listener.bell.notify()
            for key in listener.keys:
                for _message in self._queues.get(key, ()):
                    self._wake_one(key)

    def deliver(self, key: Key, message: Message) -> None:
        with self.lock:
            self._queues[key].append(message)
            self._wake_one(key)

    def withdraw(self, key: Key, message: Message) -> None:
        """Forget a message that nobody took."""
        with self.lock:
            queue = self._queues.get(key)
            if queue and message in queue:
                queue.remove(message)
            self._forget_if_empty(key)

    def fan_out(self, key: Key, text: str) -> None:
        """A copy to each listener of the topic that is there now."""
        with self.lock:
            for listener in self._listeners:
                if key in listener.keys:
                    listener.fanned_out.append(Message(self, key, text))
                    listener.bell.notify()

    def take(self, listener: Listener, timeout: float | None) -> Message | None:
        deadline = _in(timeout)
        with self.lock:
            while not listener.stopped:
                message = self._next(listener)
                left = _until(deadline)
                if message is not None or left == 0:
                    return message
                listener.idle = True
                listener.bell.wait(left)
                listener.idle = False
                listener.wake_ups += 1
            return None

    def _next(self, listener: Listener) -> Message | None:
        if listener.fanned_out:
            return listener.fanned_out.popleft()
        for key in listener.keys:
            queue = self._queues.get(key)
            if queue:
                message = queue.popleft()
                self._forget_if_empty(key)
                return message
        return None

    def _wake_one(self, key: Key) -> None:
        """Wake the listener that has been idle for the most turns, if one is.

        If none is, each will look at the queue before it waits again.
        """
        for listener in self._listeners:
            if listener.idle and key in listener.keys:
                listener.idle = False
                listener.bell.notify()
                self._listeners.remove(listener)
                self._listeners.append(listener)
                return

    def _forget_if_empty(self, key: Key) -> None:
        if not self._queues.get(key):
            self._queues.pop(key, None)
