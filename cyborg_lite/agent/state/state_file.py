# SPDX-License-Identifier: Apache-2.0
"""A JSON file that survives crashes of the agent and of the host.

A reader finds either the new content or the old content, never a part of it. A damaged
file is renamed and kept for the operator, and the agent starts without it.
"""

import os
import time
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from oslo_log import log

from cyborg_lite import codec
from cyborg_lite.errors.daemons import MalformedData

LOG = log.getLogger(__name__)

T = TypeVar('T')

_VERSION: Final = 'v'
_CONTENT: Final = 'content'
_SUPPORTED: Final = 1
_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700


class StateFile(Generic[T]):
    """A JSON file. The owner must serialize writes from several threads."""

    def __init__(self, path: Path, kind: type[T], *, read_only: bool = False) -> None:
        # Never rename a damaged file, which another process owns.
        self._read_only = read_only
        self._path = path
        self._kind = kind  # class of the content
        self._write_error = ''

    def read(self) -> T | None:
        """Return the content, or None if the file is missing or damaged."""
        try:
            # Any: JSON that was read from a file.
            document = codec.decode(dict[str, Any], self._path.read_bytes())
            if document.get(_VERSION) != _SUPPORTED:
                raise MalformedData(reason=f'version {document.get(_VERSION)}')
            return codec.load(self._kind, document.get(_CONTENT))
        except FileNotFoundError:
            return None
        except OSError as error:
            LOG.warning('Cannot read %s: %s', self._path, error)
        except MalformedData as error:
            # A damaged file must not prevent the start of the agent.
            self._rename_damaged(error.text)
        return None

    def write(self, content: T) -> bool:
        """Write the content and flush it to disk. Return False if that fails.

        A failure is logged when it begins and when it ends.
        """
        new_file = self._path.with_name(f'{self._path.name}.part')
        try:
            text = codec.encode({_VERSION: _SUPPORTED, _CONTENT: content})
            self._path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
            with open(new_file, 'wb', opener=_opener) as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new_file, self._path)
            _sync_directory(self._path.parent)
        except (OSError, MalformedData) as error:
            self._log_write_error(str(error))
            return False
        if self._write_error:
            LOG.info('%s can be written again', self._path)
        self._write_error = ''
        return True

    def _log_write_error(self, error: str) -> None:
        if error != self._write_error:
            LOG.error(
                'Cannot save %s, its content is lost at the next restart: %s',
                self._path,
                error,
            )
        self._write_error = error

    def _rename_damaged(self, reason: str) -> None:
        if self._read_only:
            LOG.warning('Cannot parse %s: %s', self._path, reason)
            return
        timestamp = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
        renamed = self._path.with_name(f'{self._path.name}.damaged-{timestamp}')
        try:
            os.replace(self._path, renamed)
        except OSError as rename_error:
            LOG.warning(
                '%s is damaged and cannot be renamed: %s', self._path, rename_error
            )
            return
        LOG.warning(
            '%s is damaged (%s). It was renamed to %s, and the agent starts without it',
            self._path,
            reason,
            renamed,
        )


def _opener(path: str, flags: int) -> int:
    # A process that crashed may have left a file with this name. Never follow a link.
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, _FILE_MODE)


def _sync_directory(directory: Path) -> None:
    """Flush a directory, so that the rename survives a power failure as well."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
