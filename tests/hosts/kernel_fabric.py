# SPDX-License-Identifier: Apache-2.0
"""Fabric Manager of an emulated host, as its tool ``fmpm`` shows it.

The output is that of github.com/NVIDIA/Fabric-Manager-Client. A stop of the host
deactivates all partitions.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_ACTIVE: Final = 'run/nvidia-fabricmanager/active'
_SIZES: Final[Mapping[int, int]] = {1: 2, 2: 1, 3: 1}  # cards by partition


class FabricManager:
    """Partitions of a host whose cards are connected by NVSwitches."""

    def __init__(self, root: Path) -> None:
        self._file = root / _ACTIVE

    def list_active(self) -> list[int]:
        """Return the active partitions."""
        if not self._file.exists():
            return []
        return [int(number) for number in self._file.read_text().split()]

    def run(self, arguments: Sequence[str]) -> tuple[int, str]:
        """Run the tool; return its exit status and output."""
        match arguments:
            case ['-l']:
                return 0, self._format_list()
            case ['-a', number] if int(number) in _SIZES:
                return self._write([*self.list_active(), int(number)])
            case ['-d', number] if int(number) in self.list_active():
                remaining = [item for item in self.list_active() if item != int(number)]
                return self._write(remaining)
        return 1, 'fmActivateFabricPartition failed: FM_ST_BADPARAM'

    def _write(self, active: Sequence[int]) -> tuple[int, str]:
        if 1 in active and active != [1]:
            # The first partition has the cards of all others.
            return 1, 'Failed to activate partition: FM_ST_IN_USE'
        if not active:
            self._file.unlink()
            return 0, ''
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(' '.join(map(str, active)))
        return 0, ''

    def _format_list(self) -> str:
        active = self.list_active()
        partitions = [
            {'partitionId': number, 'isActive': int(number in active), 'numGpus': size}
            for number, size in _SIZES.items()
        ]
        return json.dumps({'maxNumPartitions': 3, 'partitionInfo': partitions})
