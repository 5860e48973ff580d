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


def test_exempt_objects_of_start_keeps_collecting_later_objects() -> None:
    process = subprocess.run(
        [sys.executable, '-c', CODE], capture_output=True, text=True, check=True
    )
    assert process.stdout.split() == ['0', '1000', 'True']
