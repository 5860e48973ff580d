# SPDX-License-Identifier: Apache-2.0
"""Tests of cards with services, with a family that is data."""

from pathlib import Path
from typing import ClassVar

import pytest

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.card_services import ServiceCardDriver
from cyborg_lite.exceptions import DriverError
from cyborg_lite.model.inventory import Device
from tests.hosts.kernel import FakeKernel

_CARD = '0000:e8:00.0'


class Cards(ServiceCardDriver):
    """Family whose cards have the files of QuickAssist."""

    NAME: ClassVar[str] = 'cards_driver'
    VENDOR: ClassVar[str] = '8086'
    VENDOR_NAME: ClassVar[str] = 'ACME'
    CLASSES: ClassVar[tuple[str, ...]] = ('0b40',)
    DEVICE_TYPE: ClassVar[str] = 'QAT'
    RESOURCE_CLASS: ClassVar[str] = 'CUSTOM_ACME'
    STATE: ClassVar[str] = 'qat/state'
    SERVICES: ClassVar[str] = 'qat/cfg_services'
    SERVICE_MODES: ClassVar[tuple[str, ...]] = ('dc', 'sym')
    SERVICE_TRAIT: ClassVar[str] = 'ACME_SERVICE'

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        return self.list_service_traits(function)


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    kernel = FakeKernel('qat-services', tmp_path, most_virtual=2)
    kernel.disable(_CARD)
    return kernel


@pytest.fixture
def driver(kernel: FakeKernel) -> Cards:
    options = {
        'offer_without_reset': False,
        'virtual_functions': [f'{_CARD}=2'],
        'modes': ['8086:4940 = sym'],
    }
    return Cards(Host('compute-1', kernel.root, kernel), options)


def _scan(driver: Cards) -> Device:
    devices = (result.device for result in driver.discover())
    return next(item for item in devices if item and item.control_address == _CARD)


def test_modes_show_traits_of_services(driver: Cards) -> None:
    device = _scan(driver)
    assert device.root.traits == ('CUSTOM_ACME_SERVICE_DC',)
    modes = {mode.name: mode for mode in driver.modes(device)}
    assert modes.keys() == {'dc', 'sym'}
    assert modes['dc'].is_current
    assert modes['sym'].inventory[0].traits == ('CUSTOM_ACME_SERVICE_SYM',)
    assert driver.declared_mode(device) == 'sym'


def test_set_mode_changes_services_while_card_is_down(
    driver: Cards, kernel: FakeKernel
) -> None:
    device = driver.set_mode(_scan(driver), 'sym')
    assert device.root.traits == ('CUSTOM_ACME_SERVICE_SYM',)
    texts = [text for path, text in kernel.written if '/qat/' in path]
    assert texts == ['down', 'sym', 'up']
    with pytest.raises(DriverError, match='has no mode asym'):
        driver.set_mode(device, 'asym')


def test_card_that_is_down_is_out_of_order(driver: Cards, kernel: FakeKernel) -> None:
    (kernel.root / 'sys/bus/pci/devices' / _CARD / 'qat/state').write_text('down\n')
    assert _scan(driver).health_reason == 'qat/state is down'
