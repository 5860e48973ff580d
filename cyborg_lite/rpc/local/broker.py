# SPDX-License-Identifier: Apache-2.0
"""Queues and listeners of the ``local://`` driver."""

import threading
from collections import defaultdict, deque
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any

from oslo_messaging._drivers import base, common
from oslo_serialization import jsonutils

Key = tuple[str, str, str | None]  # exchange, topic, server; None: any server
Failure = tuple[type[BaseException], BaseException, TracebackType]


class Message(base.RpcIncomingMessage):  # type: ignore[misc]  # the library is untyped
    """A message in a queue or at a server, in the form that oslo.messaging expects."""

    def __init__(self, broker: 'Broker', key: Key, text: str) -> None:
        context, body = jsonutils.loads(text)
        super().__init__(context, body)
        self.answer: Future[str] | None = None  # the serialized reply; None: a cast
        self._broker = broker
        self._key = key

    def reply(self, reply: Any = None, failure: Failure | None = None) -> None:
        """Send the reply or the failure to the caller; ignore it for a cast."""
        if self.answer is not None:
            serialized = failure and common.serialize_remote_exception(failure)
            answer = {'result': reply, 'failure': serialized}
            self.answer.set_result(jsonutils.dumps(answer))

    def heartbeat(self) -> None:
        """Do nothing: no caller asks whether its call goes on."""

    def requeue(self) -> None:
        """Put the message back into its queue."""
        self._broker.deliver(self._key, self)


class Listener(base.PollStyleListener):  # type: ignore[misc]  # the library is untyped
    """Receives messages to one server, and to any server of the topic."""

    def __init__(self, broker: 'Broker', keys: tuple[Key, ...]) -> None:
        super().__init__()
        self.keys = keys
        self.is_stopped = False
        self._broker = broker

    @base.batch_poll_helper  # type: ignore[untyped-decorator]  # the library is untyped
    def poll(self, timeout: float | None = None) -> Message | None:
        """Return the next message; None after ``timeout`` seconds or when stopped."""
        return self._broker.take(self, timeout)

    def stop(self) -> None:
        """Receive no more messages."""
        self._broker.leave(self)


class Broker:
    """The queues of one virtual host.

    Listeners do not poll. A message to a topic without a listener stays queued.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queues: defaultdict[Key, deque[Message]] = defaultdict(deque)

    def join(self, keys: tuple[Key, ...]) -> Listener:
        """Return a new listener for the keys."""
        return Listener(self, keys)

    def deliver(self, key: Key, message: Message) -> None:
        """Queue a message. One of the listeners takes it."""
        with self._changed:
            self._queues[key].append(message)
            self._changed.notify_all()

    def withdraw(self, key: Key, message: Message) -> None:
        """Remove a message that no listener has received."""
        with self._changed, suppress(ValueError):
            self._queues[key].remove(message)

    def take(self, listener: Listener, timeout: float | None) -> Message | None:
        """Wait for the next message of a listener.

        :param timeout: seconds; None: no limit
        :returns: None after the timeout, or when the listener is stopped
        """

        def list_queues() -> list[deque[Message]]:
            return [queue for key in listener.keys if (queue := self._queues[key])]

        with self._changed:
            self._changed.wait_for(
                lambda: listener.is_stopped or list_queues(), timeout
            )
            queues = [] if listener.is_stopped else list_queues()
            return queues[0].popleft() if queues else None

    def leave(self, listener: Listener) -> None:
        """End the wait of a listener. Its messages stay queued for others."""
        with self._changed:
            listener.is_stopped = True
            self._changed.notify_all()
