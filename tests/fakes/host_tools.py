# SPDX-License-Identifier: Apache-2.0
"""The tools of FPGA vendors, and what the kernel shows after they have run.

``fate`` says how the next load ends; the words of the tools are recorded ones.
"""

import enum
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.host_tools import Outcome
from cyborg_lite.exceptions import ToolMissing, ToolTimedOut

_NO_MATCH: Final = 'Error opening bitstream file\nNo suitable slots found.\n'
_EINVAL: Final = 'ERROR: Failed to download xclbin: Invalid argument\n'


class Fate(enum.Enum):
    SUCCESS = enum.auto()
    WRONG_ID = enum.auto()  # exits well, but the card shows another function
    REFUSED = enum.auto()  # exits badly, and nothing has changed
    HALF_LOADED = enum.auto()  # exits badly, and the region is in pieces
    TIMEOUT = enum.auto()
    VANISHED = enum.auto()  # the card falls off the bus
    MISSING = enum.auto()  # not installed


class FakeTool:
    """One card's worth of ``fpgaconf`` or ``xbutil``."""

    def __init__(self, function_file: Path, manager: Path | None, loads: str) -> None:
        self.fate = Fate.SUCCESS
        self.loads = loads  # the function that the file holds
        self.said = _NO_MATCH  # where it refuses
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
                return Outcome(1, _EINVAL)
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
