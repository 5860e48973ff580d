# SPDX-License-Identifier: Apache-2.0
"""The operations that need root, run by a separate privileged process.

oslo.privsep starts this process when it is first needed. The process runs the entry
points of this module only. Each one asks the list of the operator, which only root can
change (``privileges``). An attacker who controls the agent cannot choose another file,
value, tool, argument or root directory.
"""

import contextlib
import errno
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Final

from oslo_config import cfg
from oslo_log import log
from oslo_privsep import capabilities, priv_context
from oslo_privsep.daemon import FailedToDropPrivileges

from cyborg_lite.drivers import erase_guard, kernel_log
from cyborg_lite.drivers.host import privileges

LOG = log.getLogger(__name__)

_SYSFS: Final = '/sys'  # below the root of the host
_MAX_PATH: Final = 4096  # characters, as PATH_MAX of the kernel
_MAX_TEXT_LENGTH: Final = 64  # characters; the longest text is a uuid
_ARGUMENT: Final = re.compile(r'[\w:./=-]{1,512}', re.ASCII)
_MAX_ARGUMENTS: Final = 16
_MAX_SECONDS: Final = 86_400.0  # an erase of a drive takes hours
_MAX_OUTPUT: Final = 16_384  # characters of the output, counted from its end
_MAX_FILES: Final = 4096  # device files of one search
# The environment of the daemon may contain secrets, so tools do not inherit it.
_ENVIRONMENT: Final = {
    'PATH': '/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin',
    'LC_ALL': 'C',
}
_MOUNTS: Final = '/proc/self/mountinfo'
_PID_NAMESPACE: Final = '/proc/self/ns/pid'
_HOST_PIDS: Final = 'pid:[4026531836]'  # kernel: PROC_PID_INIT_INO

_SECTION: Final = 'cyborg_lite_privileged'

# Capabilities to write to sysfs, to read the open files of other processes, to bind
# functions to drivers, as sriov-manage does, and to read the kernel log.
CONTEXT: Final = priv_context.PrivContext(
    'cyborg_lite.drivers',
    cfg_section=_SECTION,
    pypath=f'{__name__}.CONTEXT',
    capabilities=[
        capabilities.CAP_DAC_OVERRIDE,
        capabilities.CAP_SYS_ADMIN,
        capabilities.CAP_SYS_PTRACE,
        capabilities.CAP_SYSLOG,
    ],
)

# A write that hangs keeps its thread, and must not block changes to other cards. The
# default is set here because the privileged process imports this module, too.
cfg.CONF.set_default('thread_pool_size', 64, group=_SECTION)


_HELPER: Final = 'privsep-helper'
_starting: Final = threading.Lock()


def start(command: str = '') -> None:
    """Start the privileged process, unless it runs.

    :param command: starts the process; oslo.privsep appends its arguments. Empty: root
        starts the process directly, other users through sudo
    :raises PermissionError: the process does not start
    """
    with _starting:
        channel = CONTEXT.channel
        if not CONTEXT.client_mode or (channel is not None and channel.running):
            return
        cfg.CONF.set_default(
            'helper_command', command or _default_command(), group=_SECTION
        )
        CONTEXT.channel = None  # drop the channel of an exited process
        try:
            CONTEXT.start()
        except (FailedToDropPrivileges, OSError) as error:
            # The error does not concern the device that was to be changed.
            reason = f'the privileged process does not start: {error}'
            raise PermissionError(errno.EPERM, reason) from None


def _default_command() -> str:
    if os.geteuid() == 0:
        start = 'from oslo_privsep.daemon import helper_main; helper_main()'
        return f'{sys.executable} -c "{start}"'
    helper = os.path.join(os.path.dirname(sys.executable), _HELPER)
    # -n: sudo must fail instead of asking a daemon for a password.
    return f'sudo -n {helper if os.path.exists(helper) else _HELPER}'


_root = '/'


def set_root(root: str) -> None:
    """Set the directory that contains the files of the host.

    Only the command that starts the privileged process can call this function. The
    agent cannot: it is not an entry point.
    """
    global _root
    _root = os.path.realpath(root)


