# SPDX-License-Identifier: Apache-2.0
"""Intel QuickAssist: virtual functions with the services that the card is set to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.base import Options
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.card_modes import MODES_OPTION, ModesPciDriver
from cyborg_lite.drivers.pci.shared import SharedPciDriver
from cyborg_lite.drivers.qat.services import STATE, ServiceModes, list_service_traits
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Device

# Driver and name of the cards by device id (kernel: adf_accel_devices.h).
_CARDS: Final[Mapping[str, tuple[str, str]]] = {
    '0435': ('dh895xcc', 'QuickAssist DH895xCC'),
    '19e2': ('c3xxx', 'QuickAssist C3xxx'),
    '37c8': ('c6xx', 'QuickAssist C62x'),
    '4940': ('4xxx', 'QuickAssist 4xxx'),
    '4942': ('4xxx', 'QuickAssist 401xx'),
    '4944': ('4xxx', 'QuickAssist 402xx'),
    '4946': ('420xx', 'QuickAssist 420xx'),
}
_RAS: Final = 'qat_ras/errors_'
_SIGNALS: Final = ('qat_correctable', 'qat_nonfatal', 'qat_fatal')
_FIRST_GENERATION: Final = ('0435', '19e2', '37c8')


class IntelQat(ModesPciDriver, SharedPciDriver):
    """Driver for Intel QuickAssist cards."""

    NAME: ClassVar[str] = 'intel_qat_driver'
    MODELS: ClassVar[Mapping[str, str]] = {
        key: name for key, (_, name) in _CARDS.items()
    }
    SIGNALS: ClassVar[Sequence[str]] = (*SharedPciDriver.SIGNALS, *_SIGNALS)
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (*SharedPciDriver.OPTIONS, MODES_OPTION)

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        self.card_modes = ServiceModes(self._writer)

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        return (*super().traits(function), *list_service_traits(function))

    def virtual_count(self, card: PciFunction) -> int:
        """Return the configured number; older cards have all functions or none."""
        count = super().virtual_count(card)
        if count and card.device in _FIRST_GENERATION:
            return card.number('sriov_totalvfs') or count
        return count

    def read_usage(self, device: Device) -> Usage:
        """Return the telemetry with the RAS counters (kernel: sysfs-driver-qat_ras)."""
        card = PciFunction(self._host, device.control_address)
        usage = super().read_usage(device)
        errors = {
            name: count
            for name in _SIGNALS
            if (count := card.number(name.replace('qat_', _RAS))) is not None
        }
        return replace(usage, counters={**usage.counters, **errors})

    def find_fault(self, function: PciFunction) -> str | None:
        driver, _ = _CARDS[function.device]
        if function.driver != driver:
            return f'driver {driver} is not bound'
        errors = function.number('qat_ras/errors_fatal')
        fatal = f'fatal errors: {errors}' if errors else None
        down = f'{STATE} is down' if function.text(STATE) == 'down' else None
        return ', '.join(filter(None, (down, fatal))) or None
