# SPDX-License-Identifier: Apache-2.0
"""The few things that need root, done by a process of their own.

oslo.privsep starts that process when it is first needed. It does what stands here and
nothing else: whoever takes over the agent cannot have it write a file of his choice.
"""

import errno
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Final

from oslo_config import cfg
from oslo_privsep import capabilities, priv_context
from oslo_privsep.daemon import FailedToDropPrivileges

from cyborg_lite.drivers import open_files

_ADDRESS: Final = r'[0-9a-f]{4,}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]'
_UUID: Final = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
_WRITABLE: Final = re.compile(
    rf'sys/bus/pci/devices/{_ADDRESS}/'
    r'(sriov_numvfs|sriov_drivers_autoprobe|nvidia/current_vgpu_type'
    r'|mdev_supported_types/\w[\w.-]*/create)'
    rf'|sys/bus/mdev/devices/{_UUID}/remove'
)
_LONGEST_TEXT: Final = 64  # characters: a uuid is the longest thing that is written

# Where the vendors' packages put their tools, below the root of the host.
TOOLS: Final = {'sriov-manage': 'usr/lib/nvidia/sriov-manage'}
_ARGUMENT: Final = re.compile(r'[\w:.-]{1,64}')
_LONGEST_OUTPUT: Final = 4096  # characters that are kept of what a tool prints

# Those that load bitstreams, wherever they are.
_LOADING: Final = frozenset({'fpgaconf', 'xbmgmt', 'xbutil', 'xrt-smi'})
_LOADING_ARGUMENT: Final = re.compile(r'[\w:./-]{1,512}')
# This one writes the flash of cards, too; it may load the shell of a running one.
_FLASHING: Final = 'xbmgmt'
_LOADS_A_SHELL: Final = re.compile(r'program --device \S+ --shell \S+')
# Nothing of the daemon's own environment, which may hold what is secret.
_ENVIRONMENT: Final = {
    'PATH': '/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin',
    'LC_ALL': 'C',
}
_MOUNTS: Final = '/proc/self/mountinfo'

_SECTION: Final = 'cyborg_lite_privileged'

# Writing to sysfs, looking at the open files of others, and what sriov-manage does
# when it binds functions to drivers.
CONTEXT: Final = priv_context.PrivContext(
    'cyborg_lite.drivers',
    cfg_section=_SECTION,
    pypath=f'{__name__}.CONTEXT',
    capabilities=[
        capabilities.CAP_DAC_OVERRIDE,
        capabilities.CAP_SYS_ADMIN,
        capabilities.CAP_SYS_PTRACE,
    ],
)

# A write that hangs keeps its thread: one such card must not stop the others. Said
# here, because the other process imports this module too.
cfg.CONF.set_default('thread_pool_size', 64, group=_SECTION)


_HELPER: Final = 'privsep-helper'
_starting: Final = threading.Lock()


def start(command: str = '') -> None:
    """See to it that the other process runs.

    :param command: that starts it, with nothing after it but what the library adds;
        empty: as root we start it ourselves, as anybody else by sudo
    :raises PermissionError: it does not start
    """
    with _starting:
        if not CONTEXT.client_mode or _runs():
            return
        cfg.CONF.set_default('helper_command', command or _usual(), group=_SECTION)
        CONTEXT.channel = None  # of a process that has died
        try:
            CONTEXT.start()
        except (FailedToDropPrivileges, OSError) as error:
            # Whatever it is, it says nothing of the device.
            reason = f'the privileged process does not start: {error}'
            raise PermissionError(errno.EPERM, reason) from None


def _runs() -> bool:
    return CONTEXT.channel is not None and CONTEXT.channel.running


def _usual() -> str:
    if os.geteuid() == 0:
        start = 'from oslo_privsep.daemon import helper_main; helper_main()'
        return f'{sys.executable} -c "{start}"'
    here = os.path.join(os.path.dirname(sys.executable), _HELPER)
    # Never asks for a password: nobody is there to give it.
    return f'sudo -n {here if os.path.exists(here) else _HELPER}'


@CONTEXT.entrypoint
def write(root: str, path: str, text: str) -> None:
    """:raises OSError: the kernel refuses, or this is no file that we write to"""
    where = os.path.realpath(os.path.join(root, path))
    if not (_WRITABLE.fullmatch(path) and len(text) <= _LONGEST_TEXT):
        raise PermissionError(1, 'not a file that a driver may write to')
    if os.stat(where).st_dev not in _sysfs_devices():
        raise PermissionError(1, 'not a file of the kernel')
    # Without O_CREAT: a file that has gone must not come back as an ordinary one.
    file = os.open(where, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


@CONTEXT.entrypoint
def run(root: str, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
    """The exit status of a vendor's tool, and what it printed.

    :raises OSError: there is no such tool here
    """
    if not all(_ARGUMENT.fullmatch(argument) for argument in arguments):
        raise PermissionError(1, 'not an argument of a tool')
    command = [os.path.join(root, TOOLS[tool]), *arguments]
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return ended.returncode, ended.stdout.decode(errors='replace')[-_LONGEST_OUTPUT:]


@CONTEXT.entrypoint
def load(command: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """As ``execute``, for the tools that load bitstreams and nothing else.

    :raises OSError: there is no such program
    :raises PermissionError: it is another program, or an argument is odd
    """
    tool, *arguments = command
    if os.path.basename(tool) not in _LOADING:
        raise PermissionError(1, 'not a tool that loads bitstreams')
    if not all(_LOADING_ARGUMENT.fullmatch(argument) for argument in arguments):
        raise PermissionError(1, 'not an argument of a tool')
    asked = ' '.join(arguments)
    if os.path.basename(tool) == _FLASHING and not _LOADS_A_SHELL.fullmatch(asked):
        raise PermissionError(1, 'it would do more than load a shell')
    return execute(command, seconds)


def execute(command: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """The exit status and what was said; None: the whole family had to be killed.

    :raises OSError: there is no such program
    """
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_ENVIRONMENT,
        start_new_session=True,  # for what it starts itself goes with it
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        # Not waited for: one that hangs inside of the kernel does not die of it.
        return None, ''
    return process.returncode, output.decode(errors='replace')[-_LONGEST_OUTPUT:]


@CONTEXT.entrypoint
def holders(root: str, files: Sequence[str]) -> list[int]:
    """The processes that have one of these device files open."""
    return open_files.processes_with(root, files)


def _sysfs_devices() -> frozenset[int]:
    """The numbers of the file systems that are sysfs, wherever they are mounted."""
    found = set()
    with open(_MOUNTS) as mounts:
        for line in mounts:
            fields, _, rest = line.partition(' - ')
            if rest.startswith('sysfs '):
                major, minor = fields.split()[2].split(':')
                found.add(os.makedev(int(major), int(minor)))
    return frozenset(found)
