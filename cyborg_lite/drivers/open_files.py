# SPDX-License-Identifier: Apache-2.0
"""Which processes have a file open."""

import os
import re
from collections.abc import Sequence


def processes_with(root: str, files: Sequence[str]) -> list[int]:
    """Numbers of the processes that have one of the files open.

    Only root sees the files of others.
    """
    wanted = frozenset(files)
    processes = os.path.join(root, 'proc')
    numbers = [name for name in _names(processes) if re.fullmatch(r'\d+', name)]
    return sorted(
        int(number)
        for number in numbers
        if wanted & _open_files(os.path.join(processes, number, 'fd'))
    )


def _open_files(directory: str) -> set[str]:
    found = set()
    for name in _names(directory):
        try:
            found.add(os.readlink(os.path.join(directory, name)))
        except OSError:
            continue  # closed meanwhile
    return found


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []  # the process has ended
