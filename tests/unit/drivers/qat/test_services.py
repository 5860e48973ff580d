# SPDX-License-Identifier: Apache-2.0
"""Tests of the services of QuickAssist cards, which are modes."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.qat.driver import IntelQat
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.inventory.host_report import Device
from tests.hosts.kernel import FakeKernel

_CARD = '0000:e8:00.0'


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    kernel = FakeKernel('qat-services', tmp_path, most_virtual=2)
    kernel.disable(_CARD)
    return kernel


@pytest.fixture
def driver(kernel: FakeKernel) -> IntelQat:
    options = {
        'offer_without_reset': False,
        'virtual_functions': [f'{_CARD}=2'],
        'modes': ['8086:4940 = sym'],
    }
    return IntelQat(Host('compute-1', kernel.root, kernel), options)


def _scan(driver: IntelQat) -> Device:
    devices = (result.device for result in driver.discover())
    return next(item for item in devices if item and item.control_address == _CARD)


def test_modes_show_traits_of_services(driver: IntelQat) -> None:
    device = _scan(driver)
    assert device.root.traits[3:] == ('CUSTOM_QAT_SERVICE_DC',)
    modes = {mode.name: mode for mode in driver.modes(device)}
    assert modes['dc'].is_current
    assert modes['sym'].inventory[0].traits[2] == 'CUSTOM_QAT_SERVICE_SYM'
    assert driver.declared_mode(device) == 'sym'


def test_set_mode_changes_services_while_card_is_down(
    driver: IntelQat, kernel: FakeKernel
) -> None:
    device = driver.set_mode(_scan(driver), 'sym')
    assert device.root.traits[3:] == ('CUSTOM_QAT_SERVICE_SYM',)
    texts = [text for path, text in kernel.written if '/qat/' in path]
    assert texts == ['down', 'sym', 'up']
    with pytest.raises(DriverError, match='has no mode fast'):
        driver.set_mode(device, 'fast')


@pytest.mark.parametrize(('ids', 'has_three'), [('4940', False), ('4948', True)])
def test_modes_have_three_services_from_generation_six(
    driver: IntelQat, kernel: FakeKernel, ids: str, has_three: bool
) -> None:
    directory = kernel.root / f'sys/bus/pci/devices/{_CARD}'
    (directory / 'device').write_text(f'0x{ids}\n')
    names = [mode.name for mode in driver.modes(_scan(driver))]
    assert ('sym;asym;dc' in names) is has_three
    assert 'dcc' in names
