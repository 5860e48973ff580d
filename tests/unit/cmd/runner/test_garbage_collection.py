# SPDX-License-Identifier: Apache-2.0
"""Tests of the garbage collection of daemons, in a process of its own."""

import subprocess
import sys
from typing import Final

CODE: Final = """
import gc
from cyborg_lite.cmd.runner import garbage_collection

present = [[] for _ in range(1000)]
garbage_collection.exempt_objects_of_start()
collected = {id(item) for item in gc.get_objects()}
print(sum(id(item) in collected for item in present))
later = [[] for _ in range(1000)]
collected = {id(item) for item in gc.get_objects()}
print(sum(id(item) in collected for item in later), gc.isenabled())
"""

# A worker shares the memory of exempt objects with the process that forks it.
FORK: Final = """
import gc
from unittest import mock
from cyborg_lite import runtime
from cyborg_lite.cmd.runner import daemon

def launch(*arguments, **keywords):
    print(gc.get_freeze_count() > 0)
    return mock.Mock(**{'wait.return_value': 0})

with mock.patch.object(daemon.oslo_service, 'launch', launch):
    daemon._run_workers(None, daemon.Identity('a-daemon', workers=2), None)
"""


def test_exempt_objects_of_start_keeps_collecting_later_objects() -> None:
    process = subprocess.run(
        [sys.executable, '-c', CODE], capture_output=True, text=True, check=True
    )
    assert process.stdout.split() == ['0', '1000', 'True']


def test_run_workers_exempts_objects_before_fork() -> None:
    command = [sys.executable, '-W', 'ignore', '-c', FORK]
    assert subprocess.check_output(command, text=True) == 'True\n'
