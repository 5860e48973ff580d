# SPDX-License-Identifier: Apache-2.0
"""Metrics over HTTP, in the text format of Prometheus."""

from collections.abc import Iterable

from oslo_log import log
from prometheus_client import CollectorRegistry, start_http_server

from cyborg_lite.errors.daemons import ConfigurationError

LOG = log.getLogger(__name__)


def serve_metrics(
    registry: CollectorRegistry, address: str, ports: Iterable[int], section: str
) -> int:
    """Serve metrics on the first free port, until the process exits.

    :param section: section of the option ``metrics_port``, for the error
    :returns: the port
    :raises ConfigurationError: none of the ports is free
    """
    for port in ports:
        try:
            start_http_server(port, address, registry=registry)
        except OSError as error:
            LOG.debug('Metrics not served on %s port %d: %s', address, port, error)
            continue
        LOG.info('Metrics served on %s port %d', address, port)
        return port
    reason = f'[{section}] metrics_port: no port is free on {address}.'
    raise ConfigurationError(reason=reason)
