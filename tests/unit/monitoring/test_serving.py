# SPDX-License-Identifier: Apache-2.0
"""Tests of the service of metrics."""

import socket
import urllib.request
from contextlib import closing

import pytest
from prometheus_client import CollectorRegistry, Counter

from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.monitoring.serving import serve_metrics


def test_serve_metrics_uses_first_free_port() -> None:
    registry = CollectorRegistry()
    Counter('spoken', 'Words.', registry=registry).inc()
    with socket.create_server(('127.0.0.1', 0)) as occupied:
        first: int = occupied.getsockname()[1]
        with socket.create_server(('127.0.0.1', 0)) as listener:
            free: int = listener.getsockname()[1]
        assert serve_metrics(registry, '127.0.0.1', [first, free], 'api') == free
        with pytest.raises(ConfigurationError, match=r'\[api\] metrics_port'):
            serve_metrics(registry, '127.0.0.1', [first], 'api')
    url = f'http://127.0.0.1:{free}/metrics'
    with closing(urllib.request.urlopen(url)) as answer:
        assert 'spoken_total 1.0' in answer.read().decode()
