# SPDX-License-Identifier: Apache-2.0
"""Runs the tools of hardware vendors that load bitstreams: a time limit, no trust.

Discovery never comes here. Drivers are handed the runner, so that tests hand in one
that answers from a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from oslo_log import log

from cyborg_lite.drivers.kernel import Kernel
from cyborg_lite.exceptions import DriverError, ToolMissing, ToolTimedOut

LOG = log.getLogger(__name__)

_MOST_SHOWN: Final = 200  # characters of what a tool said


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
    :raises DriverError: it cannot be run, or must not be
    """

    def __call__(self, command: Sequence[str], timeout: float) -> Outcome: ...


class Tools:
    """The real runner: whatever has the rights runs them."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def __call__(self, command: Sequence[str], timeout: float) -> Outcome:
        """As ``Runner`` says; ``timeout`` in seconds."""
        LOG.info('Running %s.', ' '.join(command))
        try:
            status, output = self._kernel.load(command, timeout)
        except FileNotFoundError:
            raise ToolMissing(tool=command[0]) from None
        except OSError as error:
            reason = f'{command[0]} cannot be run: {error.strerror}'
            raise DriverError(reason=reason) from error
        if status is None:
            raise ToolTimedOut(tool=command[0], seconds=f'{timeout:g}')
        outcome = Outcome(status, output)
        LOG.info('%s ended: %s', command[0], outcome.summary)
        return outcome
