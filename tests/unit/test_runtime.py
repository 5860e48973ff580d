# SPDX-License-Identifier: Apache-2.0
"""Selection of the concurrency backend, in processes of their own."""

import os
import re
import subprocess
import sys
from typing import Final

import pytest


def run(backend: str | None, code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ}
    environment.pop('CYBORG_LITE_CONCURRENCY', None)
    if backend is not None:
        environment['CYBORG_LITE_CONCURRENCY'] = backend
    return subprocess.run(
        [sys.executable, '-c', code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# Stands for an earlier import of these libraries, which takes a second.
IMPORT: Final = 'import sys; sys.modules.update(sqlalchemy=sys, oslo_messaging=sys)\n'
SHOW: Final = """
from cyborg_lite import runtime
from oslo_service import backend
import futurist
import sys
patcher = sys.modules.get('eventlet.patcher')
patched = patcher is not None and patcher.is_monkey_patched('thread')
print(runtime.BACKEND, backend.get_backend_type().value, patched)
"""
# Eventlet without the patch of this service raises Timeout at a join on Python 3.13.
JOIN: Final = """
import threading
never = threading.Event()
waiting = threading.Thread(target=never.wait, daemon=True)
waiting.start()
waiting.join(0.01)
print('running', waiting.is_alive())
never.set()
waiting.join()
print('running', waiting.is_alive())
"""

# A worker is killed while it has the lock of the log.
KILLED: Final = """
from cyborg_lite import runtime
import logging
import os
import signal
from oslo_config import cfg
from oslo_log import log
conf = cfg.ConfigOpts()
log.register_options(conf)
conf([])
log.setup(conf, 'daemon')
(handler,) = logging.root.handlers
if not os.fork():
    runtime.forget_parent()
    handler.acquire()
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()
log.getLogger('daemon').error('The parent still logs.')
"""


@pytest.mark.parametrize(
    ('backend', 'line'),
    [(None, 'threading threading False'), ('Eventlet', 'eventlet eventlet True')],
)
def test_runtime_uses_backend_from_environment(backend: str | None, line: str) -> None:
    process = run(backend, SHOW + JOIN)
    lines = [line, 'running True', 'running False']
    assert process.stdout.splitlines() == lines, process.stderr
    # Libraries that import eventlet would print its deprecation warning.
    assert process.stderr == ''


@pytest.mark.parametrize('backend', ['threading', 'eventlet'])
def test_killed_worker_does_not_keep_lock_of_log(backend: str) -> None:
    assert 'The parent still logs.' in run(backend, KILLED).stdout


def test_runtime_threading_refuses_eventlet() -> None:
    process = run('threading', 'from cyborg_lite import runtime\nimport eventlet')
    assert 'ModuleNotFoundError' in process.stderr


def test_runtime_threading_keeps_eventlet_of_server() -> None:
    code = 'import eventlet\nfrom cyborg_lite import runtime\nfrom eventlet import hubs'
    assert run('threading', code).returncode == 0


def test_runtime_unknown_backend_exits_with_valid_backends() -> None:
    process = run('asyncio', SHOW)
    assert process.returncode == 1
    assert (
        'CYBORG_LITE_CONCURRENCY must be one of threading, eventlet' in process.stderr
    )


def test_runtime_patching_after_import_exits() -> None:
    process = run('eventlet', IMPORT + SHOW)
    assert process.returncode == 1
    (line,) = re.findall('imported before monkey patching: (.*)', process.stderr)
    assert line.split(', ') == ['oslo_messaging', 'sqlalchemy']


def test_runtime_threading_after_import_starts() -> None:
    process = run('threading', IMPORT + SHOW)
    assert process.stdout == 'threading threading False\n', process.stderr
