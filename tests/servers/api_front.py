# SPDX-License-Identifier: Apache-2.0
"""The service alone and behind both proxies, with the configurations in etc/proxy.

A missing proxy skips its tests. It fails them if CYBORG_LITE_TEST_REQUIRE_SERVERS is 1.
"""

import http.client
import os
import re
import shutil
import socket
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from devstack.launcher.configuration import free_port
from devstack.launcher.processes import Child
from tests.builders.certificate import write_certificate
from tests.support.programs import find_module

ETC: Final = Path(__file__).parents[2] / 'etc' / 'proxy'
PROXIES: Final = ('haproxy', 'nginx')
REQUIRED: Final = 'CYBORG_LITE_TEST_REQUIRE_SERVERS'

_SERVICE: Final = """
[DEFAULT]
host = front
[database]
connection = sqlite:///{directory}/db.sqlite
[api]
port = {port}
[agent]
enabled_drivers = fake_driver
state_path = {directory}/agent
[placement]
endpoint_override = http://127.0.0.1:9
[oslo_concurrency]
lock_path = {directory}/locks
[oslo_middleware]
enable_proxy_headers_parsing = true
"""
_NGINX: Final = """
daemon off;
pid {directory}/nginx.pid;
error_log stderr warn;
{user}
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    {site}
}}
"""
# The proxies listen with and without TLS, on other ports, and log nothing.
_CHANGES: Final = {
    'haproxy': {
        r'bind :6666 ssl crt \S+ alpn': (
            'bind 127.0.0.1:{port}\n    bind 127.0.0.1:{tls_port} ssl crt {pem} alpn'
        ),
        r'(user|group) haproxy\n': '',
        r'log \S+ local0\n': '',
    },
    'nginx': {
        r'listen 6666 ssl;': (
            'listen 127.0.0.1:{port};\n    listen 127.0.0.1:{tls_port} ssl;'
        ),
        r'/etc/cyborg-lite/api.pem': '{pem}',
    },
}


@dataclass(frozen=True, slots=True)
class Front:
    """Server that clients connect to."""

    name: str
    port: int
    tls_port: int  # 0: no TLS
    children: tuple[Child, ...]

    def ask(self, path: str = '/v2', timeout: float = 60.0) -> int:
        """Return the status of the answer to a client that has its own address."""
        with closing(
            http.client.HTTPConnection('127.0.0.1', self.port, timeout)
        ) as connection:
            connection.request('GET', path)
            answer = connection.getresponse()
            answer.read()
            return answer.status

    def is_ready(self) -> bool:
        try:
            return self.ask('/healthcheck/ready') == 200
        except OSError:
            return False

    def read_memory(self) -> int:
        """Return the largest resident memory of the processes, in MB."""
        pids = [pid for child in self.children for pid in child.group.members()]
        return sum(_read_peak(pid) for pid in pids) // 1024


def _read_peak(pid: int) -> int:
    text = Path(f'/proc/{pid}/status').read_text(encoding='utf-8')
    match = re.search(r'VmHWM:\s+(\d+) kB', text)
    return int(match[1]) if match else 0


def start_service(directory: Path) -> Front:
    """Start API, conductor and agent in one process."""
    port = free_port()
    file = directory / 'cyborg-lite.conf'
    file.write_text(_SERVICE.format(directory=directory, port=port), encoding='utf-8')
    child = Child('cyborg-lite-standalone', directory / 'service.log')
    front = Front('service', port, 0, (child,))
    module = find_module('standalone')
    child.start([sys.executable, '-m', module, '--config-file', str(file)])
    child.until(front.is_ready)
    return front


def start_proxy(
    name: str, directory: Path, port: int, changes: Mapping[str, str] | None = None
) -> Front:
    """Start a proxy in front of a port.

    :param changes: replacements in its configuration, by regular expression
    """
    program = shutil.which(name, path=f'{os.environ["PATH"]}:/usr/sbin')
    if program is None:
        reason = f'{name} is not installed'
        if os.environ.get(REQUIRED):
            pytest.fail(reason)
        pytest.skip(reason)
    files = write_certificate(directory)
    pem = directory / 'api.pem'
    pem.write_bytes(files.certificate.read_bytes() + files.key.read_bytes())
    child = Child(name, directory / f'{name}.log')
    front = Front(name, free_port(), free_port(), (child,))
    [source] = ETC.glob(f'{name}.*')
    text = source.read_text(encoding='utf-8').replace(
        '127.0.0.1:6667', f'127.0.0.1:{port}'
    )
    values = {'port': front.port, 'tls_port': front.tls_port, 'pem': pem}
    for pattern, replacement in {**_CHANGES[name], **(changes or {})}.items():
        text, count = re.subn(pattern, replacement.format(**values), text)
        assert count, f'{source} has no {pattern}'
    if name == 'nginx':
        user = 'user root;' if os.geteuid() == 0 else ''
        text = _NGINX.format(directory=directory, user=user, site=text)
    file = directory / source.name
    file.write_text(text, encoding='utf-8')
    options = ['-c', str(file)] if name == 'nginx' else ['-db', '-f', str(file)]
    child.start([program, *options])
    child.until(lambda: _accepts(front.port))
    return front


def _accepts(port: int) -> bool:
    with closing(socket.socket()) as client:
        return client.connect_ex(('127.0.0.1', port)) == 0
