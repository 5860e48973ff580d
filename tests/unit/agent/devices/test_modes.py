# SPDX-License-Identifier: Apache-2.0
"""Tests of changes and restores of modes, with an emulated QuickAssist card."""

import errno
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from cyborg_lite.agent.devices.modes import Modes, ModeStore
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.qat.driver import IntelQat
from cyborg_lite.drivers.storage.nvme import NvmeDrive
from cyborg_lite.errors.devices import ModeUnknown
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.devices.modes import DeviceModes, ModeOrder
from cyborg_lite.model.inventory.host_report import Deployable, Device, Health
from cyborg_lite.testing.preparation_checks import build_handle
from tests.builders.agent_parts import AgentParts
from tests.hosts.kernel import FakeKernel
from tests.hosts.nvme_tools import NvmeKernel

_CARD = '0000:e8:00.0'  # compression; its virtual functions are free


class Agent(AgentParts):
    """The components of one agent process."""

    def __init__(self, kernel: FakeKernel) -> None:
        state = kernel.root / 'var/lib/agent'
        host = Host('compute-1', kernel.root, kernel)
        options = {
            'offer_without_reset': False,
            'virtual_functions': [f'{_CARD}=4'],
            'virtual_functions_at_start': True,
            'modes': [f'compute-2/{_CARD} = sym', '8086:4940 = asym;sym'],
        }
        driver = IntelQat(host, options)
        super().__init__(host, {driver.NAME: driver}, state, longest_wait=1.0)
        self.modes = Modes(self.discovery, self.cache, ModeStore(state), self.locks)
        self.recovery.restore_mode = self.modes.restore

    def set_mode(self, mode: str, moment: int = 0) -> Device:
        return self.modes.set_mode(ModeOrder(_CARD, mode, moment))

    def listing(self) -> DeviceModes:
        (listing,) = (item for item in self.modes.list_modes() if item.address == _CARD)
        return listing

    def current(self) -> list[str]:
        return [mode.name for mode in self.listing().modes if mode.is_current]

    def device(self) -> Device:
        results = (result.device for result in self.discovery.scan())
        (device,) = (item for item in results if item is not None and _is_card(item))
        return device


def _is_card(device: Device) -> bool:
    return device.control_address == _CARD


def _services(kernel: FakeKernel) -> str:
    file = kernel.root / f'sys/bus/pci/devices/{_CARD}/qat/cfg_services'
    return file.read_text().strip()


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('qat-services', tmp_path, most_virtual=4)


Start = Callable[[], Agent]


@pytest.fixture
def start(kernel: FakeKernel) -> Start:
    return lambda: Agent(kernel)


def test_list_modes_shows_inventory_and_declaration(start: Start) -> None:
    listing = start().listing()
    assert (listing.declared, listing.stored) == ('sym;asym', None)
    planned = {mode.name: mode.inventory for mode in listing.modes}
    assert planned['dc'] == listing.inventory
    (item,) = planned['sym;asym']
    assert (item.resource_class, item.total) == ('CUSTOM_QAT', 4)
    services = {trait for trait in item.traits if 'SERVICE' in trait}
    assert services == {'CUSTOM_QAT_SERVICE_ASYM', 'CUSTOM_QAT_SERVICE_SYM'}


def test_set_mode_changes_services_and_report(kernel: FakeKernel, start: Start) -> None:
    agent = start()
    device = agent.set_mode('sym;asym')
    assert _services(kernel) == 'sym;asym'
    assert 'CUSTOM_QAT_SERVICE_SYM' in device.root.traits
    assert device in agent.discovery.report().devices
    assert (agent.current(), agent.listing().stored) == (['sym;asym'], 'sym;asym')


def test_set_mode_failed_step_is_rolled_back(kernel: FakeKernel, start: Start) -> None:
    agent = start()
    kernel.refuse('cfg_services', errno.EINVAL)
    with pytest.raises(DriverError, match='cfg_services cannot be set'):
        agent.set_mode('sym')
    assert agent.device().health is Health.OK
    assert (agent.current(), agent.listing().stored) == (['dc'], None)


def test_set_mode_failed_rollback_is_unknown(kernel: FakeKernel, start: Start) -> None:
    agent = start()
    kernel.break_off('cfg_services')
    with pytest.raises(ModeUnknown, match='The rollback failed'):
        agent.set_mode('sym')
    assert agent.current() == []
    kernel.repair()
    agent.set_mode('sym')
    assert agent.current() == ['sym']


def test_set_mode_prepared_handle_is_busy(kernel: FakeKernel, start: Start) -> None:
    agent = start()
    device = agent.device()
    agent.cache.add_handles([build_handle(device, device.root, device.root.handles[0])])
    with pytest.raises(DeviceBusy, match='ARQ'):
        agent.set_mode('sym')
    assert _services(kernel) == 'dc'


def test_set_mode_open_function_is_busy(kernel: FakeKernel, start: Start) -> None:
    group = kernel.root / f'sys/bus/pci/devices/{_CARD}/virtfn0/iommu_group'
    kernel.open(f'/dev/vfio/{group.resolve().name}')
    with pytest.raises(DeviceBusy, match='a guest uses'):
        start().set_mode('sym')
    assert _services(kernel) == 'dc'


