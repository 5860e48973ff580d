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
QUEUE = (
    "Queue.declare: (406) PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for "
    "queue 'cyborg_lite.agent' in vhost '/': received none but current is the value "
    "'quorum' of type 'longstr'"
)


def test_explain_error_exchange_names_both_values_and_options() -> None:
    text = broker_errors.explain_error(oslo_messaging.MessageDeliveryFailure(EXCHANGE))
    assert text is not None
    assert 'exchange cyborg_lite with durable true' in text
    assert 'requests false' in text
    assert 'rabbit_quorum_queue' in text


def test_explain_error_queue_names_type_of_queue() -> None:
    text = broker_errors.explain_error(amqp.PreconditionFailed(QUEUE))
    assert text is not None
    assert 'queue cyborg_lite.agent with x-queue-type quorum' in text
    assert 'requests none' in text
    assert 'rabbit_transient_quorum_queue' in text


@pytest.mark.parametrize(
    ('error', 'word'),
    [(amqp.AccessRefused('login'), 'password'), (amqp.NotAllowed('x'), 'virtual host')],
)
def test_explain_error_refused_user_names_transport_url(
    error: Exception, word: str
) -> None:
    text = broker_errors.explain_error(error) or ''
    assert word in text
    assert '[DEFAULT] transport_url' in text


def test_explain_error_other_error_returns_none() -> None:
    assert broker_errors.explain_error(amqp.ConnectionForced('restart')) is None


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


def test_explain_error_names_lock_file_and_option() -> None:
    error = PermissionError(13, 'Permission denied', '/locks/reply')
    text = broker_errors.explain_error(error)
    assert text is not None
    assert '/locks/reply: Permission denied' in text
    assert 'lock_path' in text


def test_explain_error_names_process_group_without_leader() -> None:
    error = FileNotFoundError(2, 'No such file or directory', '/proc/17/stat')
    text = broker_errors.explain_error(error) or ''
    assert 'setsid' in text
    assert 'lock_path' not in text
