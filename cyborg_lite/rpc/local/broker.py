# SPDX-License-Identifier: Apache-2.0
"""Queues and listeners of the ``local://`` driver.

Listeners do not poll: a message wakes exactly one idle listener. A message to a topic
without a listener stays queued. A fanout reaches the present listeners only.
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
    """The reply or failure that a caller waits for, with heartbeats before it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._heartbeats = 0
        self._text: str | None = None

    def set_text(self, text: str) -> None:
        """Store the serialized reply and wake the caller."""
        with self._changed:
            self._text = text
            self._changed.notify()

    def record_heartbeat(self) -> None:
        """Restart the silence limit of the caller."""
        with self._changed:
            self._heartbeats += 1
            self._changed.notify()

    def wait(self, timeout: float | None, max_silence: float | None) -> str | None:
        """Return the serialized reply, or None after a timeout.

        :param timeout: seconds; None: no limit
        :param max_silence: seconds without a heartbeat; None: no limit
        """
        deadline = _deadline_in(timeout)
        with self._changed:
            while self._text is None:
                heartbeats = self._heartbeats
                self._changed.wait(_min_limit(_remaining(deadline), max_silence))
                if self._text is None and self._heartbeats == heartbeats:
                    return None
            return self._text


def _deadline_in(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds


def _remaining(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _min_limit(first: float | None, second: float | None) -> float | None:
    limits = (limit for limit in (first, second) if limit is not None)
    return min(limits, default=None)


class Message(base.RpcIncomingMessage):  # type: ignore[misc]  # the library is untyped
    """A message in a queue or at a server, in the form that oslo.messaging expects."""

    def __init__(self, broker: 'Broker', key: Key, text: str) -> None:
        context, body = jsonutils.loads(text)
        super().__init__(context, body)
        self.answer: Answer | None = None  # None: a cast
        self._broker = broker
        self._key = key

    def reply(self, reply: Any = None, failure: Failure | None = None) -> None:
        """Send the reply or the failure to the caller; ignore it for a cast."""
        if self.answer is None:
            return
        serialized = failure and common.serialize_remote_exception(failure)
        self.answer.set_text(jsonutils.dumps({'result': reply, 'failure': serialized}))

    def heartbeat(self) -> None:
        """Notify the caller that the work goes on."""
        if self.answer is not None:
            self.answer.record_heartbeat()

    def requeue(self) -> None:
        """Put the message back into its queue."""
        self._broker.deliver(self._key, self)


class Listener(base.PollStyleListener):  # type: ignore[misc]  # the library is untyped
    """Receives messages to one server, to any server of the topic, and fanouts."""

    def __init__(self, broker: 'Broker', keys: tuple[Key, ...]) -> None:
        super().__init__()
        self.keys = keys
        self.fanned_out: deque[Message] = deque()
        self.idle = False  # True: it waits, and no message is assigned to it
        self.stopped = False
        self.wake_ups = 0
        self.bell = threading.Condition(broker.lock)
        self._broker = broker

    @base.batch_poll_helper  # type: ignore[untyped-decorator]  # the library is untyped
    def poll(self, timeout: float | None = None) -> Message | None:
        """Return the next message; None after ``timeout`` seconds or when stopped."""
        return self._broker.take(self, timeout)

    def stop(self) -> None:
        """Receive no more messages."""
        self._broker.leave(self)


class Broker:
    """The queues of one virtual host."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._queues: defaultdict[Key, deque[Message]] = defaultdict(deque)
        self._listeners: deque[Listener] = deque()

    def join(self, keys: tuple[Key, ...]) -> Listener:
        """Add a listener for the keys."""
        listener = Listener(self, keys)
        with self.lock:
            self._listeners.append(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Remove a listener, and wake other listeners for its messages."""
        with self.lock:
            if listener.stopped:
                return
            listener.stopped = True
            self._listeners.remove(listener)
            listener.bell.notify()
            for key in listener.keys:
                for _message in self._queues.get(key, ()):
                    self._wake_listener(key)

    def deliver(self, key: Key, message: Message) -> None:
        """Queue a message and wake one idle listener."""
        with self.lock:
            self._queues[key].append(message)
            self._wake_listener(key)

    def withdraw(self, key: Key, message: Message) -> None:
        """Remove a message that no listener has received."""
        with self.lock:
            queue = self._queues.get(key)
            if queue and message in queue:
                queue.remove(message)
            self._drop_empty_queue(key)

    def fan_out(self, key: Key, text: str) -> None:
        """Give a copy of the message to each present listener of the topic."""
        with self.lock:
            for listener in self._listeners:
                if key in listener.keys:
                    listener.fanned_out.append(Message(self, key, text))
                    listener.bell.notify()

    def take(self, listener: Listener, timeout: float | None) -> Message | None:
        """Wait for the next message of a listener.

        :param timeout: seconds; None: no limit
        :returns: None after the timeout, or when the listener is stopped
        """
        deadline = _deadline_in(timeout)
        with self.lock:
            while not listener.stopped:
                message = self._next(listener)
                remaining = _remaining(deadline)
                if message is not None or remaining == 0:
                    return message
                listener.idle = True
                listener.bell.wait(remaining)
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
                self._drop_empty_queue(key)
                return message
        return None

    def _wake_listener(self, key: Key) -> None:
        """Wake the listener that was woken least recently, if a listener is idle.

        Busy listeners check the queue before they wait again.
        """
        for listener in self._listeners:
            if listener.idle and key in listener.keys:
                listener.idle = False
                listener.bell.notify()
                self._listeners.remove(listener)
                self._listeners.append(listener)
                return

    def _drop_empty_queue(self, key: Key) -> None:
        if not self._queues.get(key):
            self._queues.pop(key, None)
