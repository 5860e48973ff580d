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
        target = self._root / self.place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_file():
            target.chmod(0o600)  # a second build overwrites read-only files
        target.write_bytes(text)
        target.chmod(int(mode or '0644', 8))

    def link(self, path: str, target: str) -> None:
        """Create a relative link, so that the tree can be moved."""
        path, target = self.place(path), self.place(target)
        link_path = self._root / path
        link_path.parent.mkdir(parents=True, exist_ok=True)
        if link_path.is_symlink():
            link_path.unlink()
        link_path.symlink_to(os.path.relpath(target, Path(path).parent))
