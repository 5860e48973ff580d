# SPDX-License-Identifier: Apache-2.0
"""Changes reach the host through a process of their own, started when it is needed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_LOAD = """
import sys
from cyborg_lite.drivers.host_tools import Tools
from cyborg_lite.drivers.kernel import PrivilegedKernel

outcome = Tools(PrivilegedKernel())([sys.argv[1], '-B', '0x5e'], 60)
print(outcome.status, outcome.output)
"""

_ASK = """
import json
from pathlib import Path
from cyborg_lite.drivers.kernel import PrivilegedKernel, Writer

writer = Writer(Path('/'), PrivilegedKernel(), seconds=120)

def told(path):
    try:
        writer.write('0000:00:00.0', path, '0')
    except OSError as error:
        return type(error).__name__

holder = open('/dev/null')
print(json.dumps([
    told('etc/passwd'),
    told('sys/bus/pci/devices/ffff:ff:1f.7/sriov_numvfs'),
    writer.holders('0000:00:00.0', ['/dev/null']),
]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root, or sudo without a password')
def test_the_process_with_the_rights_answers_and_obeys_only_drivers() -> None:
    with open('/dev/null') as null:
        ended = subprocess.run(
            [sys.executable, '-c', _ASK], stdin=null, capture_output=True, timeout=300
        )
        assert ended.returncode == 0, ended.stderr.decode()
        refused, absent, holders = json.loads(ended.stdout)
    assert (refused, absent) == ('PermissionError', 'FileNotFoundError')
    assert os.getpid() in holders


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root, or sudo without a password')
def test_a_tool_that_loads_is_run_by_the_process_with_the_rights(
    tmp_path: Path,
) -> None:
    """Though nothing else was done as root before, and there is no sudo here."""
    tool = tmp_path / 'fpgaconf'
    tool.write_text('#!/bin/sh\necho loaded $2\nexit 3\n')
    tool.chmod(0o755)
    ended = subprocess.run(
        [sys.executable, '-c', _LOAD, str(tool)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        env={**os.environ, 'PATH': ''},
    )
    assert ended.returncode == 0, ended.stderr.decode()
    assert ended.stdout.decode().split() == ['3', 'loaded', '0x5e']
