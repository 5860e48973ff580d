# SPDX-License-Identifier: Apache-2.0
"""Becomes a program that ends with its parent: ``mortal.py PROGRAM ARGUMENT...``.

The kernel takes the thread that started it for the parent (prctl(2), PR_SET_PDEATHSIG):
one that outlives the program must do it.

Done by a process of its own and not between fork and exec of the parent, where a
program with threads may do next to nothing.
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
