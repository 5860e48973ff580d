# SPDX-License-Identifier: Apache-2.0
"""Explanations of errors of the message broker."""

import logging

import oslo_messaging
import pytest
from amqp import exceptions as amqp

from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.rpc import broker_errors

# Texts of RabbitMQ 3.10.
EXCHANGE = (
    'Unable to connect to AMQP server on 127.0.0.1:5672 after inf tries: '
    "Exchange.declare: (406) PRECONDITION_FAILED - inequivalent arg 'durable' for "
    "exchange 'cyborg_lite' in vhost 'life': received 'false' but current is 'true'"
)
REFUSAL = (
    'Unable to connect to AMQP server on 127.0.0.1:5672 after 2 tries: (0, 0): (403) '
    'ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN.'
)
QUEUE = (
    "Queue.declare: (406) PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for "
    "queue 'cyborg_lite.agent' in vhost '/': received none but current is the value "
    "'quorum' of type 'longstr'"
)


@pytest.mark.parametrize(
    ('error', 'words'),
    [
        (
            oslo_messaging.MessageDeliveryFailure(EXCHANGE),
            [
                'exchange cyborg_lite with durable true',
                'requests false',
                'rabbit_quorum_queue',
            ],
        ),
        (
            amqp.PreconditionFailed(QUEUE),
            [
                'queue cyborg_lite.agent with x-queue-type quorum',
                'requests none',
                'rabbit_transient_quorum_queue',
            ],
        ),
        (amqp.AccessRefused('login'), ['password', '[DEFAULT] transport_url']),
        (oslo_messaging.MessageDeliveryFailure(REFUSAL), ['RabbitMQ refuses the user']),
        (amqp.NotAllowed('x'), ['virtual host', '[DEFAULT] transport_url']),
        (
            PermissionError(13, 'Permission denied', '/locks/reply'),
            ['/locks/reply: Permission denied', 'lock_path'],
        ),
        (FileNotFoundError(2, 'No such file', '/proc/17/stat'), ['by setsid.']),
    ],
)
def test_explain_error_names_cause_and_option(
    error: Exception, words: list[str]
) -> None:
    text = broker_errors.explain_error(error) or ''
    assert [word for word in words if word not in text] == []


def test_translate_errors_keeps_other_errors() -> None:
    with pytest.raises(amqp.ConnectionForced), broker_errors.translate_errors():
        raise amqp.ConnectionForced('restart')


def test_translate_errors_mismatch_raises_configuration_error() -> None:
    with pytest.raises(ConfigurationError), broker_errors.translate_errors():
        raise amqp.PreconditionFailed(QUEUE)


def test_hide_library_lines_drops_mismatch_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker_errors.hide_library_lines()
    logger = logging.getLogger('oslo.messaging._drivers.impl_rabbit')
    logger.error('Failed to declare: %s', QUEUE)
    logger.error('Connection failed')
    assert [record.getMessage() for record in caplog.records] == ['Connection failed']
