# SPDX-License-Identifier: Apache-2.0
"""Changes to the host. Drivers change the host through a ``Writer`` only.

A write into a kernel driver that hangs never returns and cannot be killed. Each change
therefore runs in its own thread, and the caller stops waiting after a timeout.
"""

import errno
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from oslo_config import cfg

from cyborg_lite.drivers.kernel_log import LogLine
from cyborg_lite.errors.drivers import (
    DeviceBusy,
    DeviceGone,
    DeviceHangs,
    DriverError,
    ToolMissing,
)

T = TypeVar('T')

CHANGE_TIMEOUT: Final = cfg.IntOpt(
    'change_timeout',
    default=30,
    min=1,
    help="""
Maximum time in seconds for one change to a card, such as creating a vGPU.
After this time the card counts as hung: the agent does not change it again
until the change has returned. Raise it for cards with very many virtual
functions.
""",
)

PCI_DEVICES: Final = 'sys/bus/pci/devices'
_RUN_SECONDS: Final = 600.0  # sriov-manage takes minutes on hosts with many cards
_BUSY: Final = frozenset({errno.EBUSY, errno.EAGAIN, errno.EPERM, errno.ENOSPC})
_GONE: Final = frozenset({errno.ENODEV, errno.ENXIO, errno.ENOENT})


class Kernel(Protocol):
    """Operations on a host that need root. Each call may block forever."""

    def write(self, root: Path, path: str, text: str) -> None:
        """Write a text to a file of sysfs.

        :raises OSError: the kernel refused the write
        """

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        """Run a vendor tool; return its exit status and output.

        :param tool: path relative to the root; a name without directory stands for the
            first installed tool of this name in the list of the operator
        :raises OSError: the tool cannot be started, or was killed after ten minutes
        """

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """Run a tool that loads a bitstream; return its exit status and output.

        :param seconds: time after which the tool is killed
        :returns: the status is None if the tool was killed
        :raises OSError: the tool cannot be started or is not allowed
        """

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        """Return the ids of the processes that have one of the files open.

        :raises OSError: the processes cannot be read
        """


class PrivilegedKernel:
    """Passes each operation to the privileged process."""

    def __init__(self, command: str = '') -> None:
        """Store the command; the process starts at the first operation.

        :param command: starts the process; empty: root starts it, others use sudo
        """
        self._command = command

    def write(self, root: Path, path: str, text: str) -> None:
        # The path is absolute. A process with another root refuses it.
        self._call('write', str(root / path), text)

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        command = [str(root / tool) if '/' in tool else tool, *arguments]
        status, output = self._call('run', command, _RUN_SECONDS)
        if status is None:
            raise TimeoutError(errno.ETIMEDOUT, f'{tool} was killed after a timeout')
        return status, output

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        status, output = self._call('run', list(command), seconds)
        return status, output

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return list(self._call('holders', list(files)))

    def read_log(self, path: str, after: int) -> list[LogLine]:
        """Return lines of the kernel log, as ``kernel_log.read_lines``."""
        return list(self._call('read_log', path, after))

    # Any: arguments and result depend on the privileged function.
    def _call(self, name: str, *arguments: object) -> Any:
        # Imported late: a process that only reads needs no privileges.
        from cyborg_lite.drivers.host import privileged

        privileged.start(self._command)
        return getattr(privileged, name)(*arguments)


