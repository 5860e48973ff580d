# SPDX-License-Identifier: Apache-2.0
"""One file of the agent's own that survives crashes of it and of the host.

A reader finds what was written last or what was written before, never a part of it.
A file that cannot be understood is set aside for the operator: the agent starts.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from oslo_log import log

from cyborg_lite.exceptions import CyborgError

LOG = log.getLogger(__name__)

T = TypeVar('T')

_VERSION: Final = 'v'
_CONTENT: Final = 'content'
_ONLY_OURS: Final = 0o600
_OUR_DIRECTORY: Final = 0o700
_DAMAGES: Final = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,  # of JSON that is nested too deep
    CyborgError,
)


class StateFile:
    """Whoever has it keeps threads from writing it at once."""

    def __init__(self, path: Path, version: int, *, read_only: bool = False) -> None:
        """:param version: of the form of the content; others are not understood
        :param read_only: it is another process's, and stays as it is
        """
        self._read_only = read_only
        self._path = path
        self._version = version
        self._trouble = ''

    def read(self, understand: Callable[[Any], T]) -> T | None:
        """What ``understand`` makes of the content, which is JSON of any type.

        None: there is none, or none that can be understood.
        """
        try:
            said = json.loads(self._path.read_bytes())
            if said[_VERSION] != self._version:
                raise ValueError(f'version {said[_VERSION]}')
            return understand(said[_CONTENT])
        except FileNotFoundError:
            return None
        except OSError as error:
            LOG.warning('%s cannot be read: %s', self._path, error)
        except _DAMAGES as error:
            # Whatever a damaged file says must not keep the host off the air.
            self._set_aside(error)
        return None

    def write(self, content: Any) -> bool:
        """Keep it, on the disk itself. False: it cannot be, as the log says.

        :param content: anything that JSON can hold
        """
        part = self._path.with_name(f'{self._path.name}.part')
        text = json.dumps({_VERSION: self._version, _CONTENT: content})
        try:
            self._path.parent.mkdir(mode=_OUR_DIRECTORY, parents=True, exist_ok=True)
            with open(part, 'w', opener=_opener) as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self._path)
            _sync_directory(self._path.parent)
        except OSError as error:
            self._complain(str(error))
            return False
        if self._trouble:
            LOG.info('%s can be written again.', self._path)
        self._trouble = ''
        return True

    def _complain(self, trouble: str) -> None:
        if trouble != self._trouble:
            LOG.error('%s is not kept over a restart: %s', self._path, trouble)
        self._trouble = trouble

    def _set_aside(self, error: Exception) -> None:
        if self._read_only:
            LOG.warning('%s is not understood: %s', self._path, error)
            return
        moment = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
        aside = self._path.with_name(f'{self._path.name}.damaged-{moment}')
        try:
            os.replace(self._path, aside)
        except OSError as trouble:
            LOG.warning('%s is damaged and stays: %s', self._path, trouble)
            return
        LOG.warning(
            '%s is damaged (%s); it lies in %s now, and the agent goes on without.',
            self._path,
            f'{type(error).__name__}: {error}',
            aside,
        )


def _opener(path: str, flags: int) -> int:
    # What is there under that name was left by a process that died.
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, _ONLY_OURS)


def _sync_directory(directory: Path) -> None:
    """So that the name leads to the new content after a power failure, too."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
