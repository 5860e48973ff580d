# SPDX-License-Identifier: Apache-2.0
"""SMART log of NVMe drives (NVMe Base Specification, SMART / Health Information)."""

import json
from typing import Final

from oslo_log import log

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.telemetry import CachedReadings, Readings
from cyborg_lite.drivers.host.tools import ToolRunner, run_or_raise
from cyborg_lite.drivers.nvme_cleaning import find_controller
from cyborg_lite.errors.drivers import DriverError

LOG = log.getLogger(__name__)

_INTERVAL: Final = 600.0  # seconds; the log changes slowly
_SECONDS: Final = 60.0  # limit of the tool
# Bits of Critical Warning.
_WARNINGS: Final = (
    'smart_spare_low',
    'smart_temperature',
    'smart_reliability',
    'smart_read_only',
    'smart_backup_failed',
)
_FIELDS: Final = {
    'smart_percentage_used': 'percent_used',
    'smart_media_errors': 'media_errors',
}
SMART_SIGNALS: Final = (*_WARNINGS, *_FIELDS)


class SmartLog:
    """Reads the SMART logs of drives with nvme-cli, in the background."""

    def __init__(self, host: Host, run: ToolRunner) -> None:
        self._host = host
        self._run = run
        self._cache = CachedReadings(self._read, _INTERVAL)

    def read_counters(self, address: str) -> dict[str, int]:
        """Return the signals of the last log; empty if it cannot be read."""
        readings = self._cache.readings(address)
        return {name: int(value) for name, value in readings.items()}

    def _read(self, address: str) -> Readings:
        try:
            controller = find_controller(PciFunction(self._host, address))
            command = ('nvme', 'smart-log', controller, '--output-format=json')
            return parse_log(run_or_raise(self._run, command, _SECONDS))
        except (DriverError, ValueError) as error:
            LOG.debug('Cannot read the SMART log of %s: %s', address, error)
            return {}


def parse_log(text: str) -> Readings:
    """Return the signals in the output of ``nvme smart-log``.

    :raises ValueError: it has another form
    """
    log_page = json.loads(text)
    try:
        warnings = int(log_page['critical_warning'])
        numbers = {name: int(log_page[key]) for name, key in _FIELDS.items()}
    except (KeyError, TypeError) as error:
        raise ValueError(f'the SMART log lacks {error}') from None
    bits = {name: warnings >> bit & 1 for bit, name in enumerate(_WARNINGS)}
    return {**bits, **numbers}
