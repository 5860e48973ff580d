# SPDX-License-Identifier: Apache-2.0
"""Assesses the PCI errors of devices by severity and rate.

The kernel counts the errors of a function since the boot of the host (PCI AER). A count
alone is no fault: a card may run for months after one corrected error. The errors of
the last period decide, and the operator can acknowledge them.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from oslo_log import log

from cyborg_lite.agent.state.state_file import StateFile
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Health

LOG = log.getLogger(__name__)

_FILE: Final = 'pci_errors.json'
_DIRECTORY: Final = 'acknowledged'  # of the state directory: one empty file per card
# From the most severe kind to the least severe one.
_HEALTH: Final[Mapping[str, Health]] = {
    'fatal': Health.FAILED,
    'nonfatal': Health.FAILED,
    'correctable': Health.DEGRADED,
}
_RANKS: Final = (
    Health.OK,
    Health.BUSY,
    Health.DEGRADED,
    Health.FAILED,
    Health.CONFLICT,
    Health.GONE,
)


@dataclass(frozen=True, slots=True)
class PciErrorLimits:
    """Numbers of errors within the period from which a device is unhealthy.

    0: errors of this severity are ignored.
    """

    fatal: int = 1
    nonfatal: int = 10
    correctable: int = 1000
    period: float = 3600.0  # seconds


@dataclass(slots=True)
class _Errors:
    """The errors of one function in this boot of the host."""

    counters: dict[str, int] = field(default_factory=dict)  # as last read
    # Seconds since boot and number of new errors within the period, by severity.
    recent: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    since: dict[str, str] = field(default_factory=dict)  # UTC, of each reached limit


@dataclass(frozen=True, slots=True)
class _Content:
    boot_id: str = ''
    devices: dict[str, _Errors] = field(default_factory=dict)  # by address


class PciErrors:
    """The recent PCI errors of all devices, also across restarts of the agent."""

    def __init__(
        self,
        state_path: Path,
        limits: PciErrorLimits,
        clock: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        """Store the arguments; the state is read at the first use.

        :param clock: returns the seconds since the boot of the host
        """
        self._limits = limits
        self._clock = clock
        self._directory = state_path / _DIRECTORY
        self._file = StateFile(state_path / _FILE, _Content)
        self._guard = threading.Lock()
        self._content: _Content | None = None  # None: not read yet

    def assess(self, boot_id: str, address: str, usage: Usage) -> Usage:
        """Return the telemetry of a device with the health that its errors require."""
        with self._guard:
            devices = self._open(boot_id)
            changed = self._take_acknowledged(devices)
            if usage.counters:
                is_known = address in devices
                errors = devices.setdefault(address, _Errors())
                changed |= self._count(errors, usage.counters, is_known)
            errors = devices.get(address, _Errors())
            changed |= self._update_limits(errors)
            if changed:
                self._file.write(_Content(boot_id, devices))
            health, reason = _describe(errors)
            if _RANKS.index(health) <= _RANKS.index(usage.health):
                return usage
            return replace(usage, health=health, reason=reason)

    def _open(self, boot_id: str) -> dict[str, _Errors]:
        """Return the errors by address. A reboot of the host clears them."""
        content = self._content or self._file.read()
        if content is None or content.boot_id != boot_id:
            content = _Content(boot_id)
        self._content = content
        return content.devices

    def _take_acknowledged(self, devices: Mapping[str, _Errors]) -> bool:
        """Clear the errors that the operator has acknowledged, and remove the notes."""
        addresses = []
        try:
            for note in sorted(self._directory.iterdir()):
                note.unlink()
                addresses.append(note.name)
        except FileNotFoundError:
            return False  # no error was ever acknowledged
        except OSError as error:
            LOG.error('Cannot read the acknowledged devices: %s', error)
        for address in addresses:
            LOG.info('The PCI errors of %s are acknowledged', address)
            if address in devices:
                devices[address].recent.clear()
        return bool(addresses)

    def _count(
        self, errors: _Errors, counters: Mapping[str, int], is_known: bool
    ) -> bool:
        """Add the new errors; return True if there are any."""
        if errors.counters == counters:
            return False
        for severity in _HEALTH:
            count, before = counters.get(severity, 0), errors.counters.get(severity, 0)
            new = count - before if count >= before else count
            # Nobody knows over which time the errors before the first read occurred.
            if new and (is_known or severity == 'fatal'):
                errors.recent.setdefault(severity, []).append((self._clock(), new))
        errors.counters = dict(counters)
        return True

    def _update_limits(self, errors: _Errors) -> bool:
        """Record since when each limit is reached; return True after a change."""
        start = self._clock() - self._limits.period
        changed = False
        for severity in _HEALTH:
            before = errors.recent.get(severity, ())
            recent = errors.recent[severity] = [e for e in before if e[0] > start]
            limit = getattr(self._limits, severity)
            is_reached = bool(limit) and sum(number for _, number in recent) >= limit
            if is_reached and severity not in errors.since:
                age = timedelta(seconds=self._clock() - recent[0][0])
                moment = datetime.now(UTC) - age
                errors.since[severity] = f'{moment:%Y-%m-%d %H:%M:%S} UTC'
                changed = True
            elif not is_reached and errors.since.pop(severity, None) is not None:
                changed = True
        return changed


def acknowledge(state_path: Path, address: str) -> None:
    """Leave a note for the agent that the operator accepts the errors of a device.

    :raises OSError: the directory cannot be written
    """
    directory = state_path / _DIRECTORY
    directory.mkdir(mode=0o700, exist_ok=True)
    (directory / address).touch()


def list_unhealthy(state_path: Path) -> dict[str, str]:
    """Return the unhealthy devices of the agent by address, each with the reason."""
    file = StateFile(state_path / _FILE, _Content, read_only=True)
    devices = (file.read() or _Content()).devices
    reasons = {address: _describe(errors)[1] for address, errors in devices.items()}
    return {address: reason for address, reason in reasons.items() if reason}


def _describe(errors: _Errors) -> tuple[Health, str]:
    """Return the health by the most severe limit that is reached, and the reason."""
    for severity, health in _HEALTH.items():
        if severity in errors.since:
            count = sum(number for _, number in errors.recent.get(severity, ()))
            since = errors.since[severity]
            return health, f'{count} {severity} PCI errors since {since}'
    return Health.OK, ''
