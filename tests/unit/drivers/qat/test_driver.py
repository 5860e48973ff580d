# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for Intel QuickAssist cards."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.qat.driver import IntelQat
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.inventory.host_report import Health
from tests.hosts.kernel import FakeKernel
from tests.hosts.pci_links import bind_driver
from tests.hosts.scans import find_device, scan

_CARD, _BROKEN = '0000:6b:00.0', '0000:70:00.0'
_SHARED = '0000:e8:00.0'


def _driver(kernel: FakeKernel, *rules: str) -> IntelQat:
    host = Host('compute-1', kernel.root, kernel)
    options = {'offer_without_reset': False, 'virtual_functions': rules}
    return IntelQat(host, options)


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('qat-x710', tmp_path)


@pytest.fixture
def services(tmp_path: Path) -> FakeKernel:
    kernel = FakeKernel('qat-services', tmp_path, most_virtual=2)
    kernel.disable(_SHARED)
    return kernel


def test_discover_card_down_is_failed(kernel: FakeKernel) -> None:
    device = find_device(_driver(kernel), _BROKEN)
    assert device.health is Health.FAILED
    assert device.health_reason == 'qat/state is down, fatal errors: 1'
    assert device.root.handles == ()


def test_discover_fatal_error_reserves_shared_card(kernel: FakeKernel) -> None:
    errors = kernel.root / f'sys/bus/pci/devices/{_CARD}/qat_ras/errors_fatal'
    errors.write_text('2\n')
    device = find_device(_driver(kernel), _CARD)
    assert device.health_reason == 'fatal errors: 2'
    assert (device.root.resource_class, device.root.total) == ('CUSTOM_QAT', 16)
    assert device.root.unavailable == 16


def test_discover_without_host_driver_is_failed(kernel: FakeKernel) -> None:
    (kernel.root / f'sys/bus/pci/devices/{_CARD}/driver').unlink()
    assert scan(_driver(kernel))[_CARD].reason == 'driver 4xxx is not bound'


def test_discover_old_generation_counts_all_functions(services: FakeKernel) -> None:
    """The kernel ignores the number for these cards."""
    directory = services.root / f'sys/bus/pci/devices/{_SHARED}'
    (directory / 'device').write_text('0x37c8\n')
    bind_driver(Host('compute-1', services.root), _SHARED, 'c6xx')
    device = find_device(_driver(services, '8086:37c8=4'), _SHARED)
    assert device.root.total == 16


# --- services, which are modes ---


@pytest.fixture
def driver(services: FakeKernel) -> IntelQat:
    options = {
        'offer_without_reset': False,
        'virtual_functions': [f'{_SHARED}=2'],
        'modes': ['8086:4940 = sym'],
    }
    return IntelQat(Host('compute-1', services.root, services), options)


def test_set_mode_changes_services_while_card_is_down(
    driver: IntelQat, services: FakeKernel
) -> None:
    device = driver.set_mode(find_device(driver, _SHARED), 'sym')
    assert device.root.traits[3:] == ('CUSTOM_QAT_SERVICE_SYM',)
    texts = [text for path, text in services.written if '/qat/' in path]
    assert texts == ['down', 'sym', 'up']
    with pytest.raises(DriverError, match='has no mode fast'):
        driver.set_mode(device, 'fast')


@pytest.mark.parametrize(('ids', 'has_three'), [('4940', False), ('4948', True)])
def test_modes_have_three_services_from_generation_six(
    driver: IntelQat, services: FakeKernel, ids: str, has_three: bool
) -> None:
    directory = services.root / f'sys/bus/pci/devices/{_SHARED}'
    (directory / 'device').write_text(f'0x{ids}\n')
    names = [mode.name for mode in driver.modes(find_device(driver, _SHARED))]
    assert ('sym;asym;dc' in names) is has_three
    assert 'dcc' in names
