# SPDX-License-Identifier: Apache-2.0
"""The identity of the agent, and the lock of its state directory.

A host has one agent. The lock refuses a second agent with the same state directory. The
conductor refuses a second agent with the same host name, by its identity.
"""

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from oslo_log import log

from cyborg_lite.agent.state.state_file import StateFile
from cyborg_lite.errors.hosts import ForeignState, StateLocked

LOG = log.getLogger(__name__)

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700


@dataclass(frozen=True, slots=True)
class _Identity:
    uuid: UUID
    inode: int = 0  # of the state directory, which a copy does not share


@dataclass(frozen=True, slots=True)
class _Owner:
    host: str


def load_identity(directory: Path) -> str:
    """Return the identity in ``identity.json``; create it at the first start.

    A copy of the directory on the same host gets an identity of its own. The conductor
    then tells the agents apart.

    :param directory: of the state of the agent
    """
    inode = 0
    with suppress(OSError):
        directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        inode = directory.stat().st_ino
    file = StateFile(directory / 'identity.json', _Identity)
    identity = file.read()
    if identity is None or identity.inode != inode:
        identity = _Identity(uuid4(), inode)
        file.write(identity)
    return str(identity.uuid)


def check_host(directory: Path, hostname: str) -> None:
    """Check that the state is of this host; record the host at the first start.

    A copied state directory would make the agent rebuild the devices of another host.

    :param directory: of the state of the agent
    :raises ForeignState: the state is of another host
    """
    file = StateFile(directory / 'host.json', _Owner)
    recorded = file.read()
    if recorded is None:
        file.write(_Owner(hostname))
    elif recorded.host != hostname:
        raise ForeignState(path=directory, other=recorded.host, host=hostname)


class StateLock:
    """A lock that one process at a time has; it ends with its process.

    The lock is not inherited: the privileged process, which may outlive a killed agent,
    does not have it.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / 'agent.lock'
        self._descriptor: int | None = None  # None: not locked

    def acquire(self) -> None:
        """Take the lock. If the file cannot be opened, log it and go on.

        :raises StateLocked: another process has the lock
        """
        try:
            self._path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, _FLAGS, _FILE_MODE)
        except OSError as error:
            LOG.warning('Cannot lock the state directory: %s', error)
            return
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            raise StateLocked(path=self._path.parent) from None

    def release(self) -> None:
        """Release the lock; do nothing without one."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
