# SPDX-License-Identifier: Apache-2.0
"""A consumer of notifications, as a billing service has it."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import oslo_messaging

from cyborg_lite import conf as configuration
from cyborg_lite.rpc import transport

TOPIC: Final = 'cyborg_lite_notifications'

# One thread, so that the endpoint is called in the order of the messages.
_OPTIONS: Final = """
[DEFAULT]
transport_url = {url}
executor_thread_pool_size = 1
"""


@dataclass(frozen=True)
class Message:
    """A notification as a consumer receives it, or as it was committed."""

    message_id: str
    event_type: str
    payload: Any  # JSON
    publisher_id: str = field(default='', compare=False)  # the daemon that sent it


class NotificationConsumer:
    """Another service that listens to the topic."""

    def __init__(self, directory: Path, url: str) -> None:
        """Start to listen.

        :param directory: for its configuration file
        :param url: transport URL
        """
        self.messages: list[Message] = []
        self._event = threading.Condition()
        file = directory / 'consumer.conf'
        file.write_text(_OPTIONS.format(url=url))
        conf = configuration.parse(['--config-file', str(file)], 'prog')
        transport.connect(conf).cleanup()  # registers the options of the library
        self._transport = oslo_messaging.get_notification_transport(conf)
        self._listener = oslo_messaging.get_notification_listener(
            self._transport,
            [oslo_messaging.Target(topic=TOPIC)],
            [self],
            executor='threading',
        )
        self._listener.start()

    def info(
        self,
        context: dict[str, Any],
        publisher_id: str,
        event_type: str,
        payload: dict[str, Any],
        metadata: dict[str, Any],
    ) -> None:
        """Receive a notification."""
        with self._event:
            message_id = metadata['message_id']
            message = Message(message_id, event_type, payload, publisher_id)
            self.messages.append(message)
            self._event.notify_all()

    def wait_for_next(self, limit: float) -> bool:
        """Wait for a message that is not received yet.

        :param limit: seconds
        :returns: False if no message has arrived in this time
        """
        with self._event:
            return self._event.wait(limit)

    def wait_for(self, count: int, limit: float) -> list[Message]:
        """Wait for a number of messages and return all that have arrived.

        :param limit: seconds
        """
        with self._event:
            arrived = self._event.wait_for(lambda: len(self.messages) >= count, limit)
            assert arrived, f'{len(self.messages)} of {count} messages in {limit} s'
            return list(self.messages)

    def list_distinct(self) -> list[Message]:
        """Return the messages without those that arrive again, as a consumer must."""
        first: dict[str, Message] = {}
        for message in list(self.messages):
            first.setdefault(message.message_id, message)
        return list(first.values())

    def stop(self) -> None:
        """Stop listening."""
        self._listener.stop()
        self._listener.wait()
        self._transport.cleanup()