class Writer:
    """Changes the devices of one driver, with a timeout per change.

    While a change to a device has not returned, all further changes to this device
    raise DeviceHangs.
    """

    def __init__(self, root: Path, kernel: Kernel, seconds: float) -> None:
        self._root = root
        self._kernel = kernel
        self._seconds = seconds  # timeout of one change
        # The last change by address of the device. Any: results of several types.
        self._last: dict[str, tuple[str, Future[Any]]] = {}

    def check(self, address: str) -> None:
        """Check that the last change to a device has returned.

        :raises DeviceHangs: it has not
        """
        action, future = self._last.get(address, ('', None))
        if future is not None and not future.done():
            raise DeviceHangs(address=address, what=action, seconds=self._seconds)

    def write(self, address: str, path: str, text: str) -> None:
        """Write a text to a file of sysfs.

        :param address: PCI address of the device that the change is counted for
        :param path: relative to the root of the host
        :raises OSError: the kernel refused the write
        :raises DeviceHangs: this write, or an earlier change, has not returned
        """
        self._run_with_timeout(
            address,
            f'write to {path.rpartition("/")[2]}',
            lambda: self._kernel.write(self._root, path, text),
        )

    def set_value(
        self, address: str, name: str, text: str, action: str | None = None
    ) -> None:
        """Write a text to a file of a PCI function.

        :param action: what failed if the kernel refuses; None: the file and the text
        :raises DriverError: the kernel refused the write
        :raises DeviceHangs: as for ``write``
        """
        try:
            self.write(address, f'{PCI_DEVICES}/{address}/{name}', text)
        except OSError as error:
            action = action or f'{name} cannot be set to {text}'
            raise to_driver_error(address, action, error) from None

    def run(self, address: str, tool: str, *arguments: str) -> tuple[int, str]:
        """Run a vendor tool; return its exit status and output.

        :param tool: as for ``Kernel.run``
        :raises ToolMissing: the tool is not installed
        :raises DriverError: the tool cannot be started
        :raises DeviceHangs: as for ``write``
        """
        name = tool.rpartition('/')[2]
        try:
            return self._run_with_timeout(
                address, name, lambda: self._kernel.run(self._root, tool, arguments)
            )
        except FileNotFoundError:
            raise ToolMissing(tool=name) from None
        except OSError as error:
            raise to_driver_error(address, name, error) from None

    def run_or_raise(self, address: str, tool: str, *arguments: str) -> None:
        """Run a vendor tool that must succeed.

        :raises DeviceBusy: the tool refuses
        :raises DriverError: as for ``run``
        """
        status, output = self.run(address, tool, *arguments)
        if status:
            command = ' '.join((tool.rpartition('/')[2], *arguments))
            reason = f'{command} failed: {last_line(output)}'
            raise DeviceBusy(address=address, reason=reason)

    def holders(self, address: str, files: Sequence[str]) -> list[int]:
        """Return the ids of the processes that have one of the files open.

        :raises DriverError: the processes cannot be read
        :raises DeviceHangs: as for ``write``
        """
        action = 'search for open files'
        try:
            return self._run_with_timeout(
                address, action, lambda: self._kernel.holders(self._root, files)
            )
        except OSError as error:
            raise to_driver_error(address, action, error) from None

    def _run_with_timeout(
        self, address: str, action: str, operation: Callable[[], T]
    ) -> T:
        self.check(address)
        future: Future[T] = Future()
        self._last[address] = action, future
        # A daemon thread: the process must be able to exit while the kernel hangs.
        threading.Thread(target=_run, args=(future, operation), daemon=True).start()
        wait([future], self._seconds)
        self.check(address)
        return future.result()


def last_line(output: str) -> str:
    """Return the last line that a tool has printed."""
    return (output.strip().splitlines() or ['no output'])[-1]


def to_driver_error(address: str, action: str, error: OSError) -> DriverError:
    """Translate an errno of the kernel into an error of this package.

    :param action: what failed, as in "sriov_numvfs cannot be set to 4"
    """
    reason = f'{action}: {error.strerror or error}'
    if error.errno in _BUSY:
        return DeviceBusy(address=address, reason=reason)
    if error.errno in _GONE:
        return DeviceGone(address=address)
    return DriverError(reason=f'Device {address}: {reason}.')


def _run(future: 'Future[T]', operation: Callable[[], T]) -> None:
    try:
        future.set_result(operation())
    except BaseException as error:  # noqa: BLE001  # the waiting thread raises it
        future.set_exception(error)
