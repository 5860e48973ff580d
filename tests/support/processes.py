# SPDX-License-Identifier: Apache-2.0
"""Processes of the host, by their ids."""

import os
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return False if a process has ended, whether or not its parent knows."""
    try:
        os.kill(pid, 0)
        state = Path(f'/proc/{pid}/stat').read_text(encoding='utf-8').rpartition(')')[2]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state.split()[0] != 'Z'
