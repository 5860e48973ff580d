# SPDX-License-Identifier: Apache-2.0
"""The tools of FPGA vendors, and what the kernel shows after they have run.

``fate`` says how the next load ends; the words of the tools are recorded ones.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from cyborg_lite.drivers.host_tools import Outcome
from cyborg_lite.exceptions import ToolMissing, ToolTimedOut
from tests.fakes.kernel_regions import EINVAL, NO_MATCH, Fate


class FakeTool:
    """One card's worth of ``fpgaconf`` or ``xbutil``."""

    def __init__(self, function_file: Path, manager: Path | None, loads: str) -> None:
        self.fate = Fate.SUCCESS
        self.loads = loads  # the function that the file holds
        self.said = NO_MATCH  # where it refuses
        self.commands: list[list[str]] = []
        self.timeouts: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self._function = function_file
        self._manager = manager
        self._device: Path | None = None

    def on_device(self, device: Path) -> 'FakeTool':
        """Where the card is, for it to vanish from."""
        self._device = device
        return self

    def __call__(self, command: Sequence[str], timeout: float) -> Outcome:
        self.commands.append(list(command))
        self.timeouts.append(timeout)
        self.meanwhile()
        match self.fate:
            case Fate.MISSING:
                raise ToolMissing(tool=command[0])
            case Fate.TIMEOUT:
                self._half_load()
                raise ToolTimedOut(tool=command[0], seconds=f'{timeout:g}')
            case Fate.REFUSED:
                return Outcome(1, self.said)
            case Fate.HALF_LOADED:
                self._half_load()
                return Outcome(1, EINVAL)
            case Fate.VANISHED:
                self._vanish()
                return Outcome(1, 'Input/output error\n')
            case Fate.WRONG_ID:
                self._show('0123456789abcdef0123456789abcdef')
                return Outcome(0)
        if '--shell' in command:
            self._show_shell()
        else:
            self._show(self.loads)
        return Outcome(0, 'Programming succeeded\n')

    def _show(self, function: str) -> None:
        if self._function.exists():
            self._function.write_text(f'{function}\n')
        if self._manager is not None:
            (self._manager / 'state').write_text('operating\n')
            (self._manager / 'status').write_text('')

    def _show_shell(self) -> None:
        """Another interface than before, and nothing in the region."""
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
