# SPDX-License-Identifier: Apache-2.0
"""Changes of the host by the privileged process, which is started on demand."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_LOAD = """
import logging
import sys
from cyborg_lite.drivers.host.tools import Tools
from cyborg_lite.drivers.host.kernel import PrivilegedKernel
from cyborg_lite.errors.drivers import DriverError

logging.basicConfig()
try:
    Tools(PrivilegedKernel())([sys.argv[1], '-B', '0x5e'], 60)
except DriverError as error:
    print(error)
"""

_ASK = """
import json
from pathlib import Path
from cyborg_lite.drivers.host.kernel import PrivilegedKernel, Writer
from cyborg_lite.errors.drivers import DriverError

writer = Writer(Path('/'), PrivilegedKernel(), seconds=120)

def told(path):
    try:
        writer.write('0000:00:00.0', path, '0')
    except OSError as error:
        return type(error).__name__

def search():
    try:
        return writer.holders('0000:00:00.0', ['/dev/null'])
    except DriverError as error:
        return error.text

holder = open('/dev/null')
print(json.dumps([
    told('etc/passwd'),
    told('sys/bus/pci/devices/ffff:ff:1f.7/sriov_numvfs'),
    told('sys/kernel/rcu_expedited'),
    search(),
]))
"""


def _can_read_links(directory: str) -> bool:
    try:
        for name in os.listdir(directory):
            os.readlink(f'{directory}/{name}')
    except PermissionError:
        return False
    return True


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root, or sudo without a password')
def test_privileged_process_serves_driver_calls_only() -> None:
    with open('/dev/null') as null:
        completed = subprocess.run(
            [sys.executable, '-c', _ASK], stdin=null, capture_output=True, timeout=300
        )
        assert completed.returncode == 0, completed.stderr.decode()
        refused, absent, unlisted, holders = json.loads(completed.stdout)
    assert (refused, absent) == ('PermissionError', 'FileNotFoundError')
    assert unlisted == 'PermissionError'
    # In some sandboxes root cannot see what the first process has open.
    if _can_read_links('/proc/1/fd'):
        assert os.getpid() in holders
    else:
        assert 'search for open files' in holders


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root, or sudo without a password')
def test_privileged_process_refuses_tools_of_other_folders(tmp_path: Path) -> None:
    """No other privileged call ran before, and there is no sudo."""
    trap = tmp_path / 'trap'
    for name in ('fpgaconf', 'sriov-manage'):
        tool = tmp_path / name
        tool.write_text(f'#!/bin/sh\ntouch {trap}\n')
        tool.chmod(0o755)
        completed = subprocess.run(
            [sys.executable, '-c', _LOAD, str(tool)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=300,
            env={**os.environ, 'PATH': str(tmp_path)},
        )
        assert completed.returncode == 0, completed.stderr.decode()
        assert f'missing: run {tool} -B 0x5e' in completed.stdout.decode()
        # The process logs the refusal, and the agent receives its log.
        assert 'refuses a request' in completed.stderr.decode()
    assert not trap.exists()
