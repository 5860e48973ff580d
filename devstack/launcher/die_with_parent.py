# SPDX-License-Identifier: Apache-2.0
"""Execute a program that the kernel terminates when its parent exits.

Usage: ``die_with_parent.py PROGRAM ARGUMENT...``

For the kernel, the parent is the thread that started this process (prctl(2),
PR_SET_PDEATHSIG). That thread must live longer than the program.

A process of its own does this, because a program with threads may call almost no
function between fork and exec.
"""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1

if __name__ == '__main__':
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() == parent:
        os.execvp(sys.argv[1], sys.argv[1:])
