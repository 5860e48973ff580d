# SPDX-License-Identifier: Apache-2.0
"""A Prometheus server that scrapes daemons of a test."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import yaml

from devstack.launcher.configuration import free_port
from devstack.launcher.processes import Child
from devstack.launcher.rest import Service

RULES: Final = Path(__file__).parents[2] / 'etc' / 'prometheus'


def is_installed() -> bool:
    return all(map(shutil.which, ('prometheus', 'promtool')))


class Prometheus:
    """Client of the HTTP API of a Prometheus server."""

    def __init__(self, port: int) -> None:
        self._service = Service(f'http://127.0.0.1:{port}', {})

    def is_ready(self) -> bool:
        return self._service.answers()

    # Any: a result is JSON.
    def ask(self, path: str, **arguments: str) -> Any:
        """Return the data of an answer of the API."""
        answer = self._service.ask('GET', f'/api/v1/{path}?{urlencode(arguments)}')
        assert answer.status == 200, answer.body
        return answer.body['data']

    def query(self, expression: str) -> list[Mapping[str, Any]]:
        """Return the series of an instant query."""
        series: list[Mapping[str, Any]] = self.ask('query', query=expression)['result']
        return series


@contextmanager
def prometheus(directory: Path, ports: Sequence[int]) -> Iterator[Prometheus]:
    """Run a server with the alert rules in etc that scrapes ports twice a second."""
    port = free_port()
    config = {
        'global': {'scrape_interval': '500ms', 'evaluation_interval': '1s'},
        'rule_files': [str(RULES / '*.yml')],
        'scrape_configs': [
            {
                'job_name': 'cyborg-lite',
                'static_configs': [{'targets': [f'127.0.0.1:{n}' for n in ports]}],
            }
        ],
    }
    file = directory / 'prometheus.yml'
    file.write_text(yaml.safe_dump(config))
    child = Child('prometheus', directory / 'prometheus.log')
    child.start(
        [
            shutil.which('prometheus') or '',
            f'--config.file={file}',
            f'--storage.tsdb.path={directory / "prometheus"}',
            f'--web.listen-address=127.0.0.1:{port}',
        ]
    )
    try:
        server = Prometheus(port)
        child.until(server.is_ready)
        yield server
    finally:
        child.end()
