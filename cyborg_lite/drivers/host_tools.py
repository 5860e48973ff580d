# SPDX-License-Identifier: Apache-2.0
"""Runs the tools of hardware vendors on the host: no shell, a time limit, no trust.

Discovery never comes here. Drivers are handed the runner, so that tests hand in one
that answers from a record.
"""

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from oslo_log import log

from cyborg_lite.drivers import privileged
from cyborg_lite.exceptions import ToolMissing, ToolTimedOut

LOG = log.getLogger(__name__)

_MOST_SHOWN: Final = 200  # characters of what a tool said
_LONGEST_OUTPUT: Final = 4096  # characters of it that are kept

_TOOLS: Final = frozenset({'fpgaconf', 'xbmgmt', 'xbutil', 'xrt-smi'})
# This one writes the flash of cards, too; it may load the shell of a running one.
_FLASHING: Final = 'xbmgmt'
_LOADS_A_SHELL: Final = re.compile(r'program --device \S+ --shell \S+')
_ARGUMENT: Final = re.compile(r'[\w:./-]{1,512}')

# Nothing of the daemon's own environment, which may hold what is secret.
_ENVIRONMENT: Final = {
    'PATH': '/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin',
    'LC_ALL': 'C',
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a tool ended, and what it said on both of its outputs."""

    status: int
    output: str = ''

    @property
    def summary(self) -> str:
        """One line of it that can stand in a message."""
        text = ' '.join(self.output.split())
        text = ''.join(char for char in text if char.isprintable())
        return f'exit status {self.status}: {text[-_MOST_SHOWN:] or "no word"}'


class Runner(Protocol):
    """:raises ToolTimedOut: it was killed
    :raises ToolMissing: there is no such program
    """

    def __call__(self, command: Sequence[str], timeout: float) -> Outcome: ...


@privileged.CONTEXT.entrypoint
def run_as_root(command: Sequence[str], timeout: float) -> tuple[int | None, str]:
    """As ``execute``, for the tools that load bitstreams and nothing else.

    :raises PermissionError: it is another program, or an argument is odd
    """
    tool, *arguments = command
    if os.path.basename(tool) not in _TOOLS:
        raise PermissionError(1, 'not a tool that loads bitstreams')
    if not all(_ARGUMENT.fullmatch(argument) for argument in arguments):
        raise PermissionError(1, 'not an argument of a tool')
    asked = ' '.join(arguments)
    if os.path.basename(tool) == _FLASHING and not _LOADS_A_SHELL.fullmatch(asked):
        raise PermissionError(1, 'it would do more than load a shell')
    return execute(command, timeout)


def run(command: Sequence[str], timeout: float) -> Outcome:
    """As ``Runner`` says; ``timeout`` in seconds."""
    LOG.info('Running %s.', ' '.join(command))
    try:
        status, output = run_as_root(list(command), timeout)
    except OSError as error:
        LOG.error('%s cannot be run: %s', command[0], error)
        raise ToolMissing(tool=command[0]) from None
    if status is None:
        raise ToolTimedOut(tool=command[0], seconds=f'{timeout:g}')
    outcome = Outcome(status, output)
    LOG.info('%s ended: %s', command[0], outcome.summary)
    return outcome


def execute(command: Sequence[str], timeout: float) -> tuple[int | None, str]:
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
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        # Not waited for: one that hangs inside of the kernel does not die of it.
        return None, ''
    return process.returncode, output.decode(errors='replace')[-_LONGEST_OUTPUT:]
