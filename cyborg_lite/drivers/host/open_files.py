# SPDX-License-Identifier: Apache-2.0
"""Search for the processes that have a file open."""

import os
import re
from collections.abc import Sequence


def find_processes(root: str, files: Sequence[str]) -> list[int]:
    """Return the ids of the processes that have one of the files open.

    Without root only the files of processes of the same user are visible.
    """
    searched = frozenset(files)
    processes = os.path.join(root, 'proc')
    numbers = [name for name in _list_names(processes) if re.fullmatch(r'\d+', name)]
    return sorted(
        int(number)
        for number in numbers
        if searched & _list_open_files(os.path.join(processes, number, 'fd'))
    )


def _list_open_files(directory: str) -> set[str]:
    files = set()
    for name in _list_names(directory):
        try:
            files.add(os.readlink(os.path.join(directory, name)))
        except OSError:
            continue  # the process has closed the file
    return files


def _list_names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []  # the process has ended
