# SPDX-License-Identifier: Apache-2.0
"""How the devices are doing, asked of their drivers without ever waiting for one."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from oslo_log import log

from cyborg_lite.drivers.base import Driver, Measuring
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.inventory import Device, Finding, Health
from cyborg_lite.model.message_rules import check_usage
from cyborg_lite.model.usage import Usage
from cyborg_lite.rpc import wire

LOG = log.getLogger(__name__)

_MIB: Final = 1 << 20
_COARSE: Final = 5  # percent, degrees and watts; finer changes are no news


class Measurements:
    """The last figures of each device, by address."""

    def __init__(self, drivers: Mapping[str, Driver]) -> None:
        self._drivers = drivers
        self._changed: Callable[[], None] = lambda: None
        self._threads: dict[str, threading.Thread] = {}
        self._figures: dict[str, Mapping[str, Usage]] = {}  # by driver, then address

    def watch(self, changed: Callable[[], None]) -> None:
        """Have that called when a device fell ill or got well."""
        self._changed = changed

    @property
    def figures(self) -> dict[str, Usage]:
        """As they were when they were last measured, rounded."""
        found: dict[str, Usage] = {}
        for figures in list(self._figures.values()):
            found |= figures
        return found

    def begin(self, findings: Sequence[Finding]) -> None:
        """Ask each driver that can tell, unless it has not answered the last time."""
        for name, driver in self._drivers.items():
            if not isinstance(driver, Measuring):
                continue
            under_way = self._threads.get(name)
            if under_way is not None and under_way.is_alive():
                continue
            devices = [one.device for one in findings if one.driver == name]
            # A daemon, because a read from a dying device may never return.
            self._threads[name] = threading.Thread(
                target=self._measure,
                args=(name, driver, [device for device in devices if device]),
                name=f'measure-{name}',
                daemon=True,
            )
            self._threads[name].start()

    def finish(self) -> None:
        """Return when all that was begun has ended; for tests and the impatient."""
        for thread in list(self._threads.values()):
            thread.join()

    def amended(self, finding: Finding) -> Finding:
        """With the ill health that only the figures show."""
        device = finding.device
        figures = self._figures.get(finding.driver, {}).get(finding.address)
        if device is None or figures is None or device.health is not Health.OK:
            return finding
        if figures.health is Health.OK:
            return finding
        ill = replace(device, health=figures.health, health_reason=figures.reason)
        return replace(finding, device=ill)

    def _measure(self, name: str, driver: Measuring, devices: Sequence[Device]) -> None:
        figures = {}
        for device in devices:
            try:
                figures[device.address] = _understood(driver.usage(device))
            except CyborgError as error:
                LOG.debug('%s is not measured: %s', device.address, error.text)
            except Exception:
                # Figures are a courtesy; nothing may end for the want of them.
                LOG.exception('%s is not measured.', device.address)
        before = self._figures.get(name, {})
        self._figures[name] = figures
        if _healths(before) != _healths(figures):
            self._changed()


def _healths(figures: Mapping[str, Usage]) -> Mapping[str, tuple[Health, str]]:
    return {
        address: (usage.health, usage.reason)
        for address, usage in figures.items()
        if usage.health is not Health.OK
    }


def _understood(said: Usage) -> Usage:
    """As the conductor will read it: it refuses a heartbeat for one wrong figure.

    :raises Exception: it makes no sense
    """
    usage = rounded(wire.load(Usage, wire.dump(said)))
    check_usage(usage)
    return usage


def rounded(usage: Usage) -> Usage:
    """So that noise is no news: each change costs a write in the database."""
    return replace(
        usage,
        busy_percent=_coarse(usage.busy_percent),
        temperature=_coarse(usage.temperature),
        power=_coarse(usage.power),
        memory_used=_whole(usage.memory_used),
    )


def _coarse(value: float | None) -> float | None:
    return None if value is None else float(round(value / _COARSE) * _COARSE)


def _whole(value: int | None) -> int | None:
    return None if value is None else value // (64 * _MIB) * (64 * _MIB)
