# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of an API process: requests, their status and duration.

``[api] metrics_port`` decides whether ``cyborg-lite-api`` serves them.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.routes import ROUTES, find_controller
from cyborg_lite.errors.base import NotFound
from cyborg_lite.monitoring.serving import serve_metrics

# Seconds: a read takes some milliseconds, and an RPC times out after 30 s.
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_METHODS: Final = frozenset({'GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE'})
_OTHER: Final = 'other'
_PATHS: Final[Mapping[type[Resource], str]] = {
    controller: path for path, controller in ROUTES.items()
}


class ApiMetrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            'cyborg_lite_api_requests',
            'Answered requests.',
            ['method', 'path', 'status'],
            registry=self.registry,
        )
        self._seconds = Histogram(
            'cyborg_lite_api_request_seconds',
            'Time until the answer, without the transfer.',
            ['method', 'path'],
            buckets=_BUCKETS,
            registry=self.registry,
        )

    def observe(self, method: str, path: str, status: int, seconds: float) -> None:
        """Observe an answered request.

        Clients choose method and path freely. Unknown values share one label, so that
        they cannot fill the memory.

        :param path: decoded path, without the mount prefix
        """
        method = method if method in _METHODS else _OTHER
        template = _find_template(path)
        self._requests.labels(method, template, str(status)).inc()
        self._seconds.labels(method, template).observe(seconds)

    def serve(self, address: str, ports: Iterable[int]) -> int:
        """Serve the metrics on the first free port; return the port.

        :raises ConfigurationError: none of the ports is free
        """
        return serve_metrics(self.registry, address, ports, 'api')


def _find_template(path: str) -> str:
    """Return the path of ``ROUTES`` that matches, such as ``/v2/devices/{uuid}``."""
    try:
        controller, _ = find_controller(path)
    except NotFound:
        return _OTHER
    return _PATHS[controller]
