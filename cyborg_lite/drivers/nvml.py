# SPDX-License-Identifier: Apache-2.0
"""Figures from NVIDIA's management library, read by a process that may hang instead.

The library blocks inside the kernel when a card does not answer, and as long as it is
open it keeps ``sriov-manage`` from its work. So it is opened and closed in a process
of a moment, and never by the agent. Without the extra ``nvml`` there are no figures.
"""

import importlib.util
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from oslo_log import log

LOG = log.getLogger(__name__)

_TIMEOUT: Final = 10.0  # seconds for one reading
_INTERVAL: Final = 30.0  # seconds between two readings

Figures = Mapping[str, float]


class Nvml:
    """The last reading of each card, renewed behind the back of whoever asks."""

    def __init__(self, command: tuple[str, ...] | None = None) -> None:
        self._command = command or (sys.executable, '-m', __name__)
        self._wanted = command is not None or _is_installed()
        self._open = threading.Lock()  # held while the library is open, or must not be
        self._figures: dict[str, Figures] = {}  # by address
        self._due: dict[str, float] = {}  # by address, on the monotonic clock

    def figures(self, address: str) -> Figures:
        """What was last read of a card; empty where nothing could be."""
        if self._wanted and time.monotonic() >= self._due.get(address, 0.0):
            self._due[address] = time.monotonic() + _INTERVAL
            threading.Thread(target=self.read, args=(address,), daemon=True).start()
        return self._figures.get(address, {})

    def read(self, address: str) -> None:
        """Renew the reading of a card, however long it takes."""
        if not self._open.acquire(blocking=False):
            return
        try:
            self._figures[address] = self._reading(address)
        finally:
            self._open.release()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """While it is held the library is not open."""
        with self._open:
            yield

    def _reading(self, address: str) -> Figures:
        try:
            ended = subprocess.run(
                [*self._command, address],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT,
                check=True,
            )
            figures: Figures = json.loads(ended.stdout)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            LOG.debug('No figures of %s: %s', address, error)
            return {}
        return figures


def _is_installed() -> bool:
    return importlib.util.find_spec('pynvml') is not None


def _read(library: Any, address: str) -> dict[str, float]:  # Any: it has no types
    found: dict[str, float] = {}
    library.nvmlInit()
    try:
        card = library.nvmlDeviceGetHandleByPciBusId(address.encode())
        for name, reader in _READERS.items():
            try:
                found[name] = reader(library, card)
            except library.NVMLError:
                continue  # this card does not have it, or not in its mode
    finally:
        library.nvmlShutdown()
    return found


_READERS: Final[dict[str, Any]] = {  # Any: as above
    'busy_percent': lambda lib, card: lib.nvmlDeviceGetUtilizationRates(card).gpu,
    'memory_used': lambda lib, card: lib.nvmlDeviceGetMemoryInfo(card).used,
    'memory_total': lambda lib, card: lib.nvmlDeviceGetMemoryInfo(card).total,
    'temperature': lambda lib, card: lib.nvmlDeviceGetTemperature(card, 0),
    'power': lambda lib, card: lib.nvmlDeviceGetPowerUsage(card) / 1000,
    'ecc_uncorrected': lambda lib, card: lib.nvmlDeviceGetTotalEccErrors(card, 1, 0),
}


def main(arguments: list[str]) -> int:
    """The process of a moment: the figures of one card as JSON."""
    import pynvml

    try:
        sys.stdout.write(json.dumps(_read(pynvml, arguments[0])))
    except pynvml.NVMLError as error:
        sys.stderr.write(f'{error}\n')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