def test_set_mode_stale_order_is_refused(start: Start) -> None:
    agent = start()
    agent.set_mode('sym', moment=2)
    with pytest.raises(DriverError, match='by a later call'):
        agent.set_mode('dc', moment=1)
    assert agent.current() == ['sym']


def test_reboot_restores_mode_before_functions(
    kernel: FakeKernel, start: Start
) -> None:
    start().set_mode('sym;asym')
    kernel.reboot()
    kernel.written.clear()
    assert _services(kernel) == 'dc'
    agent = start()
    agent.modes.restore_all()
    assert _services(kernel) == 'sym;asym'
    # The kernel refuses other services while virtual functions are in use.
    names = [path.rpartition('/')[2] for path, _ in kernel.written if _CARD in path]
    assert names.index('cfg_services') < names.index('sriov_numvfs')
    assert agent.device().root.total == 4


def test_reboot_failed_restore_holds_handles_back(
    kernel: FakeKernel, start: Start
) -> None:
    agent = start()
    device = agent.set_mode('sym;asym')
    handle = build_handle(device, device.root, device.root.handles[0])
    agent.preparation.prepare([handle])
    kernel.reboot()
    kernel.break_off('cfg_services')
    agent = start()
    agent.modes.restore_all()
    (result,) = (item for item in agent.discovery.results if item.address == _CARD)
    amended = agent.modes.amend(result).device
    assert amended is not None
    assert 'cfg_services cannot be set' in amended.health_reason
    stopping = threading.Event()
    stopping.set()
    agent.recovery.rebuild(stopping, 0.0)
    assert agent.cache.handles[handle.uuid].boot_id != agent.discovery.host.boot_id
    kernel.repair()
    agent.modes.restore_all()
    agent.recovery.rebuild(stopping, 0.0)
    assert agent.cache.handles[handle.uuid].boot_id == agent.discovery.host.boot_id
    assert _services(kernel) == 'sym;asym'


def test_restore_does_not_wait_for_stuck_device(start: Start) -> None:
    """The scans of the host follow in the same thread."""
    agent = start()
    agent.set_mode('sym')
    wait = agent.locks.lock

    def lock(address: str) -> AbstractContextManager[None]:
        assert address != _CARD
        return wait(address)

    with wait(_CARD), patch.object(agent.locks, 'lock', lock):
        assert not agent.modes.restore_all()
    results = (agent.modes.amend(result) for result in agent.discovery.scan())
    devices = [result.device for result in results if result.device is not None]
    assert {device.health for device in devices} == {Health.OK}


def test_restore_hung_driver_costs_its_device_only(
    kernel: FakeKernel, start: Start
) -> None:
    start().set_mode('sym')
    kernel.reboot()
    agent, returned = start(), threading.Event()

    def hang(*_: object) -> None:
        returned.wait()
        raise DriverError(reason='It returned.')

    with patch.object(IntelQat, 'set_mode', hang):
        agent.modes.restore_all(0.5)
        assert not agent.modes.restore_all(0.5)  # does not call the driver again
        results = (agent.modes.amend(result) for result in agent.discovery.results)
        devices = [result.device for result in results if result.device is not None]
        failed = [item for item in devices if item.health is Health.FAILED]
        assert [item.control_address for item in failed] == [_CARD]
        assert 'has not returned' in failed[0].health_reason
        assert len(devices) > 1
        (thread,) = (t for t in threading.enumerate() if t.name == f'modes-{_CARD}')
        returned.set()
        thread.join()
    agent.modes.restore_all()
    assert agent.current() == ['sym']


def test_modes_that_a_device_keeps_are_never_restored(tmp_path: Path) -> None:
    kernel = NvmeKernel('nvme-lvm', tmp_path)
    host = Host('compute-1', kernel.root, kernel)
    options = {'offer_without_reset': False, 'drives': ['*']}
    driver = NvmeDrive(host, {**options, 'modes': ['* = namespaces-2']})
    parts = AgentParts(host, {driver.NAME: driver}, tmp_path / 'state')
    store = ModeStore(tmp_path / 'state')
    modes = Modes(parts.discovery, parts.cache, store, parts.locks)
    device = modes.set_mode(ModeOrder('0000:c2:00.0', 'namespaces-4'))
    # An instance that owns the drive creates its own namespaces.
    driver.set_mode(device, 'namespaces-2')
    kernel.tools.commands.clear()
    assert not modes.restore_all()
    assert kernel.tools.commands == []


def test_store_follows_card_whose_serial_number_appears(tmp_path: Path) -> None:
    without = Device('GPU', '10de', 'T4', 'NVIDIA', _CARD, _CARD, Deployable('card'))
    with_serial = replace(without, hardware_id='GPU-1')
    store = ModeStore(tmp_path)
    store.save(without, 'sym', pending='dc')
    store.save(with_serial, 'dc')
    # The serial number cannot be read yet after a reboot.
    for device in (with_serial, without):
        entry = ModeStore(tmp_path).find(device)
        assert entry is not None
        assert (entry.mode, entry.pending) == ('dc', '')
