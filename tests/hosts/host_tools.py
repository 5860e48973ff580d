# SPDX-License-Identifier: Apache-2.0
"""Tools of FPGA vendors, and the sysfs state after they have run.

``outcome`` selects the result of the next load. The outputs are recorded ones.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from cyborg_lite.drivers.host.tools import ToolResult
from cyborg_lite.errors.drivers import ToolMissing, ToolTimedOut
from tests.hosts.kernel_regions import EINVAL, NO_MATCH, LoadOutcome


class FakeTool:
    """Emulation of ``fpgaconf`` or ``xbutil`` for one card."""

    def __init__(self, function_file: Path, manager: Path | None, loads: str) -> None:
        self.outcome = LoadOutcome.SUCCESS
        self.loads = loads  # function id of the file
        self.output = NO_MATCH  # output of a refusal
        self.commands: list[list[str]] = []
        self.timeouts: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self._function = function_file
        self._manager = manager
        self._device: Path | None = None

    def on_device(self, device: Path) -> 'FakeTool':
        """Set the directory of the card, which a test can remove."""
        self._device = device
        return self

    def __call__(self, command: Sequence[str], timeout: float) -> ToolResult:
        self.commands.append(list(command))
        self.timeouts.append(timeout)
        self.meanwhile()
        match self.outcome:
            case LoadOutcome.MISSING:
                raise ToolMissing(tool=command[0])
            case LoadOutcome.TIMEOUT:
                self._half_load()
                raise ToolTimedOut(tool=command[0], seconds=f'{timeout:g}')
            case LoadOutcome.REFUSED:
                return ToolResult(1, self.output)
            case LoadOutcome.HALF_LOADED:
                self._half_load()
                return ToolResult(1, EINVAL)
            case LoadOutcome.VANISHED:
                self._vanish()
                return ToolResult(1, 'Input/output error\n')
            case LoadOutcome.WRONG_ID:
                self._show('0123456789abcdef0123456789abcdef')
                return ToolResult(0)
        if '--shell' in command:
            self._show_shell()
        else:
            self._show(self.loads)
        return ToolResult(0, 'Programming succeeded\n')

    def _show(self, function: str) -> None:
        if self._function.exists():
            self._function.write_text(f'{function}\n')
        if self._manager is not None:
            (self._manager / 'state').write_text('operating\n')
            (self._manager / 'status').write_text('')

    def _show_shell(self) -> None:
        """Show another interface id and an empty region."""
        user = self._function.parent
        (user / 'logic_uuids').write_text(f'{self.loads}\n')
        (user / 'interface_uuids').write_text(f'{"1f" * 16}\n')
        self._function.write_text('')

    def _half_load(self) -> None:
        if self._function.exists():
            self._function.write_text(f'{"0" * 32}\n')
        if self._manager is not None:
            (self._manager / 'state').write_text('write error\n')
            (self._manager / 'status').write_text('reconfig CRC error\n')

    def _vanish(self) -> None:
        assert self._device is not None
        shutil.rmtree(self._device)
