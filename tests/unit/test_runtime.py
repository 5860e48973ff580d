# SPDX-License-Identifier: Apache-2.0
"""Selection of the concurrency backend. Each test starts a process of its own."""

import os
import re
import subprocess
import sys

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


SHOW = (
    'from cyborg_lite import runtime;'
    'from oslo_service import backend;'
    'import eventlet.patcher;'
    'print(runtime.BACKEND, backend.get_backend_type().value,'
    " eventlet.patcher.is_monkey_patched('thread'))"
)


@pytest.mark.parametrize(
    ('backend', 'output'),
    [
        (None, 'threading threading False'),
        ('threading', 'threading threading False'),
        ('Eventlet', 'eventlet eventlet True'),
    ],
)
def test_runtime_uses_backend_from_environment(
    backend: str | None, output: str
) -> None:
    process = run(backend, SHOW)
    assert process.stdout.strip() == output, process.stderr


def test_runtime_unknown_backend_exits_with_valid_backends() -> None:
    process = run('asyncio', SHOW)
    assert process.returncode == 1
    assert (
        'CYBORG_LITE_CONCURRENCY must be one of threading, eventlet' in process.stderr
    )


def test_runtime_patching_after_import_exits() -> None:
    process = run('eventlet', f'import sqlalchemy, oslo_messaging; {SHOW}')
    assert process.returncode == 1
    (line,) = re.findall('imported before monkey patching: (.*)', process.stderr)
    assert {'oslo_messaging', 'sqlalchemy'} <= set(line.split(', '))


def test_runtime_threading_after_import_starts() -> None:
    assert run('threading', f'import sqlalchemy; {SHOW}').returncode == 0


def test_runtime_prints_no_deprecation_warning() -> None:
    process = run(None, 'from cyborg_lite import runtime; import futurist')
    assert (process.stdout, process.stderr) == ('', '')


@pytest.mark.parametrize('backend', ['threading', 'eventlet'])
def test_thread_join_with_timeout_returns(backend: str) -> None:
    """Eventlet without the patch raises Timeout on Python 3.13."""
    process = run(
        backend,
        'from cyborg_lite import runtime\n'
        'import threading\n'
        'never = threading.Event()\n'
        'waiting = threading.Thread(target=never.wait, daemon=True)\n'
        'waiting.start()\n'
        'waiting.join(0.01)\n'
        'print(waiting.is_alive())\n'
        'never.set()\n'
        'waiting.join()\n'
        'print(waiting.is_alive())\n',
    )
    assert process.stdout.split() == ['True', 'False'], process.stderr
