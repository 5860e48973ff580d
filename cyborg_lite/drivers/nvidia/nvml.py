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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from oslo_log import log

from cyborg_lite.drivers.host.telemetry import CachedReadings, Readings

LOG = log.getLogger(__name__)

_TIMEOUT: Final = 10.0  # seconds for one reading
_INTERVAL: Final = 30.0  # seconds between two readings


class Nvml(CachedReadings):
    """Caches the last readings of each card and refreshes them in the background."""

    def __init__(self, command: tuple[str, ...] | None = None) -> None:
        # command: prints the readings of the card whose address is appended, as JSON;
        # None: this module, if the extra ``nvml`` is installed.
        super().__init__(self._run_command, _INTERVAL)
        self._command = command or (sys.executable, '-m', __name__)
        is_installed = importlib.util.find_spec('pynvml') is not None
        self._is_enabled = command is not None or is_installed

    def readings(self, address: str) -> Readings:
        """Return the cached readings of a card; empty without the library."""
        return super().readings(address) if self._is_enabled else {}

    def read_now(self, address: str) -> Readings:
        """Return the readings of a card, read anew; empty without the library."""
        with self._open:
            return self._run_command(address) if self._is_enabled else {}

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


# Any, below: pynvml is untyped.
def _read(library: Any, address: str) -> dict[str, float]:
    """Return the values that a card supports in its present mode."""
    readings: dict[str, float] = {}
    library.nvmlInit()
    try:
        card = library.nvmlDeviceGetHandleByPciBusId(address.encode())
        for names, reader in _READERS.items():
            try:
                values = reader(library, card)
            except (library.NVMLError, AttributeError):
                continue  # neither in this mode, nor with this library
            values = values if isinstance(values, tuple) else (values,)
            readings |= zip(names.split(), values, strict=True)
    finally:
        library.nvmlShutdown()
    return readings


def _read_links(library: Any, card: Any) -> tuple[int, int]:
    """Return the number of active NVLinks, and their recoveries.

    :raises NVMLError: the card has no NVLinks
    """
    states = [library.nvmlDeviceGetNvLinkState(card, 0)]
    recoveries = 0
    for link in range(library.NVML_NVLINK_MAX_LINKS):
        try:
            state = library.nvmlDeviceGetNvLinkState(card, link) if link else states[0]
            states += [state] if link else []
            recoveries += library.nvmlDeviceGetNvLinkErrorCounter(card, link, 1)
        except library.NVMLError:
            continue  # the card has fewer links, or the link is down
    return sum(states), recoveries


def _read_throttling(library: Any, card: Any) -> tuple[bool, bool]:
    """Return whether heat, and whether the power brake, slows a card down (nvml.h)."""
    reasons = library.nvmlDeviceGetCurrentClocksThrottleReasons(card)
    return bool(reasons & 0x60), bool(reasons & 0x80)


def _error_reader(severity: int, lifetime: int) -> Any:
    """Return a function that counts ECC errors.

    :param severity: 0: corrected, 1: not corrected
    :param lifetime: 0: since the load of the driver, 1: over the life of the card
    """
    return lambda lib, card: lib.nvmlDeviceGetTotalEccErrors(card, severity, lifetime)


# Readers of one or several values.
_READERS: Final[dict[str, Any]] = {
    'busy_percent': lambda lib, card: lib.nvmlDeviceGetUtilizationRates(card).gpu,
    'memory_used': lambda lib, card: lib.nvmlDeviceGetMemoryInfo(card).used,
    'memory_total': lambda lib, card: lib.nvmlDeviceGetMemoryInfo(card).total,
    'temperature': lambda lib, card: lib.nvmlDeviceGetTemperature(card, 0),
    'power': lambda lib, card: lib.nvmlDeviceGetPowerUsage(card) / 1000,
    'ecc_volatile_corrected': _error_reader(0, 0),
    'ecc_volatile_uncorrected': _error_reader(1, 0),
    'ecc_aggregate_corrected': _error_reader(0, 1),
    'ecc_aggregate_uncorrected': _error_reader(1, 1),
    'rows_remapped_corrected rows_remapped_uncorrected row_remap_pending '
    'row_remap_failed': lambda lib, card: lib.nvmlDeviceGetRemappedRows(card),
    'retired_pages': lambda lib, card: sum(  # for single-bit and double-bit errors
        len(lib.nvmlDeviceGetRetiredPages(card, cause)) for cause in (0, 1)
    ),
    'retired_pages_pending': (
        lambda lib, card: lib.nvmlDeviceGetRetiredPagesPendingStatus(card)
    ),
    'nvlinks_active nvlink_recoveries': _read_links,
    'throttle_thermal throttle_power_brake': _read_throttling,
}
_MEASUREMENTS: Final = 5
SIGNALS: Final = tuple(' '.join([*_READERS][_MEASUREMENTS:]).split())
"""The readings that health rules compare. The others are measurements."""


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
