# SPDX-License-Identifier: Apache-2.0
"""Telemetry from the NVIDIA Management Library (NVML), read in a child process.

NVML blocks inside the kernel when a card does not respond, and ``sriov-manage`` fails
while NVML is open. A short-lived child process therefore opens and closes NVML; the
agent never does. Without the extra ``nvml`` there is no telemetry.
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

# Values by name: busy_percent (percent), memory_used and memory_total (bytes),
# temperature (degrees Celsius), power (watts), ecc_uncorrected (errors since boot).
Readings = Mapping[str, float]


class Nvml:
    """Caches the last readings of each card and refreshes them in the background."""

    def __init__(self, command: tuple[str, ...] | None = None) -> None:
        # command: prints the readings of the card whose address is appended, as JSON;
        # None: this module, if the extra ``nvml`` is installed.
        self._command = command or (sys.executable, '-m', __name__)
        is_installed = importlib.util.find_spec('pynvml') is not None
        self._is_enabled = command is not None or is_installed
        self._open = threading.Lock()  # locked while NVML is open or must stay closed
        self._readings: dict[str, Readings] = {}  # by address
        self._due: dict[str, float] = {}  # monotonic time in seconds, by address

    def readings(self, address: str) -> Readings:
        """Return the cached readings of a card without blocking; empty without any."""
        if self._is_enabled and time.monotonic() >= self._due.get(address, 0.0):
            self._due[address] = time.monotonic() + _INTERVAL
            threading.Thread(target=self.refresh, args=(address,), daemon=True).start()
        return self._readings.get(address, {})

    def refresh(self, address: str) -> None:
        """Read a card and cache the result, unless NVML must stay closed."""
        if not self._open.acquire(blocking=False):
            return
        try:
            self._readings[address] = self._run_command(address)
        finally:
            self._open.release()

    @contextmanager
    def keep_closed(self) -> Iterator[None]:
        """Keep NVML closed during the block; wait for a reading in progress."""
        with self._open:
            yield

    def _run_command(self, address: str) -> Readings:
        try:
            process = subprocess.run(
                [*self._command, address],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT,
                check=True,
            )
            readings: Readings = json.loads(process.stdout)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            LOG.debug('Cannot read telemetry of %s from NVML: %s', address, error)
            return {}
        return readings


def _read(library: Any, address: str) -> dict[str, float]:  # Any: pynvml is untyped
    readings: dict[str, float] = {}
    library.nvmlInit()
    try:
        card = library.nvmlDeviceGetHandleByPciBusId(address.encode())
        for name, reader in _READERS.items():
            try:
                readings[name] = reader(library, card)
            except library.NVMLError:
                continue  # the card does not support this value, or not in its mode
    finally:
        library.nvmlShutdown()
    return readings


_READERS: Final[dict[str, Any]] = {  # Any: pynvml is untyped
    'busy_percent': lambda lib, card: lib.nvmlDeviceGetUtilizationRates(card).gpu,
    'memory_used': lambda lib, card: lib.nvmlDeviceGetMemoryInfo(card).used,
    'memory_total': lambda lib, card: lib.nvmlDeviceGetMemoryInfo(card).total,
    'temperature': lambda lib, card: lib.nvmlDeviceGetTemperature(card, 0),
    'power': lambda lib, card: lib.nvmlDeviceGetPowerUsage(card) / 1000,
    'ecc_uncorrected': lambda lib, card: lib.nvmlDeviceGetTotalEccErrors(card, 1, 0),
}


def main(arguments: list[str]) -> int:
    """Print the readings of one card as JSON; return the exit status.

    :param arguments: the PCI address of the card
    """
    import pynvml

    try:
        sys.stdout.write(json.dumps(_read(pynvml, arguments[0])))
    except pynvml.NVMLError as error:
        sys.stderr.write(f'{error}\n')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
