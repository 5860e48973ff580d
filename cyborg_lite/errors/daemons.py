# SPDX-License-Identifier: Apache-2.0
"""Errors of the daemons, and of the services on which they depend."""

from cyborg_lite.errors.base import CyborgError, InvalidInput


class ServiceUnavailable(CyborgError):
    """A service on which the request depends does not answer. A retry may succeed."""

    code = 503
    message = 'The service is unavailable: {what} does not answer.'
    advice = 'Check that {what} is running and reachable from this host.'


class MessageRefused(ServiceUnavailable):
    """A message between two daemons has no valid signature."""

    message = 'A message was refused: {reason}.'
    advice = (
        'Compare the message keys of both hosts; cyborg-lite-manage agent key prints '
        'the key of a host.'
    )


class DatabaseRefused(ServiceUnavailable):
    """The database server refuses the user, the password or the database name."""

    message = 'The database refuses the connection.'
    advice = 'Correct user, password and database name in [database] connection.'


class BrokerRefused(ServiceUnavailable):
    """RabbitMQ refuses the user, the password or a queue of a daemon."""

    message = 'The message bus refuses the connection.'
    advice = (
        'Correct user and password in [DEFAULT] transport_url. The log of the daemon '
        'has the reason of RabbitMQ.'
    )


class DatabaseQuarantined(CyborgError):
    """The database has lost changes; an operator must recover it."""

    code = 503
    message = (
        'The accelerator database has lost changes. Until an operator has recovered '
        'it, no accelerator is handed out.'
    )
    advice = 'Run cyborg-lite-manage recover.'


class DatabaseError(CyborgError):
    """The database returned an error. The log of the conductor contains its text."""

    message = 'The database refused the request.'
    advice = (
        'Run cyborg-lite-dbsync upgrade. If the error persists, check the log of the '
        'conductor.'
    )


class RemoteError(CyborgError):
    """Another OpenStack service returned an unexpected error."""

    message = '{service} answered {status}: {reason}'
    advice = 'Search the log of {service} for the request id.'


class ConfigurationError(CyborgError):
    """The configuration is invalid, and the process cannot start."""

    message = '{reason}'
    advice = 'Correct the configuration, then start the daemon or command again.'


class SchemaOutdated(CyborgError):
    """The database has no schema, or that of an earlier version."""

    message = 'The database has schema revision {current}, this version needs {head}.'
    advice = 'Run `cyborg-lite-dbsync upgrade`, then start the service again.'


class MalformedData(InvalidInput):
    """A message, payload, file or column has other JSON than its class declares."""

    message = 'Malformed data: {reason}'
    advice = 'Check that all daemons run compatible versions.'
