# SPDX-License-Identifier: Apache-2.0
"""The other door to the host: what drivers change, they change through here.

A write into a wedged driver of the kernel never returns and cannot be killed. So each
is made on a thread of its own, and given up after a time.
"""

import errno
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from oslo_config import cfg

from cyborg_lite.exceptions import DeviceBusy, DeviceGone, DeviceHangs, DriverError

T = TypeVar('T')

CHANGE_TIMEOUT: Final = cfg.IntOpt(
    'change_timeout',
    default=30,
    min=1,
    help="""
Seconds that one change to a card may take, such as making a vGPU. A card
that is slower is taken for hung: nothing is done to it until the change has
returned. Raise it for cards with a great many virtual functions.
""",
)

_BUSY: Final = frozenset({errno.EBUSY, errno.EAGAIN, errno.EPERM, errno.ENOSPC})
_GONE: Final = frozenset({errno.ENODEV, errno.ENXIO, errno.ENOENT})


class Kernel(Protocol):
    """What can be done to a host as root. Any of it may never return."""

    def write(self, root: Path, path: str, text: str) -> None:
        """:raises OSError: as the kernel says"""
        ...

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        """Exit status and output of a vendor's tool.

        :raises OSError: it cannot be started
        """
        ...

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """Exit status and output of a tool that loads bitstreams; None: it was killed.

        :raises OSError: it cannot be started, or is no such tool
        """
        ...

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        """The processes that have one of these files open."""
        ...


class PrivilegedKernel:
    """The real one, reached through a process that has the rights."""

    def __init__(self, command: str = '') -> None:
        """:param command: that starts the process; empty: root itself, or sudo"""
        self._command = command

    def write(self, root: Path, path: str, text: str) -> None:
        self._call('write', str(root), path, text)

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        status, output = self._call('run', str(root), tool, list(arguments))
        return status, output

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        status, output = self._call('load', list(command), seconds)
        return status, output

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return list(self._call('holders', str(root), list(files)))

    # Any: what a privileged function takes and returns, by its name.
    def _call(self, name: str, *arguments: object) -> Any:
        # Imported when something is to be changed: to look at a host needs no rights.
        from cyborg_lite.drivers import privileged

        privileged.start(self._command)
        return getattr(privileged, name)(*arguments)


class Writer:
    """Changes to the devices of one driver that end, one way or another, in time.

    A device whose last change has not returned is not touched until it has.
    """

    def __init__(self, root: Path, kernel: Kernel, seconds: float) -> None:
        self._root = root
        self._kernel = kernel
        self._seconds = seconds
        # By address of the device: what was done to it last, and how it ended.
        self._last: dict[str, tuple[str, Future[Any]]] = {}  # Any: of many types

    def check(self, address: str) -> None:
        """:raises DeviceHangs: a change to the device has not returned yet"""
        what, future = self._last.get(address, ('', None))
        if future is not None and not future.done():
            raise DeviceHangs(address=address, what=what, seconds=self._seconds)

    def write(self, address: str, path: str, text: str) -> None:
        """Path is relative to the root of the host; ``address`` is whose it is.

        :raises OSError: as the kernel says
        :raises DeviceHangs: it did not return, or an earlier change has not yet
        """
        self._in_time(
            address,
            f'write to {path.rpartition("/")[2]}',
            lambda: self._kernel.write(self._root, path, text),
        )

    def run(self, address: str, tool: str, *arguments: str) -> tuple[int, str]:
        """Exit status and output.

        :raises OSError: there is no such tool
        :raises DeviceHangs: as for ``write``
        """
        return self._in_time(
            address, tool, lambda: self._kernel.run(self._root, tool, arguments)
        )

    def holders(self, address: str, files: Sequence[str]) -> list[int]:
        """The processes that have one of the files open.

        :raises DeviceHangs: as for ``write``
        """
        return self._in_time(
            address, 'look', lambda: self._kernel.holders(self._root, files)
        )

    def _in_time(self, address: str, what: str, act: Callable[[], T]) -> T:
        self.check(address)
        future: Future[T] = Future()
        self._last[address] = what, future
        # A daemon: the process must be able to end while the kernel does not answer.
        threading.Thread(target=_settle, args=(future, act), daemon=True).start()
        # The outcome is waited for and not the thread: the first of them imports
        # eventlet, by way of oslo.privsep, after which it can no longer be joined.
        wait([future], self._seconds)
        self.check(address)
        return future.result()


def refusal(address: str, what: str, error: OSError) -> DriverError:
    """An errno of the kernel in words of ours."""
    reason = f'{what}: {error.strerror or error}'
    if error.errno in _BUSY:
        return DeviceBusy(address=address, reason=reason)
    if error.errno in _GONE:
        return DeviceGone(address=address)
    return DriverError(reason=f'Device {address}: {reason}.')


def _settle(future: 'Future[T]', act: Callable[[], T]) -> None:
    try:
        future.set_result(act())
    except BaseException as error:  # noqa: BLE001
        # Whatever it is, it belongs to the thread that waits for the outcome.
        future.set_exception(error)
