# SPDX-License-Identifier: Apache-2.0
"""The installed ``discover`` command on every fixture host, without other services."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.hosts import sysfs_tree

# Runs the command under an audit hook that exits at the first forbidden action.
_WATCHED = """
import os
import sys

from cyborg_lite.cmd.daemons import agent

FORBIDDEN = {'subprocess.Popen', 'os.system', 'os.fork', 'os.posix_spawn',
             'os.exec', 'socket.connect', 'socket.sendto'}
ELSEWHERE = ('/sys/', '/dev/', '/proc/driver', '/proc/sys')

def watch(event, arguments):
    path = arguments[0] if event in ('open', 'os.listdir', 'os.scandir') else ''
    if event in FORBIDDEN or str(path).startswith(ELSEWHERE):
        sys.__stderr__.write(f'{event} {arguments}')
        sys.__stderr__.flush()
        os._exit(99)

sys.addaudithook(watch)
sys.exit(agent.main(sys.argv[1:]))
"""


# Any: JSON.
def _discover(root: Path, *options: str, backend: str = 'threading') -> Any:
    command = Path(sys.executable).with_name('cyborg-lite-agent')
    arguments = ['discover', '--sysfs-root', str(root), '--format', 'json', *options]
    return _answer([str(command), *arguments], root, backend)


def _answer(command: list[str], root: Path, backend: str = 'threading') -> Any:
    configuration = root.with_suffix('.conf')
    # No broker is at this address: the command must not need one.
    url = 'rabbit://nobody:nothing@192.0.2.1:5672/'
    configuration.write_text(f'[DEFAULT]\nhost = compute-1\ntransport_url = {url}\n')
    environment = {
        **os.environ,
        'CYBORG_LITE_CONFIG': str(configuration),
        'CYBORG_LITE_CONCURRENCY': backend,
    }
    completed = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120
    )
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def test_discover_result_is_equal_under_both_backends(tmp_path: Path) -> None:
    root = tmp_path / 'root'
    sysfs_tree.build('t4-mdev', root)
    assert _discover(root) == _discover(root, backend='eventlet')


def test_discover_starts_no_process_and_stays_below_root(tmp_path: Path) -> None:
    root = tmp_path / 'root'
    sysfs_tree.build('a100-sriov-mig', root)
    arguments = ['discover', '--sysfs-root', str(root), '--format', 'json']
    devices = _answer([sys.executable, '-c', _WATCHED, *arguments], root)
    assert len(devices) == 34
