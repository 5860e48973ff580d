# SPDX-License-Identifier: Apache-2.0
"""Checks of modes accept the drivers of the package and describe wrong ones."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.qat.driver import IntelQat
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.inventory.host_report import Device
from cyborg_lite.testing import mode_checks
from cyborg_lite.testing.driver_checks import ConformanceError
from tests.hosts.driver_benches import LOOKING, on_demand_bench


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
