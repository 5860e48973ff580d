# SPDX-License-Identifier: Apache-2.0
"""Loading of the API in a WSGI server, which runs in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

CONFIGURATION: Final = """
[DEFAULT]
transport_url = fake://
message_signatures = off
[api]
auth_strategy = noauth
public_endpoint = https://cloud.example/accelerator
"""
# A server imports the module before it forks.
SERVER: Final = """
import gc
import sys
import threading
used = []
def watch(event, arguments):
    if event == 'socket.connect' or event == 'open' and '.conf' in str(arguments[0]):
        used.append((event, arguments))
sys.addaudithook(watch)
from cyborg_lite.wsgi.api import application
assert not used, used
assert threading.active_count() == 1
assert gc.get_freeze_count() > 0
imported = set(sys.modules)
assert imported >= {'oslo_messaging', 'pecan', 'keystonemiddleware'}
assert 'waitress' not in imported
import webob
print(webob.Request.blank('/v2').get_response(application).text)
assert sys.modules['eventlet'] is None
new = {name for name in set(sys.modules) - imported if name.startswith('cyborg_lite')}
assert used and not new, new
"""
# Like gunicorn: the first request runs in a thread, which is joined at the end.
THREADED: Final = """
from concurrent.futures import ThreadPoolExecutor
import webob
from cyborg_lite.wsgi.api import application
def ask():
    return webob.Request.blank('/v2').get_response(application).status
with ThreadPoolExecutor(1) as pool:
    print(pool.submit(ask).result())
print('joined')
"""


def load(directory: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new process, in which nothing is imported yet."""
    file = directory / 'cyborg-lite.conf'
    file.write_text(CONFIGURATION)
    environment = {
        **os.environ,
        'CYBORG_LITE_CONFIG': str(file),
        # The option applies to the daemons, not to a WSGI server.
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


def test_server_loads_application_from_files(tmp_path: Path) -> None:
    process = load(tmp_path, SERVER)
    assert process.returncode == 0, process.stderr
    assert '"href": "https://cloud.example/accelerator/v2/"' in process.stdout
    assert 'AUTHENTICATION IS OFF' in process.stdout  # the log


def test_first_request_thread_can_be_joined(tmp_path: Path) -> None:
    process = load(tmp_path, THREADED)
    assert process.returncode == 0, process.stderr
    assert process.stdout.endswith('200 OK\njoined\n')
