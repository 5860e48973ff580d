# SPDX-License-Identifier: Apache-2.0
"""The kernel of the sample host: writes to its files have the effects of a real kernel.

The emulation is that of the tests. As on a real host, each change needs a line of the
privileges files, which are those of ``etc/privileges.d``.
"""

import errno
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.host import privileges
from tests.hosts.kernel import FakeKernel
from tests.hosts.nvme_tools import NvmeKernel
from tests.hosts.privileged_process import install_privileges

_BOOT_ID: Final = 'proc/sys/kernel/random/boot_id'
_IMAGES: Final = '/var/lib/cyborg-lite/images'  # in the privileges files
_DRIVES: Final = 'nvme'  # at the start of the names of hosts with drives to erase
# Each virtual function has about 60 files.
_MAX_FUNCTIONS: Final = 16


class SampleKernel:
    """Emulated kernel that prints each change and checks the privileges files."""

    def __init__(self, fixture: str, root: Path, images: Path) -> None:
        """Build the host.

        :param images: image directory of the agent
        """
        kernel = NvmeKernel if fixture.startswith(_DRIVES) else FakeKernel
        self._emulated = kernel(fixture, root, _MAX_FUNCTIONS)
        self._root = root
        self._images = str(images)
        self._prepare_boot()

    def reboot(self) -> None:
        """Clear what a reboot clears, and change the boot id."""
        self._emulated.reboot()
        self._prepare_boot()

    def write(self, root: Path, path: str, text: str) -> None:
        """Write a text to a file of sysfs, as ``Kernel.write``."""
        real_path = os.path.realpath(root / path)
        local = f'/{os.path.relpath(real_path, os.path.realpath(root))}'
        if not self._privileges().allows_write(local, text):
            raise _refuse(privileges.suggest_write(local, text))
        _report('write', local, text)
        try:
            self._emulated.write(root, path, text)
        except OSError as error:
            file = root / path
            # The emulation has no rule for the file, so the file keeps the text.
            if error.errno != errno.EACCES or not file.is_file():
                raise
            file.write_text(f'{text}\n')

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        """Run a vendor tool, as ``Kernel.run``."""
        self._check_tool(f'/{tool}', arguments)
        return self._emulated.run(root, tool, arguments)

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """Run a tool that loads a bitstream, as ``Kernel.load``."""
        tool, *arguments = command
        paths = [text.replace(self._images, _IMAGES) for text in arguments]
        self._check_tool(tool, paths)
        return self._emulated.load(command, seconds)

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        """Return the processes that have a file open, as ``Kernel.holders``."""
        return self._emulated.holders(root, files)

    def _check_tool(self, tool: str, arguments: Sequence[str]) -> None:
        allowed = self._privileges()
        path = tool if '/' in tool else next(allowed.list_tools(tool), tool)
        if not allowed.allows_run(path, arguments):
            raise _refuse(privileges.suggest_run(path, arguments))
        _report('run', path, ' '.join(arguments))

    def _privileges(self) -> privileges.Privileges:
        return privileges.load(str(self._root))

    def _prepare_boot(self) -> None:
        install_privileges(self._root)
        (self._root / _BOOT_ID).write_text(f'{uuid.uuid4()}\n')


def _refuse(line: str) -> PermissionError:
    reason = f'no line of etc/privileges.d allows it; missing: {line}'
    return PermissionError(errno.EACCES, reason)


def _report(action: str, subject: str, text: str) -> None:
    print(f'Sample host: {action} {subject} {text}', flush=True)
