# SPDX-License-Identifier: Apache-2.0
"""Virtual hosts on a real RabbitMQ.

CYBORG_LITE_TEST_RABBITMQ is the URL of the broker. If `rabbitmqctl` is usable, each
test has its own virtual host; otherwise tests share the one in the URL and must not
overlap. A test whose broker does not answer is skipped, but fails if
CYBORG_LITE_TEST_REQUIRE_SERVERS is 1.

`rabbitmqctl` needs a second of CPU time. So one call creates the virtual hosts of
several tests, and one deletes those of this process at its end.
"""

import atexit
import fcntl
import json
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.servers.databases import REQUIRED

_VARIABLE: Final = 'CYBORG_LITE_TEST_RABBITMQ'
_DEFAULT: Final = 'rabbit://guest:guest@127.0.0.1:5672/'
_CREATE: Final = """
[begin
    Name = list_to_binary(N),
    rabbit_vhost:add(Name, <<"test">>),
    rabbit_auth_backend_internal:set_permissions(
        <<"{user}">>, Name, <<".*">>, <<".*">>, <<".*">>, <<"test">>)
end || N <- {names}].
"""
_DELETE: Final = '[rabbit_vhost:delete(list_to_binary(N), <<"test">>) || N <- {names}].'
_BATCH: Final = 6

_unused: list[str] = []


@contextmanager
def virtual_host() -> Iterator[str]:
    """Yield the transport URL of a virtual host without queues."""
    url = os.environ.get(_VARIABLE, _DEFAULT)
    if not _answers(url):
        reason = f'no RabbitMQ answers at {urlsplit(url).hostname}; see {_VARIABLE}'
        if os.environ.get(REQUIRED) == '1':
            pytest.fail(reason)
        pytest.skip(reason)
    user = urlsplit(url).username or 'guest'
    if _unused or _create_virtual_hosts(user):
        yield urlunsplit(urlsplit(url)._replace(path=f'/{_unused.pop()}'))
    else:
        with _alone():
            yield url


def _create_virtual_hosts(user: str) -> bool:
    """Create unused virtual hosts; return False if `rabbitmqctl` cannot do it."""
    names = [f'cyborg-lite-{uuid.uuid4().hex[:12]}' for _ in range(_BATCH)]
    text = json.dumps(names)
    if not control('eval', _CREATE.format(user=user, names=text)):
        return False
    _unused.extend(names)
    atexit.register(control, 'eval', _DELETE.format(names=text))
    return True


def _answers(url: str) -> bool:
    parts = urlsplit(url)
    try:
        address = (parts.hostname or '127.0.0.1', parts.port or 5672)
        socket.create_connection(address, timeout=5).close()
    except OSError:
        return False
    return True


def list_connections(url: str) -> list[str]:
    """Return one line for each connection to the virtual host of the URL."""
    host = urlsplit(url).path.removeprefix('/')
    return [line for line in _read('list_connections', 'vhost') if line == host]


def list_queues(url: str) -> list[str]:
    """Return the names of the queues and streams of the virtual host of the URL."""
    host = urlsplit(url).path.removeprefix('/')
    return _read('list_queues', '--vhost', host, 'name')


def _read(*arguments: str) -> list[str]:
    """Return the lines of a table of ``rabbitmqctl``."""
    completed = _run('--no-table-headers', *arguments)
    completed.check_returncode()
    return completed.stdout.splitlines()


def control(*arguments: str) -> bool:
    """Run ``rabbitmqctl``; return False if it is missing or fails."""
    return shutil.which('rabbitmqctl') is not None and _run(*arguments).returncode == 0


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ['rabbitmqctl', '--quiet', *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def _alone() -> Iterator[None]:
    lock = Path(tempfile.gettempdir()) / 'cyborg-lite-tests.lock'
    with lock.open('w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
