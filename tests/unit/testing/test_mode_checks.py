# SPDX-License-Identifier: Apache-2.0
"""Checks of modes accept the drivers of the package and describe wrong ones."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.drivers.qat import IntelQat
from cyborg_lite.exceptions import DriverError
from cyborg_lite.model.inventory import Device, DiscoveryResult
from cyborg_lite.model.modes import DeviceMode, OfferedInventory
from cyborg_lite.testing import mode_checks
from cyborg_lite.testing.cloud import Scenario
from cyborg_lite.testing.driver_checks import Bench, ConformanceError
from tests.doubles.file_driver import FileDriver, build_bench
from tests.hosts.driver_benches import LOOKING, MODES, on_demand_bench

Check = Callable[[Bench, Path], None]


class WithModes(FileDriver):
    """Driver whose mode is written in two steps."""

    def discover(self) -> Iterator[DiscoveryResult]:
        for result in super().discover():
            device = result.device
            assert device is not None
            traits = f'CUSTOM_MODE_{(self.host.text("mode") or "a").upper()}'
            root = replace(device.root, traits=('OWNER_CYBORG', traits))
            yield replace(result, device=replace(device, root=root))

    def modes(self, device: Device) -> Sequence[DeviceMode]:
        return [
            DeviceMode(
                name,
                (OfferedInventory('FPGA', 2, (f'CUSTOM_MODE_{name.upper()}',)),),
                self.has_mode(device, name),
            )
            for name in ('a', 'b')
        ]

    def has_mode(self, device: Device, mode: str) -> bool:
        return not self.host.has('open') and (self.host.text('mode') or 'a') == mode

    def declared_mode(self, device: Device) -> str | None:
        return None

    def set_mode(self, device: Device, mode: str) -> Device:
        for path, text in (('open', 'yes'), ('mode', mode), ('open', '')):
            self.host.kernel.write(self.host.root, path, text)
        (result,) = self.discover()
        assert result.device is not None
        return result.device


# The many layouts of MIG would take long; the tests of the driver set some.
@pytest.mark.parametrize(
    ('driver', 'check'),
    [
        (driver, check)
        for driver in MODES
        for check in mode_checks.MODE_CHECKS[: 1 if driver == 'MIG' else None]
    ],
    ids=lambda value: getattr(value, '__name__', value),
)
def test_mode_checks_pass_for_every_driver(
    check: Check, driver: str, tmp_path: Path
) -> None:
    check(MODES[driver], tmp_path)


def test_mode_change_survives_crashes(tmp_path: Path) -> None:
    mode_checks.check_mode_change_survives_crashes(
        Scenario(build_bench(WithModes), number=1), tmp_path
    )


class Careless(IntelQat):
    """Driver that leaves the card down after a failure, and does not start it."""

    def set_mode(self, device: Device, mode: str) -> Device:
        card = f'sys/bus/pci/devices/{device.control_address}/qat'
        if self._host.text(f'{card}/state') == 'down':
            raise DriverError(reason='The card is down.')
        return super().set_mode(device, mode)


def test_careless_driver_is_detected(tmp_path: Path) -> None:
    careless = on_demand_bench(Careless, 'qat-services', '0000:e8:00.0')
    with pytest.raises(DriverError, match=r'The card is down\.'):
        mode_checks.check_failed_set_mode_is_undone(careless, tmp_path)


def test_driver_without_modes_is_detected(tmp_path: Path) -> None:
    with pytest.raises(ConformanceError, match='no modes and set_mode'):
        mode_checks.check_modes_are_read_only(LOOKING['fake'], tmp_path)
