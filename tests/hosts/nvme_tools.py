# SPDX-License-Identifier: Apache-2.0
"""The tools nvme and blkdiscard, emulated for one drive. The outputs are those of
nvme-cli 2.8 and util-linux 2.38.
"""

from collections.abc import Sequence
from pathlib import Path

from cyborg_lite.drivers.host.tools import ToolResult
from tests.hosts.kernel import FakeKernel

ERASES = ('sanitize', 'format', '--zeroout')


class NvmeTools:
    """Emulation of both tools; a sanitize ends after ``polls`` reads of its log."""

    def __init__(self, sanicap: int = 0, oacs: int = 0, fna: int = 0) -> None:
        self.identity = {'sanicap': sanicap, 'oacs': oacs, 'fna': fna}
        self.polls = 2
        self.last_status = 1  # of SSTAT, at the end of a sanitize
        self.sanitizing = 0  # remaining reads of the log until the end
        self.failures: dict[str, str] = {}  # by erase: the output of the failure
        self.commands: list[tuple[str, ...]] = []

    def erases(self) -> list[str]:
        """Return the commands that erased something."""
        return [' '.join(item) for item in self.commands if item[1] in ERASES]

    def __call__(self, command: Sequence[str], timeout: float) -> ToolResult:
        self.commands.append(tuple(command))
        operation = command[1]
        if operation in self.failures:
            return ToolResult(1, self.failures[operation])
        match operation:
            case 'version':
                return ToolResult(
                    0, 'nvme version 2.8 (git 2.8)\nlibnvme version 1.8\n'
                )
            case '--version':
                return ToolResult(0, 'blkdiscard from util-linux 2.38.1\n')
            case 'id-ctrl':
                fields = ',\n'.join(f'  "{k}":{v}' for k, v in self.identity.items())
                return ToolResult(0, f'{{\n  "vid":32902,\n{fields}\n}}\n')
            case 'sanitize':
                self.sanitizing = self.polls
            case 'sanitize-log':
                return ToolResult(0, self._format_log())
        return ToolResult(0)

    def _format_log(self) -> str:
        running = self.sanitizing > 0
        self.sanitizing = max(0, self.sanitizing - 1)
        status = 2 if running else self.last_status
        return (
            'Sanitize Progress                      (SPROG) :  65535\n'
            f'Sanitize Status                        (SSTAT) :  {0x100 | status:#x}\n'
            'Sanitize Command Dword 10 Information (SCDW10) :  0x4\n'
        )


class NvmeKernel(FakeKernel):
    """Emulated kernel of a host with drives, which the tools can erase."""

    def __init__(self, host: str, root: Path, *limits: int) -> None:
        """Build the host.

        :param limits: those of ``FakeKernel``
        """
        super().__init__(host, root, *limits)
        self.tools = NvmeTools(sanicap=1)
        self.tools.polls = 0

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        result = self.tools(command, seconds)
        return result.status, result.output
