# SPDX-License-Identifier: Apache-2.0
"""Privileged process of a host with an emulated kernel.

Checks and writes are those of the product. The directory that replaces the root of the
host comes from the environment of the start command. The emulated kernel then receives
each write.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from oslo_privsep.daemon import helper_main

from cyborg_lite.drivers.host import privileged, privileges
from cyborg_lite.drivers.host.kernel import PrivilegedKernel
from tests.hosts.kernel_service import build_forwarder

ROOT: Final = 'CYBORG_LITE_TEST_ROOT'
PRIVILEGES: Final = Path(__file__).parents[2] / 'etc/privileges.d'


def install_privileges(root: Path) -> None:
    """Copy the privileges files of the repository to a host."""
    directory = root / privileges.DIRECTORY
    shutil.copytree(PRIVILEGES, directory, dirs_exist_ok=True)
    for path in (directory, *directory.parents):
        if path.is_relative_to(root):
            path.chmod(0o755)
    for file in directory.iterdir():
        file.chmod(0o644)


# Any: arguments and results have various types.
def _wrap_function(name: str, act: Callable[..., Any]) -> None:
    """Replace an entry point of the process."""
    # oslo.privsep looks the function up under its module and name.
    act.__module__, act.__name__ = privileged.__name__, name
    setattr(privileged, name, privileged.CONTEXT.entrypoint(act))


def _emulate(root: Path) -> None:
    """Let the emulated kernel receive each write and run each tool."""
    write, run = privileged.write, privileged.run

    def write_file(path: str, text: str) -> None:
        file = Path(path)
        before = file.read_text() if file.is_file() else ''
        write(path, text)
        # The kernel decides about the new content.
        file.write_text(before)
        relative = os.path.relpath(path, root)
        build_forwarder('write')(PrivilegedKernel(), root, relative, text)

    def run_tool(command: Sequence[str], seconds: float) -> Any:
        status, output = run(command, seconds)
        if status != 0:
            return status, output
        tool, *arguments = command
        relative = os.path.relpath(tool, root)
        return build_forwarder('run')(PrivilegedKernel(), root, relative, arguments)

    _wrap_function('write', write_file)
    _wrap_function('run', run_tool)


if __name__ == '__main__':
    privileged.set_root(os.environ[ROOT])
    _emulate(Path(os.environ[ROOT]))
    helper_main()
