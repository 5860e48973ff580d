# SPDX-License-Identifier: Apache-2.0
"""The configuration files of nova-compute on this host, read again after changes."""

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from oslo_log import log

from cyborg_lite.model.ownership import nova_config
from cyborg_lite.model.ownership.nova_config import NovaConfig

LOG = log.getLogger(__name__)

FileState: TypeAlias = tuple[Path, int, int]
"""Path, modification time in nanoseconds and size."""


class NovaFiles:
    """Reads the files of Nova."""

    def __init__(self, names: Sequence[str], optional: Collection[str] = ()) -> None:
        self._names = names  # files, and directories whose ``*.conf`` files are read
        # optional: names that may be missing without a warning.
        self._optional = frozenset(optional)
        self._config = NovaConfig()
        self._state: tuple[FileState, ...] | None = None  # None: not read yet
        self._is_complete = True

    @property
    def is_known(self) -> bool:
        """Check whether there are files, and all of them could be read."""
        return bool(self._list_files()) and self._is_complete

    def load(self) -> NovaConfig:
        """Return the configuration; it is empty if there are no files."""
        files = self._list_files()
        state = tuple(map(read_file_state, files))
        if state != self._state:
            self._state = state
            self._is_complete = True
            self._config = nova_config.parse_nova_config(map(self._read_text, files))
            for mistake in self._config.mistakes:
                LOG.warning('Ignoring invalid entry in nova.conf: %s', mistake)
        return self._config

    def _list_files(self) -> list[Path]:
        return [path for name in self._names for path in self._expand(name)]

    def _expand(self, name: str) -> Iterator[Path]:
        path = Path(name)
        # A directory that this process may not search counts as an unreadable file.
        if os.path.isdir(path) and os.access(path, os.X_OK):
            yield from sorted(path.glob('*.conf'))
        elif name not in self._optional or not _is_missing(path):
            yield path

    def _read_text(self, path: Path) -> str:
        try:
            return path.read_text(errors='replace')
        except OSError as error:
            self._is_complete = False
            LOG.warning(
                'Cannot read a configuration file of Nova; devices that Nova uses may '
                'be offered. Add the user of the agent to the group of the file: %s',
                error,
            )
            return ''


def _is_missing(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def read_file_state(path: Path) -> FileState:
    """Return the state of a file, with zeros if it cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return path, 0, 0
    return path, status.st_mtime_ns, status.st_size
