# SPDX-License-Identifier: Apache-2.0
"""Writes files and links below a root directory, as the kernel shows them."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

_PLACE = re.compile(r'\{([0-9a-f:.]+)\}')


class Tree:
    """Directory tree. Paths are relative to its root; parents are created.

    A PCI address in braces stands for the directory of the function.
    """

    def __init__(self, root: Path, functions: Mapping[str, str]) -> None:
        self._root = root
        self._functions = functions

    def place(self, path: str) -> str:
        """Return the path with all addresses replaced.

        :raises KeyError: the host does not have the function
        """
        return _PLACE.sub(lambda match: self._functions[match[1]], path)

    def directory(self, path: str) -> None:
        (self._root / self.place(path)).mkdir(parents=True, exist_ok=True)

    def file(self, path: str, text: str | bytes, mode: str | None = None) -> None:
        """Write a file. Text that is not empty gets a final newline."""
        if isinstance(text, str):
            text = (text if not text or text.endswith('\n') else f'{text}\n').encode()
        target = f'{self._root}/{self.place(path)}'
        try:
            file = _open(target)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            file = _open(target)
        except PermissionError:  # a second build overwrites read-only files
            os.chmod(target, 0o600)
            file = _open(target)
        try:
            if text:
                os.write(file, text)
            os.fchmod(file, int(mode or '0644', 8))
        finally:
            os.close(file)

    def has_file(self, path: str) -> bool:
        """Check whether the tree contains a file."""
        return os.path.isfile(f'{self._root}/{self.place(path)}')

    def link(self, path: str, target: str) -> None:
        """Create a relative link, so that the tree can be moved."""
        path, target = self.place(path), self.place(target)
        relative_target = os.path.relpath(target, os.path.dirname(path))
        link_path = f'{self._root}/{path}'
        try:
            os.symlink(relative_target, link_path)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(link_path), exist_ok=True)
            os.symlink(relative_target, link_path)
        except FileExistsError:
            os.unlink(link_path)
            os.symlink(relative_target, link_path)


def _open(path: str) -> int:
    """Open an empty file. Without checks, because a host has thousands of files."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
