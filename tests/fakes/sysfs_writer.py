# SPDX-License-Identifier: Apache-2.0
"""Writes files and links below a root, as the kernel would show them."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

_PLACE = re.compile(r'\{([0-9a-f:.]+)\}')


class Tree:
    """All paths are relative to the root; parents are made as needed.

    A PCI address in braces stands for the directory of that function.
    """

    def __init__(self, root: Path, functions: Mapping[str, str]) -> None:
        self._root = root
        self._functions = functions

    def place(self, path: str) -> str:
        """The path with all addresses replaced.

        :raises KeyError: the host has no such function
        """
        return _PLACE.sub(lambda match: self._functions[match[1]], path)

    def directory(self, path: str) -> None:
        (self._root / self.place(path)).mkdir(parents=True, exist_ok=True)

    def file(self, path: str, text: str | bytes, mode: str | None = None) -> None:
        """Text gets the newline that the kernel ends it with; nothing stays nothing."""
        if isinstance(text, str):
            text = (text if not text or text.endswith('\n') else f'{text}\n').encode()
        target = self._root / self.place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_file():
            target.chmod(0o600)  # a second build overwrites what is read-only
        target.write_bytes(text)
        target.chmod(int(mode or '0644', 8))

    def link(self, path: str, target: str) -> None:
        """A link relative to where it stands, so that the tree can be moved."""
        path, target = self.place(path), self.place(target)
        where = self._root / path
        where.parent.mkdir(parents=True, exist_ok=True)
        if where.is_symlink():
            where.unlink()
        where.symlink_to(os.path.relpath(target, Path(path).parent))
