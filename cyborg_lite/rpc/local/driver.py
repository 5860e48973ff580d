# SPDX-License-Identifier: Apache-2.0
"""oslo.messaging driver inside one process, ``local://``, for stand-alone use.

Messages are JSON text and errors are serialized, as with a broker. Code that works here
also works between hosts. Transports with the same virtual host in their URL share one
broker. A call that times out is removed from its queue, like an expired message.
"""

import threading
import weakref
from collections.abc import Mapping
from typing import Any

import oslo_messaging
from oslo_config import cfg
from oslo_messaging._drivers import base, common
from oslo_serialization import jsonutils

from cyborg_lite.rpc.local import broker as local_broker

_brokers: weakref.WeakValueDictionary[str, local_broker.Broker] = (
    weakref.WeakValueDictionary()
)
_brokers_lock = threading.Lock()


def _broker_of(virtual_host: str) -> local_broker.Broker:
    """Return the broker of a virtual host; it exists as long as a transport uses it."""
    with _brokers_lock:
        broker = _brokers.get(virtual_host)
        if broker is None:
            broker = _brokers[virtual_host] = local_broker.Broker()
        return broker


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
        self._broker = _broker_of(url.virtual_host or '')

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
        text = jsonutils.dumps([ctxt, message])
        key = self._key(target, target.server)
        if target.fanout:
            return self._broker.fan_out(self._key(target, None), text)
        request = local_broker.Message(self._broker, key, text)
        if not wait_for_reply:
            return self._broker.deliver(key, request)
        request.answer = local_broker.Answer()
        request.client_timeout = call_monitor_timeout
        self._broker.deliver(key, request)
        answer = request.answer.wait(timeout, call_monitor_timeout)
        if answer is None:
            self._broker.withdraw(key, request)
            raise oslo_messaging.MessagingTimeout(f'No reply on topic {target.topic}')
        return self._result(jsonutils.loads(answer))

    def _result(self, answer: Mapping[str, Any]) -> Any:
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
        return base.PollStyleListenerAdapter(
            self._broker.join(keys), batch_size, batch_timeout
        )

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

    def _key(
        self, target: oslo_messaging.Target, server: str | None
    ) -> local_broker.Key:
        return (target.exchange or self._default_exchange, target.topic, server)
