# SPDX-License-Identifier: Apache-2.0
"""Runs the vendor tools that load bitstreams, with a time limit.

Discovery never runs a tool. Drivers receive the runner as an argument, so that tests
can pass a runner that replays recorded output.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from oslo_log import log

from cyborg_lite.drivers.host.kernel import Kernel
from cyborg_lite.errors.drivers import DriverError, ToolMissing, ToolTimedOut

LOG = log.getLogger(__name__)

_MAX_SUMMARY: Final = 200  # characters of the output, counted from its end


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The exit status of a tool and its combined stdout and stderr."""

    status: int
    output: str = ''

    @property
    def summary(self) -> str:
        """The status and the end of the output in one printable line."""
        text = ' '.join(self.output.split())
        text = ''.join(char for char in text if char.isprintable())
        return f'exit status {self.status}: {text[-_MAX_SUMMARY:] or "no output"}'


# Runs a command for at most a number of seconds, as ``Tools``.
ToolRunner: TypeAlias = Callable[[Sequence[str], float], ToolResult]


def run_or_raise(run: ToolRunner, command: Sequence[str], seconds: float) -> str:
    """Run a tool that must succeed, and return its output.

    :raises DriverError: it fails
    """
    result = run(command, seconds)
    if result.status != 0:
        reason = f'{" ".join(command)} failed: {result.summary}.'
        raise DriverError(reason=reason)
    return result.output


class Tools:
    """Runs tools through the privileged process."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def __call__(self, command: Sequence[str], timeout: float) -> ToolResult:
        """Run a tool to its end.

        :param timeout: seconds
        :raises ToolTimedOut: the tool was killed
        :raises ToolMissing: there is no such program
        :raises DriverError: the tool cannot be started or is not allowed
        """
        LOG.info('Running %s', ' '.join(command))
        try:
            status, output = self._kernel.load(command, timeout)
        except FileNotFoundError:
            raise ToolMissing(tool=command[0]) from None
        except OSError as error:
            reason = f'{command[0]} cannot be run: {error.strerror}'
            raise DriverError(reason=reason) from error
        if status is None:
            raise ToolTimedOut(tool=command[0], seconds=f'{timeout:g}')
        result = ToolResult(status, output)
        LOG.info('%s exited: %s', command[0], result.summary)
        return result
