# SPDX-License-Identifier: Apache-2.0
"""Tests of the topic of the notifications: messages, and brokers that refuse them."""

from typing import Any

import oslo_messaging
import pytest

from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.notifications import Notification
from cyborg_lite.rpc.notifications import NotificationBus

NOTIFICATION = Notification(
    1, 'm', 'accelerator.arq.bound', {'request_id': 'req-1', 'a': 1}, 1_764_000_000_123
)


class RecordingTransport:
    """Transport that records the messages, or refuses them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.messages: list[tuple[Any, ...]] = []
        self.is_closed = False

    # Any: the interface of oslo.messaging.
    def _send_notification(
        self, target: Any, context: Any, message: Any, **options: Any
    ) -> None:
        if self.error is not None:
            raise self.error
        self.messages.append((target.topic, context, message, options))

    def cleanup(self) -> None:
        self.is_closed = True


# Any: the transport is a double.
def build_bus(double: Any) -> NotificationBus:
    return NotificationBus(double, 'notifications', 'c1')


def test_send_keeps_message_id_when_repeated() -> None:
    recorder = RecordingTransport()
    bus = build_bus(recorder)
    bus.send(NOTIFICATION)
    bus.send(NOTIFICATION)
    first, second = recorder.messages
    assert first == second
    topic, context, message, _ = first
    assert (topic, context) == ('notifications.info', {'request_id': 'req-1'})
    assert message == {
        'message_id': 'm',
        'publisher_id': 'cyborg-lite-conductor:c1',
        'event_type': 'accelerator.arq.bound',
        'priority': 'INFO',
        'payload': {'request_id': 'req-1', 'a': 1},
        'timestamp': '2025-11-24 16:00:00.123000',
    }


def test_send_refused_message_raises() -> None:
    """The row stays in the database, and is sent again later."""
    bus = build_bus(RecordingTransport(oslo_messaging.MessageDeliveryFailure('x')))
    with pytest.raises(ServiceUnavailable, match='RabbitMQ'):
        bus.send(NOTIFICATION)


def test_close_ends_connections() -> None:
    recorder = RecordingTransport()
    build_bus(recorder).close()
    assert recorder.is_closed
