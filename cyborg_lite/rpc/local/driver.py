# SPDX-License-Identifier: Apache-2.0
"""oslo.messaging driver inside one process, ``local://``, for stand-alone use.

Messages are JSON text and errors are serialized, as with a broker. Code that works here
also works between hosts. Transports with the same virtual host in their URL share one
broker. A call that times out is removed from its queue, like an expired message.
"""

import threading
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import oslo_messaging
from oslo_config import cfg
from oslo_messaging._drivers import base, common
from oslo_serialization import jsonutils

from cyborg_lite.rpc.local.broker import Broker, Key, Message

_brokers: weakref.WeakValueDictionary[str, Broker] = weakref.WeakValueDictionary()
_brokers_lock = threading.Lock()


class LocalDriver(base.BaseDriver):  # type: ignore[misc]  # the library is untyped
    """Driver for ``local://``, loaded by oslo.messaging. Supports calls and casts."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        url: oslo_messaging.TransportURL,
        default_exchange: str | None = None,
        allowed_remote_exmods: list[str] | None = None,
    ) -> None:
        super().__init__(conf, url, default_exchange, allowed_remote_exmods)
        with _brokers_lock:
            # A broker exists as long as a transport uses it.
            self._broker = _brokers.setdefault(url.virtual_host or '', Broker())

    def require_features(self, requeue: bool = False) -> None:
        """Do nothing: all features are supported."""

    def send(  # noqa: PLR0913  # the library's signature
        self,
        target: oslo_messaging.Target,
        ctxt: Mapping[str, Any],
        message: Mapping[str, Any],
        wait_for_reply: bool | None = None,
        timeout: float | None = None,
        call_monitor_timeout: float | None = None,
        retry: int | None = None,
        transport_options: object = None,
    ) -> Any:
        """Deliver a message, and return the reply if the caller waits for one.

        :raises MessagingTimeout: no reply in time; the work may still be done
        """
        if target.fanout:
            raise NotImplementedError('local:// does not support fanouts')
        key = self._key(target, target.server)
        request = Message(self._broker, key, jsonutils.dumps([ctxt, message]))
        if not wait_for_reply:
            return self._broker.deliver(key, request)
        request.answer = Future()
        self._broker.deliver(key, request)
        try:
            answer = jsonutils.loads(request.answer.result(timeout))
        except TimeoutError:
            self._broker.withdraw(key, request)
            text = f'No reply on topic {target.topic}'
            raise oslo_messaging.MessagingTimeout(text) from None
        if answer['failure'] is None:
            return answer['result']
        raise common.deserialize_remote_exception(
            answer['failure'], self._allowed_remote_exmods
        )

    def listen(
        self,
        target: oslo_messaging.Target,
        batch_size: int,
        batch_timeout: float | None,
    ) -> base.Listener:
        """Return a listener for messages to one server and to any server of a topic."""
        keys = (self._key(target, target.server), self._key(target, None))
        listener = self._broker.join(keys)
        return base.PollStyleListenerAdapter(listener, batch_size, batch_timeout)

    def send_notification(self, *_arguments: object, **_keywords: object) -> None:
        """Raise NotImplementedError."""
        raise NotImplementedError('local:// does not support notifications')

    def listen_for_notifications(
        self, *_arguments: object, **_keywords: object
    ) -> None:
        """Raise NotImplementedError."""
        raise NotImplementedError('local:// does not support notifications')

    def cleanup(self) -> None:
        """Do nothing: the broker is collected with the last transport that uses it."""

    def _key(self, target: oslo_messaging.Target, server: str | None) -> Key:
        return (target.exchange or self._default_exchange, target.topic, server)
