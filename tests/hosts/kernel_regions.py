# SPDX-License-Identifier: Apache-2.0
"""Sysfs state of FPGA regions after successful and failed loads.

Intel follows ``dfl-fme-mgr.c`` of Linux, Xilinx the sysfs of XRT. ``outcome`` selects
the result of the next load. The function id is read from the file. The outputs are
recorded ones.
"""

import enum
import errno
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.fpga import files

_DEVICES: Final = 'sys/bus/pci/devices'
_EIO: Final = 'Input/output error\n'
_EINVAL: Final = 'ERROR: Failed to download xclbin: Invalid argument\n'
_NO_MATCH: Final = 'Error opening bitstream file {}\nNo suitable slots found.\n'
_OTHER: Final = '0123456789abcdef0123456789abcdef'
_NOTHING: Final = '0' * 32


class LoadOutcome(enum.Enum):
    SUCCESS = enum.auto()
    WRONG_ID = enum.auto()  # exit status 0, but the card shows another function
    REFUSED = enum.auto()  # exit status 1, and nothing has changed
    HALF_LOADED = enum.auto()  # exit status 1, and the region is unusable
    TIMEOUT = enum.auto()
    VANISHED = enum.auto()  # the card disconnects from the bus
    MISSING = enum.auto()  # the tool is not installed


class Regions:
    """Regions of all cards of a host."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.outcome = LoadOutcome.SUCCESS
        self.commands: list[list[str]] = []
        # State after power-on, by sysfs file.
        self._at_first = {file: file.read_text() for file in self._list_files()}

    def _list_files(self) -> Iterator[Path]:
        yield from (self._root / 'sys/devices').rglob('afu_id')
        yield from (self._root / 'sys/devices').rglob('xclbinuuid')

    def power_cycle(self) -> None:
        """Restore the functions in the flash of each card."""
        for file, text in self._at_first.items():
            if file.exists():
                file.write_text(text)

    def load(self, tool: str, arguments: Sequence[str]) -> tuple[int | None, str]:
        """Emulate a run of a tool; the exit status is None if it had to be killed.

        :raises FileNotFoundError: the tool is not installed
        """
        self.commands.append([tool, *arguments])
        card = self._root / _DEVICES / _address(arguments)
        match self.outcome:
            case LoadOutcome.MISSING:
                raise FileNotFoundError(errno.ENOENT, 'No such file')
            case LoadOutcome.REFUSED:
                return 1, _NO_MATCH.format(arguments[-1])
            case LoadOutcome.TIMEOUT:
                half_load(card)
                return None, ''
            case LoadOutcome.HALF_LOADED:
                half_load(card)
                return 1, _EINVAL
            case LoadOutcome.VANISHED:
                shutil.rmtree(card.resolve())
                return 1, _EIO
            case LoadOutcome.WRONG_ID:
                function = _OTHER
            case _:
                read = files.read_gbs if tool == 'fpgaconf' else files.read_xclbin
                function = read(Path(arguments[-1])).function_id
        if '--shell' in arguments:
            _show_shell(card, function)
        else:
            show(card, function)
        return 0, 'Programming succeeded\n'


def _address(arguments: Sequence[str]) -> str:
    """Return the PCI address in the arguments of a tool."""
    if '--device' in arguments:
        return arguments[list(arguments).index('--device') + 1]
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    parts = [options[key].removeprefix('0x') for key in ('--segment', '-B', '-D', '-F')]
    return '{}:{}:{}.{}'.format(*parts)


def show(card: Path, function: str) -> None:
    """Show a function in all regions of a card."""
    for name in ('afu_id', 'xclbinuuid'):
        for file in card.resolve().rglob(name):
            file.write_text(f'{function}\n')
    for manager in card.resolve().rglob('fpga_manager/fpga*'):
        (manager / 'state').write_text('operating\n')
        (manager / 'status').write_text('')


def _show_shell(card: Path, shell: str) -> None:
    """Show another interface id and an empty region."""
    user = card.with_name(f'{card.name[:-1]}1')
    (user / 'logic_uuids').write_text(f'{shell}\n')
    (user / 'interface_uuids').write_text(f'{"1f" * 16}\n')
    (user / 'xclbinuuid').write_text('')


def half_load(card: Path) -> None:
    """Leave an unusable region."""
    show(card, _NOTHING)
    for manager in card.resolve().rglob('fpga_manager/fpga*'):
        (manager / 'state').write_text('write error\n')
        (manager / 'status').write_text('reconfig CRC error\n')
