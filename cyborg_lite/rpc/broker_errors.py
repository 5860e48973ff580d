# SPDX-License-Identifier: Apache-2.0
"""Errors of the message broker that only a change of the configuration ends.

oslo.messaging raises the errors of its libraries as they are, or as text.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import oslo_messaging
from amqp import exceptions as amqp

from cyborg_lite.errors.daemons import ConfigurationError

# From the text of RabbitMQ: argument, kind and name of the object, both values.
_MISMATCH: Final = re.compile(
    r"inequivalent arg '(?P<argument>[^']+)' for (?P<kind>\w+) '(?P<name>[^']+)'"
    r'.*?received (?P<received>.+?) but current is (?P<current>[^\n]+)',
    re.DOTALL,
)

_DEFAULT_OPTIONS: Final = 'rabbit_quorum_queue, amqp_durable_queues'

# Options of [oslo_messaging_rabbit] that set an argument of a queue or an exchange.
_OPTIONS: Final = {
    'durable': _DEFAULT_OPTIONS,
    'auto_delete': 'amqp_auto_delete',
    'x-queue-type': (
        'rabbit_quorum_queue, rabbit_transient_quorum_queue, rabbit_stream_fanout'
    ),
    'x-expires': 'rabbit_transient_queues_ttl',
    'x-delivery-limit': 'rabbit_quorum_delivery_limit',
    'x-max-in-memory-length': 'rabbit_quorum_max_memory_length',
    'x-max-in-memory-bytes': 'rabbit_quorum_max_memory_bytes',
}

_LIBRARY_LOGGER: Final = 'oslo.messaging._drivers.impl_rabbit'


def explain_error(error: BaseException) -> str | None:
    """Return what to change in the configuration, or None for another error."""
    if isinstance(error, OSError) and error.filename is not None:
        if str(error.filename).startswith('/proc/'):
            # oslo.messaging reads the start time of the leader of the process group.
            return (
                'The process that started this daemon has ended, and oslo.messaging '
                'needs it. Start the daemon by systemd or by setsid.'
            )
        return (
            f'The daemon cannot open {error.filename}: {error.strerror}. Check '
            '[oslo_concurrency] lock_path.'
        )
    # A connection that broke has this text, in an error of oslo.messaging.
    if isinstance(error, amqp.AccessRefused) or 'ACCESS_REFUSED' in str(error):
        return (
            'RabbitMQ refuses the user, the password or a permission of [DEFAULT] '
            'transport_url.'
        )
    if isinstance(error, amqp.NotAllowed):
        return (
            'RabbitMQ has no virtual host of the name in [DEFAULT] transport_url, or '
            'the user may not use it.'
        )
    match = _MISMATCH.search(str(error))
    if match is None:
        return None
    return (
        'Section [oslo_messaging_rabbit] differs between daemons: RabbitMQ has '
        f'{match["kind"]} {match["name"]} with {match["argument"]} '
        f'{_strip_words(match["current"])}, this configuration requests '
        f'{_strip_words(match["received"])}. Compare '
        f'{_OPTIONS.get(match["argument"], _DEFAULT_OPTIONS)} on all hosts.'
    )


def _strip_words(value: str) -> str:
    """Return a value of RabbitMQ without the words around it."""
    quoted = re.search(r"'([^']*)'", value)
    return quoted[1] if quoted else value.strip()


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate errors of the broker that a retry cannot end.

    :raises ConfigurationError: the broker refuses the user, or a queue of it has other
        properties
    """
    try:
        yield
    except (amqp.AMQPError, oslo_messaging.MessagingException) as error:
        reason = explain_error(error)
        if reason is None:
            raise
        raise ConfigurationError(reason=reason) from error


class _MismatchFilter(logging.Filter):
    """Drops lines of the library about errors that ``explain_error`` explains."""

    def filter(self, record: logging.LogRecord) -> bool:
        return 'PRECONDITION_FAILED' not in record.getMessage()


def hide_library_lines() -> None:
    """Hide the log lines of oslo.messaging about errors that this module explains."""
    logger = logging.getLogger(_LIBRARY_LOGGER)
    if not any(isinstance(item, _MismatchFilter) for item in logger.filters):
        logger.addFilter(_MismatchFilter())
