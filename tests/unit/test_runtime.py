# SPDX-License-Identifier: Apache-2.0
"""How a process chooses what runs things side by side; each case in its own one."""

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
    ('chosen', 'shown'),
    [
        (None, 'threading threading False'),
        ('threading', 'threading threading False'),
        ('Eventlet', 'eventlet eventlet True'),
    ],
)
def test_the_environment_chooses(chosen: str | None, shown: str) -> None:
    done = run(chosen, SHOW)
    assert done.stdout.strip() == shown, done.stderr


def test_an_unknown_word_ends_the_process_with_the_known_ones() -> None:
    done = run('asyncio', SHOW)
    assert done.returncode == 1
    assert 'CYBORG_LITE_CONCURRENCY must be one of threading, eventlet' in done.stderr


def test_patching_too_late_is_refused() -> None:
    done = run('eventlet', f'import sqlalchemy, oslo_messaging; {SHOW}')
    assert done.returncode == 1
    (line,) = re.findall('imported before monkey patching: (.*)', done.stderr)
    assert {'oslo_messaging', 'sqlalchemy'} <= set(line.split(', '))


def test_threads_do_not_mind_what_was_imported() -> None:
    assert run('threading', f'import sqlalchemy; {SHOW}').returncode == 0


def test_commands_print_no_notice_of_a_library() -> None:
    done = run(None, 'from cyborg_lite import runtime; import futurist')
    assert (done.stdout, done.stderr) == ('', '')


@pytest.mark.parametrize('backend', ['threading', 'eventlet'])
def test_a_join_with_a_limit_returns_when_it_is_reached(backend: str) -> None:
    """On Python 3.13 eventlet itself would raise."""
    done = run(
        backend,
        'from cyborg_lite import runtime\n'
        'import threading\n'
        'for_ever = threading.Event()\n'
        'waiting = threading.Thread(target=for_ever.wait, daemon=True)\n'
        'waiting.start()\n'
        'waiting.join(0.01)\n'
        'print(waiting.is_alive())\n'
        'for_ever.set()\n'
        'waiting.join()\n'
        'print(waiting.is_alive())\n',
    )
    assert done.stdout.split() == ['True', 'False'], done.stderr
