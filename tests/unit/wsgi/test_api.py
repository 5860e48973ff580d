# SPDX-License-Identifier: Apache-2.0
"""Any WSGI server can load us, and may fork before it serves."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import webob

from cyborg_lite.wsgi.api import LazyApplication

CONFIGURATION = """
[DEFAULT]
transport_url = fake://
[api]
auth_strategy = noauth
public_endpoint = https://cloud.example/accelerator
"""
SERVER = """
import sys
from cyborg_lite.wsgi.api import application
loaded = {name.partition('.')[0] for name in sys.modules}
assert not loaded & {'oslo_messaging', 'pecan', 'keystonemiddleware'}, loaded
import webob
print(webob.Request.blank('/v2').get_response(application).text)
from eventlet import patcher
assert not patcher.already_patched
"""
# As gunicorn does: the first request comes in a thread, and that is joined at the end.
THREADED = """
from concurrent.futures import ThreadPoolExecutor
import webob
from cyborg_lite.wsgi.api import application
def ask():
    return webob.Request.blank('/v2').get_response(application).status
with ThreadPoolExecutor(1) as pool:
    print(pool.submit(ask).result())
print('joined')
"""


def hello(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [b'hello']


def test_the_application_is_built_once_by_whoever_comes_first() -> None:
    built: list[int] = []
    waiting = threading.Barrier(4)

    def build() -> Any:
        built.append(threading.get_ident())
        return hello

    application = LazyApplication(build)
    assert not built

    def ask() -> bytes:
        waiting.wait()
        body: bytes = webob.Request.blank('/').get_response(application).body
        return body

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(ask) for _ in range(4)]
        assert [answer.result() for answer in answers] == [b'hello'] * 4
    assert len(built) == 1


def test_a_failed_build_is_tried_again() -> None:
    failures = [OSError('the file is not there yet')]

    def build() -> Any:
        if failures:
            raise failures.pop()
        return hello

    application = LazyApplication(build)
    with pytest.raises(OSError, match='not there yet'):
        webob.Request.blank('/').get_response(application)
    assert webob.Request.blank('/').get_response(application).body == b'hello'


def load(directory: Path, code: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, for nothing may have been imported before."""
    file = directory / 'cyborg-lite.conf'
    file.write_text(CONFIGURATION)
    environment = {
        **os.environ,
        'CYBORG_LITE_CONFIG': str(file),
        # An operator's choice for the daemons; here the server's own counts.
        'CYBORG_LITE_CONCURRENCY': 'eventlet',
    }
    return subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_server_loads_it_with_files_alone(tmp_path: Path) -> None:
    done = load(tmp_path, SERVER)
    assert done.returncode == 0, done.stderr
    assert '"href": "https://cloud.example/accelerator/v2/"' in done.stdout
    assert 'AUTHENTICATION IS OFF' in done.stdout  # the log


def test_the_thread_of_the_first_request_can_be_joined(tmp_path: Path) -> None:
    done = load(tmp_path, THREADED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith('200 OK\njoined\n')
