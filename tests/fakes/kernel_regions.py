# SPDX-License-Identifier: Apache-2.0
"""What the drivers of FPGAs show of a region after each load, well or ill.

``dfl-fme-mgr.c`` of Linux for Intel, the sysfs of XRT for Xilinx. ``fate`` says how the
next load ends; what is loaded stands in the file.
"""

import enum
import errno
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from cyborg_lite.drivers import bitstream_files

_DEVICES: Final = 'sys/bus/pci/devices'
_EIO: Final = 'Input/output error\n'
EINVAL: Final = 'ERROR: Failed to download xclbin: Invalid argument\n'
NO_MATCH: Final = 'Error opening bitstream file\nNo suitable slots found.\n'
_OTHER: Final = '0123456789abcdef0123456789abcdef'
_NOTHING: Final = '0' * 32


class Fate(enum.Enum):
    SUCCESS = enum.auto()
    WRONG_ID = enum.auto()  # exits well, but the card shows another function
    REFUSED = enum.auto()  # exits badly, and nothing has changed
    HALF_LOADED = enum.auto()  # exits badly, and the region is in pieces
    TIMEOUT = enum.auto()
    VANISHED = enum.auto()  # the card falls off the bus
    MISSING = enum.auto()  # the tool is not installed


class Regions:
    """Of all cards of a host."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.fate = Fate.SUCCESS
        self.commands: list[list[str]] = []
        # As the power came on, by the file that shows it.
        self._at_first = {file: file.read_text() for file in self._shown()}

    def _shown(self) -> Iterator[Path]:
        yield from (self._root / 'sys/devices').rglob('afu_id')
        yield from (self._root / 'sys/devices').rglob('xclbinuuid')

    def power_cycle(self) -> None:
        """What was loaded is gone; what the flash of the card holds is back."""
        for file, text in self._at_first.items():
            if file.exists():
                file.write_text(text)

    def load(self, tool: str, arguments: Sequence[str]) -> tuple[int | None, str]:
        """As the tool does that is run with these; None: it had to be killed.

        :raises FileNotFoundError: there is none
        """
        self.commands.append([tool, *arguments])
        card = self._root / _DEVICES / _address(arguments)
        match self.fate:
            case Fate.MISSING:
                raise FileNotFoundError(errno.ENOENT, 'No such file')
            case Fate.REFUSED:
                return 1, NO_MATCH
            case Fate.TIMEOUT:
                _half_load(card)
                return None, ''
            case Fate.HALF_LOADED:
                _half_load(card)
                return 1, EINVAL
            case Fate.VANISHED:
                shutil.rmtree(card.resolve())
                return 1, _EIO
            case Fate.WRONG_ID:
                _show(card, _OTHER)
                return 0, ''
        file = Path(arguments[-1])
        read = bitstream_files.gbs if tool == 'fpgaconf' else bitstream_files.xclbin
        _show(card, read(file).function_id)
        return 0, 'Programming succeeded\n'


def _address(arguments: Sequence[str]) -> str:
    """Of the function that the tool is pointed at."""
    if '--device' in arguments:
        return arguments[list(arguments).index('--device') + 1]
    said = dict(zip(arguments[::2], arguments[1::2], strict=False))
    parts = [said[key].removeprefix('0x') for key in ('--segment', '-B', '-D', '-F')]
    return '{}:{}:{}.{}'.format(*parts)


def _show(card: Path, function: str) -> None:
    for name in ('afu_id', 'xclbinuuid'):
        for file in card.resolve().rglob(name):
            file.write_text(f'{function}\n')
    for manager in card.resolve().rglob('fpga_manager/fpga*'):
        (manager / 'state').write_text('operating\n')
        (manager / 'status').write_text('')


def _half_load(card: Path) -> None:
    _show(card, _NOTHING)
    for manager in card.resolve().rglob('fpga_manager/fpga*'):
        (manager / 'state').write_text('write error\n')
        (manager / 'status').write_text('reconfig CRC error\n')