@CONTEXT.entrypoint
def write(path: str, text: str) -> None:
    """Write a text to a file of sysfs.

    :param path: absolute; links in it are followed
    :raises OSError: the kernel refused the write
    :raises PermissionError: the list of the operator does not allow the write
    """
    if len(path) > _MAX_PATH or len(text) > _MAX_TEXT_LENGTH:
        raise _refuse('the path or the text is too long')
    if not path.startswith('/') or '\0' in path:
        raise _refuse(f'{path!r} is not an absolute path')
    # Only the real path counts: a link may lead to any file.
    location = os.path.realpath(path, strict=True)
    if not privileges.is_below(location, _localize(_SYSFS)):
        raise _refuse(f'{location!r} is not a file of sysfs')
    local = location.removeprefix(_root.rstrip('/'))
    if not privileges.load(_root).allows_write(local, text):
        raise _refuse_missing(privileges.suggest_write(local, text))
    file = _open_without_links(location)
    try:
        _check_opened(file, location)
        os.write(file, text.encode())
    finally:
        os.close(file)


@CONTEXT.entrypoint
def run(command: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """Run a vendor tool, as ``execute``.

    :param command: the tool by its absolute path, or by the base name of a tool of the
        list, and its arguments
    :raises OSError: there is no such program
    :raises PermissionError: the list of the operator does not allow the command
    """
    tool, *arguments = command
    if len(arguments) > _MAX_ARGUMENTS:
        raise _refuse('too many arguments')
    for argument in arguments:
        if not _ARGUMENT.fullmatch(argument) or '..' in argument.split('/'):
            raise _refuse(f'argument {argument[:80]!r} not allowed')
    allowed = privileges.load(_root)
    local = _find_tool(tool, allowed)
    if not allowed.allows_run(local, arguments):
        raise _refuse_missing(privileges.suggest_run(local, arguments))
    location = _localize(local)
    os.stat(location)  # a tool that is not installed has no owner
    try:
        privileges.check_owner(location, _root)
    except PermissionError as error:
        raise _refuse(str(error)) from None
    _check_data(local, arguments)
    # Neither infinity nor a value that is not a number ends a tool.
    limit = seconds if 0 < seconds < _MAX_SECONDS else _MAX_SECONDS
    return execute([location, *arguments], limit)


def _check_data(tool: str, arguments: Sequence[str]) -> None:
    """Check that a tool destroys no data that the host uses.

    :raises PermissionError: it would, or what uses the drive cannot be read
    """
    if not erase_guard.destroys_data(tool, arguments):
        return
    _check_namespace()  # else mounts may be missing
    try:
        obstacle = erase_guard.find_obstacle(_root, arguments)
    except OSError as error:
        obstacle = f'what uses the drive cannot be read: {error}'
    if obstacle is not None:
        raise _refuse(obstacle)


def _find_tool(tool: str, allowed: privileges.Privileges) -> str:
    """Return the path of a tool below the root of the host.

    A base name stands for the first tool of the list with this name that is installed.
    The process searches no PATH.

    :raises PermissionError: the path is relative, or outside of the root
    """
    if len(tool) > _MAX_PATH or '\0' in tool:
        raise _refuse('the path of the tool is invalid')
    if '/' not in tool:
        paths = list(allowed.list_tools(tool))
        installed = [path for path in paths if os.path.exists(_localize(path))]
        if not paths:
            raise _refuse_missing(f'run /PATH/OF/{tool} ARGUMENTS')
        return (installed or paths)[0]
    prefix = _root.rstrip('/')
    if os.path.normpath(tool) != tool or not tool.startswith(f'{prefix}/'):
        raise _refuse(f'{tool[:80]!r} is not the absolute path of a tool')
    return tool.removeprefix(prefix)


def _localize(path: str) -> str:
    """Return where a file of the host is."""
    return _root.rstrip('/') + path


def _refuse(reason: str) -> PermissionError:
    """Log that the process refuses a request, and return the error."""
    LOG.warning('The privileged process refuses a request: %s', reason)
    # Not EPERM, which drivers of the kernel return while a device is in use.
    return PermissionError(errno.EACCES, f'the privileged process refuses: {reason}')


def _refuse_missing(line: str) -> PermissionError:
    directory = _localize(f'/{privileges.DIRECTORY}')
    printable = ''.join(char for char in line[:300] if char.isprintable())
    return _refuse(f'no line of {directory} allows it; missing: {printable}')


def _open_without_links(location: str) -> int:
    """Open a file for writing; a link anywhere in the path raises an error.

    A link that replaces a directory after its path was resolved has no effect.

    :raises OSError: there is no such file, or the path contains a link
    """
    *directories, name = location.strip('/').split('/')
    # No O_CREAT: a file that has vanished must not be created as a regular file.
    # O_NONBLOCK: nobody may read a FIFO in place of the file.
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    directory_flags = flags | os.O_PATH | os.O_DIRECTORY
    current = os.open('/', directory_flags)
    try:
        for directory in directories:
            below = os.open(directory, directory_flags, dir_fd=current)
            os.close(current)
            current = below
        return os.open(name, flags | os.O_WRONLY | os.O_NONBLOCK, dir_fd=current)
    finally:
        os.close(current)


def _check_opened(file: int, location: str) -> None:
    """Check that an open file is the checked one, and a file of sysfs.

    :raises PermissionError: it is another file
    """
    status = os.fstat(file)
    if os.readlink(f'/proc/self/fd/{file}') != location:
        raise _refuse(f'{location!r} was exchanged')
    # sysfs has no hard links. In another file system one could lead to any file.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        raise _refuse(f'{location!r} is not a plain file')
    if status.st_dev not in _list_devices():
        raise _refuse(f'{location!r} is not a file of sysfs')


def execute(command: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """Run a command; return its exit status and the end of its output.

    :param seconds: time after which the command and its child processes are killed
    :returns: the status is None if the command was killed
    :raises OSError: there is no such program
    """
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_ENVIRONMENT,
        cwd='/',
        umask=0o022,
        start_new_session=True,  # so that its child processes can be killed, too
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        # Do not wait: a process that hangs inside the kernel ignores the signal.
        assert process.stdout is not None
        process.stdout.close()
        return None, ''
    return process.returncode, output.decode(errors='replace')[-_MAX_OUTPUT:]


@CONTEXT.entrypoint
def read_log(path: str, after: int) -> list[kernel_log.LogLine]:
    """Return the lines of the kernel log that name a PCI function.

    :raises PermissionError: the path is not that of the kernel log of this host
    """
    if path != _localize(f'/{kernel_log.FILE}'):
        raise _refuse('only the kernel log can be read')
    return kernel_log.read_lines(path, after)


@CONTEXT.entrypoint
def holders(files: Sequence[str]) -> list[int]:
    """Return the ids of the processes that have one of the device files open.

    :raises PermissionError: a path is not below /dev, or the process does not see all
        processes of the host
    """
    if len(files) > _MAX_FILES or not all(name.startswith('/dev/') for name in files):
        raise _refuse('only device files can be searched for')
    _check_namespace()
    return find_processes(_root, files)


def _check_namespace() -> None:
    """Check that the process sees all processes of the host.

    :raises PermissionError: it sees those of a container only
    """
    if _root == '/' and os.readlink(_PID_NAMESPACE) != _HOST_PIDS:
        raise _refuse('the agent does not have the process namespace of the host')


def find_processes(root: str, files: Sequence[str]) -> list[int]:
    """Return the ids of the processes that have one of the files open.

    :raises OSError: the processes, or the open files of one, cannot be read
    """
    searched = frozenset(files)
    processes = os.path.join(root, 'proc')
    numbers = [name for name in os.listdir(processes) if re.fullmatch(r'\d+', name)]
    return sorted(
        int(number)
        for number in numbers
        if searched & _list_open_files(os.path.join(processes, number, 'fd'))
    )


def _list_open_files(directory: str) -> set[str]:
    files = set()
    try:
        for name in os.listdir(directory):
            with contextlib.suppress(FileNotFoundError):  # closed in the meantime
                files.add(os.readlink(os.path.join(directory, name)))
    except (FileNotFoundError, ProcessLookupError):
        pass  # the process has ended
    return files


def _list_devices() -> frozenset[int]:
    """Return the device numbers of the file systems that may be written to."""
    if _root != '/':
        # The emulated host of a test, which has no mounts.
        return frozenset({os.stat(_localize(_SYSFS)).st_dev})
    devices = set()
    with open(_MOUNTS) as mounts:
        for line in mounts:
            fields, _, source = line.partition(' - ')
            if source.startswith('sysfs '):
                major, minor = fields.split()[2].split(':')
                devices.add(os.makedev(int(major), int(minor)))
    return frozenset(devices)
