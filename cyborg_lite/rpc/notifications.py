# SPDX-License-Identifier: Apache-2.0
"""Sends notifications to the topic for other services.

``oslo_messaging.Notifier`` logs an error of its driver and loses the message. It also
gives each attempt another message id. This module sends the same message, but raises
the error, and keeps the id when a message is sent again.
"""

from datetime import UTC, datetime
from typing import Final

import oslo_messaging
from oslo_config import cfg
from oslo_log import log

from cyborg_lite.errors.daemons import ConfigurationError, ServiceUnavailable
from cyborg_lite.model.notifications import Notification
from cyborg_lite.rpc import transport

LOG = log.getLogger(__name__)

_PRIORITY: Final = 'INFO'
_MESSAGE_FORMAT: Final = 2.0
_RETRIES: Final = 1  # then the row stays in the database, and is sent again later


class NotificationBus:
    """The topic of the notifications."""

    def __init__(self, bus: transport.Transport, topic: str, host: str) -> None:
        self._bus = bus
        self._target = oslo_messaging.Target(topic=f'{topic}.{_PRIORITY.lower()}')
        # host: name of the sender in the messages.
        self._publisher = f'cyborg-lite-conductor:{host}'

    def send(self, notification: Notification) -> None:
        """Send a notification and return after the broker has confirmed it.

        :raises ServiceUnavailable: the broker is unreachable or refuses the message
        """
        created_at = datetime.fromtimestamp(notification.created_at / 1000, UTC)
        message = {
            'message_id': notification.uuid,
            'publisher_id': self._publisher,
            'event_type': notification.event_type,
            'priority': _PRIORITY,
            'payload': dict(notification.payload),
            'timestamp': str(created_at.replace(tzinfo=None)),
        }
        context = {'request_id': notification.payload.get('request_id')}
        try:
            self._bus._send_notification(
                self._target, context, message, version=_MESSAGE_FORMAT, retry=_RETRIES
            )
        except transport.FAILURES as error:
            LOG.debug('Notification not sent: %s', type(error).__name__)
            raise ServiceUnavailable(what='RabbitMQ') from error

    def close(self) -> None:
        """Close the connections."""
        self._bus.cleanup()


def connect(conf: cfg.ConfigOpts, topic: str, host: str) -> NotificationBus:
    """Return the topic on the broker of ``[oslo_messaging_notifications]``.

    Without ``transport_url`` there it is the broker of the RPC. The options of the
    library are registered by ``transport.connect``.

    :raises ConfigurationError: the URL is invalid, or the transport has no
        notifications
    """
    try:
        bus = oslo_messaging.get_notification_transport(conf)
    except (oslo_messaging.DriverLoadFailure, oslo_messaging.InvalidTransportURL):
        reason = '[oslo_messaging_notifications] transport_url is not valid.'
        raise ConfigurationError(reason=reason) from None
    except cfg.Error as error:
        raise ConfigurationError(reason=str(error)) from None
    if not transport.supports_notifications(bus):
        reason = (
            '[notifications] enabled requires a broker: set [DEFAULT] transport_url or '
            '[oslo_messaging_notifications] transport_url.'
        )
        raise ConfigurationError(reason=reason)
    return NotificationBus(bus, topic, host)
