# SPDX-License-Identifier: Apache-2.0
"""GPUs that share themselves as plain virtual functions."""

from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers.amd_gpu import AmdGpu
from cyborg_lite.drivers.intel_gpu import IntelGpu
from cyborg_lite.drivers.kit_preparing import handle_of
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import DeviceBusy
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Device, Health
from tests.fakes.kernel import FakeKernel

_FLEX = '0000:d9:00.0'
_INSTINCT = '0000:c8:00.0'


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('generic-pci', tmp_path)


# Any: as the options of drivers are.
def _intel(kernel: FakeKernel, **options: Any) -> IntelGpu:
    host = Host('compute-1', kernel.root, kernel)
    return IntelGpu(host, {'offer_without_reset': False, **options})


def _device(driver: IntelGpu | AmdGpu) -> Device:
    (device,) = (each.device for each in driver.discover() if each.device)
    return device


def _handles(device: Device) -> list[HeldHandle]:
    return [handle_of(device, device.root, unit) for unit in device.root.units]


def test_functions_that_are_there_are_offered_as_they_are(kernel: FakeKernel) -> None:
    root = _device(_intel(kernel)).root
    assert [unit.key for unit in root.units] == ['0000:d9:00.1', '0000:d9:00.2']
    assert not any(unit.needs_host for unit in root.units)


def test_one_that_the_host_uses_is_given_to_nobody(kernel: FakeKernel) -> None:
    function = kernel.root / 'sys/bus/pci/devices/0000:d9:00.2'
    (kernel.root / 'sys/bus/pci/drivers/uio_pci_generic').mkdir()
    (function / 'driver').unlink()
    (function / 'driver').symlink_to('../../../../bus/pci/drivers/uio_pci_generic')
    driver = _intel(kernel)
    assert [unit.key for unit in _device(driver).root.units] == ['0000:d9:00.1']
    reasons = {each.address: each.reason for each in driver.discover()}
    assert reasons['0000:d9:00.2'].endswith('bound to uio_pci_generic')


def test_a_card_without_them_is_whole(kernel: FakeKernel) -> None:
    kernel.disable(_FLEX)
    assert _device(_intel(kernel)).root.resource_class == 'PGPU'


def test_they_come_with_the_first_server_and_go_with_the_last(
    kernel: FakeKernel,
) -> None:
    kernel.disable(_FLEX)
    driver = _intel(kernel, virtual_functions=['8086:56c0 = 4'])
    before = _device(driver)
    first, second, *_ = _handles(before)
    driver.prepare(first)
    driver.prepare(second)
    assert _device(driver).root == before.root
    assert [text for _, text in kernel.written] == ['0', '4']
    driver.release(second)
    assert [text for _, text in kernel.written] == ['0', '4']
    driver.release(first)
    assert [text for _, text in kernel.written] == ['0', '4', '0']


def test_they_stay_while_a_guest_has_one(kernel: FakeKernel) -> None:
    """To take them away succeeds at once, and takes the guest's too."""
    kernel.disable(_FLEX)
    driver = _intel(kernel, virtual_functions=['8086:56c0=4'])
    first, *_ = _handles(_device(driver))
    driver.prepare(first)
    kernel.open('/dev/vfio/143')
    driver.release(first)
    assert kernel.written[-1][1] == '4'


def test_another_number_than_is_there_is_not_forced(kernel: FakeKernel) -> None:
    driver = _intel(kernel, virtual_functions=['8086:56c0=4'])
    device = _device(driver)
    assert device.root.total == 2
    wanted = HeldHandle(
        **{
            **{n: getattr(_handles(device)[0], n) for n in HeldHandle.__slots__},
            'info': {'domain': '0000', 'bus': 'd9', 'device': '00', 'function': '4'},
        }
    )
    with pytest.raises(DeviceBusy, match='2 virtual functions that others made'):
        driver.prepare(wanted)
    assert kernel.written == []


def test_more_than_the_card_can_have_is_not_offered(kernel: FakeKernel) -> None:
    kernel.disable(_FLEX)
    device = _device(_intel(kernel, virtual_functions=['8086:56c0=32']))
    assert device.root.resource_class is None
    assert device.health_reason == 'it cannot have 32 virtual functions'


def test_figures_of_an_amd_card_come_from_its_driver(kernel: FakeKernel) -> None:
    host = Host('compute-1', kernel.root, kernel)
    driver = AmdGpu(host, {'offer_without_reset': False})
    usage = driver.usage(_device(driver))
    assert (usage.health, usage.busy_percent) == (Health.OK, 3)
    assert (usage.memory_used, usage.memory_total) == (10960896, 68702699520)
    assert (usage.temperature, usage.power) == (38.0, 41.0)


def test_an_amd_card_keeps_its_serial_while_a_guest_has_it(kernel: FakeKernel) -> None:
    host = Host('compute-1', kernel.root, kernel)
    driver = AmdGpu(host, {'offer_without_reset': False})
    before = _device(driver)
    assert before.hardware_id == 'e0a9b1f4c3d20001'
    (host.root / f'sys/bus/pci/devices/{_INSTINCT}/unique_id').unlink()
    assert _device(driver) == before
