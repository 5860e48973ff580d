# SPDX-License-Identifier: Apache-2.0
"""Tests of vGPUs with an emulated kernel: mdevs, changes, reboots, lost cards."""

import errno
import shutil
from dataclasses import replace

import pytest

from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.errors.drivers import DeviceBusy, DeviceHangs, DriverError
from cyborg_lite.model.inventory.host_report import Health
from tests.hosts.pci_links import bind_driver
from tests.hosts.scans import find_device
from tests.hosts.vgpu_bench import MakeBench, VgpuBench

_T4 = '0000:af:00.0'
_A100 = '0000:41:00.0'
_L40S = '0000:82:00.0'
_OWN = '1ae6d6ce-4f2a-4a52-9d0c-0f5f2e7a1001'
_FOREIGN = 'c0ffee00-0000-4000-8000-00000000beef'


@pytest.fixture
def t4(make: MakeBench) -> VgpuBench:
    return make('t4-mdev', f'{_T4}=nvidia-231')


def test_discover_foreign_mdevs_are_reserved(t4: VgpuBench) -> None:
    assert (t4.root(_T4).total, t4.root(_T4).reserved) == (8, 2)
    handle = t4.handle(_T4)
    t4.restart(replace(handle, uuid=_OWN))
    device = t4.device(_T4)
    assert (device.root.total, device.root.reserved) == (8, 1)
    assert device.health_reason == f'vGPUs of another program: {_FOREIGN}'


def test_discover_own_mdev_is_not_reserved(t4: VgpuBench) -> None:
    before = t4.root(_T4)
    t4.driver.prepare(t4.handle(_T4))
    assert t4.root(_T4) == before


def test_release_lost_mdev_removes_definition(t4: VgpuBench) -> None:
    handle = t4.handle(_T4)
    definition = t4.kernel.define(_T4, handle.uuid, 'nvidia-231')
    t4.driver.release(handle)
    assert not definition.exists()


def test_prepare_removes_definition_and_keeps_mdev(t4: VgpuBench) -> None:
    handle = t4.handle(_T4)
    definition = t4.kernel.define(_T4, handle.uuid, 'nvidia-231')
    t4.driver.prepare(handle)
    assert handle.uuid in t4.mdevs()
    assert not definition.exists()


def test_prepare_failure_removes_definition(t4: VgpuBench) -> None:
    """A definition that nova-compute cannot start would prevent its start."""
    handle = t4.handle(_T4)
    definition = t4.kernel.define(_T4, handle.uuid, 'nvidia-231')
    t4.kernel.refuse('/create', errno.EIO)
    with pytest.raises(DeviceBusy):
        t4.driver.prepare(handle)
    assert not definition.exists()


def test_release_definition_not_removable_succeeds(t4: VgpuBench) -> None:
    handle = t4.prepare(_T4)
    definition = t4.kernel.define(_T4, handle.uuid, 'nvidia-231')
    t4.kernel.refuse('mdevctl', errno.EACCES)
    t4.driver.release(handle)
    assert definition.exists()
    assert handle.uuid not in t4.mdevs()


def test_definition_that_stays_is_logged(
    t4: VgpuBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """mdevctl exits with 0 although its directory is read-only."""
    handle = t4.prepare(_T4)
    t4.kernel.define(_T4, handle.uuid, 'nvidia-231')
    monkeypatch.setattr(t4.kernel, '_undefine', lambda *arguments: (0, ''))
    t4.driver.release(handle)
    assert 'its mdev returns at the next boot: exit status 0' in caplog.text


def test_creates_mdevs_off_leaves_guest_mdev_to_nova(t4: VgpuBench) -> None:
    options = {'vgpu_types': [f'{_T4}=nvidia-231'], 'creates_mdevs': False}
    driver = NvidiaGpu(t4.host, options)
    handle = t4.handle(_T4)
    driver.prepare(handle)
    assert handle.uuid not in t4.mdevs()
    assert driver.is_prepared(handle)
    for_host = replace(handle, for_guest=False)
    assert not driver.is_prepared(for_host)
    driver.prepare(for_host)  # in place of Nova
    definition = t4.kernel.define(_T4, handle.uuid, 'nvidia-231')
    driver.prepare(handle)
    assert definition.exists()
    driver.release(handle)
    assert handle.uuid not in t4.mdevs()
    assert not definition.exists()


def test_prepare_uuid_of_other_mdev_raises(t4: VgpuBench) -> None:
    info = {**t4.handle(_T4).info, 'asked_type': 'nvidia-234'}
    handle = replace(t4.handle(_T4), uuid=_FOREIGN, info=info)
    with pytest.raises(
        DriverError, match=r'exists on 0000:af:00\.0 with type nvidia-231'
    ):
        t4.driver.prepare(handle)
    t4.driver.release(handle)
    assert _FOREIGN in t4.mdevs()


def test_prepare_incompatible_type_raises_busy(t4: VgpuBench) -> None:
    info = {**t4.handle(_T4).info, 'asked_type': 'nvidia-234'}
    handle = replace(t4.handle(_T4), info=info)
    with pytest.raises(DeviceBusy, match='no mdev of nvidia-234 can be created'):
        t4.driver.prepare(handle)


def test_release_mdev_in_use_raises_busy(t4: VgpuBench) -> None:
    """The kernel would block until the guest ends."""
    handle = t4.prepare(_T4)
    group = t4.host.target(f'sys/bus/mdev/devices/{handle.uuid}/iommu_group')
    link = t4.kernel.open(f'/dev/vfio/{group}')
    changes = len(t4.kernel.written)
    with pytest.raises(DeviceBusy, match='open in process 4242'):
        t4.driver.release(handle)
    assert len(t4.kernel.written) == changes
    link.unlink()
    t4.driver.release(handle)
    assert handle.uuid not in t4.mdevs()


def test_prepare_hanging_change_raises_device_hangs(make: MakeBench) -> None:
    bench = make('t4-mdev', f'{_T4}=nvidia-231', timeout=2.0)
    handle = bench.handle(_T4)
    resume = bench.kernel.hang('create')
    with pytest.raises(DeviceHangs, match=f'{_T4} hangs: write to create'):
        bench.driver.prepare(handle)
    # The change may still succeed. Then the vGPU is not foreign.
    assert bench.root(_T4).reserved == 2
    resume.set()


@pytest.mark.parametrize('number', [errno.ENOENT, errno.ENODEV])
def test_release_vanished_mdev_succeeds(t4: VgpuBench, number: int) -> None:
    handle = t4.prepare(_T4)
    t4.kernel.refuse('remove', number)
    t4.driver.release(handle)


def test_discover_new_type_applies_after_last_release(make: MakeBench) -> None:
    bench = make('t4-mdev', '0000:3b:00.0=T4-2Q')
    handle = bench.prepare('0000:3b:00.0')
    bench.restart(handle, rules=('0000:3b:00.0=T4-8Q',))
    device = bench.device('0000:3b:00.0')
    assert device.root.attributes['vgpu_type'] == 'T4_2Q'
    assert device.health_reason == (
        'The change to T4_8Q is refused while 1 vGPUs of T4_2Q are in use'
    )
    bench.driver.release(handle)
    device = bench.device('0000:3b:00.0')
    assert (device.root.attributes['vgpu_type'], device.root.total) == ('T4_8Q', 2)
    assert device.health_reason == ''


def test_discover_card_is_whole_after_last_release(make: MakeBench) -> None:
    bench = make('t4-mdev', '0000:3b:00.0=T4-2Q')
    handle = bench.prepare('0000:3b:00.0')
    bench.restart(handle, rules=('0000:3b:00.0=whole',))
    device = bench.device('0000:3b:00.0')
    assert device.root.resource_class == 'VGPU'
    assert device.health_reason.startswith(
        'The change to a whole card is refused while 1'
    )
    bench.driver.release(handle)
    assert bench.root('0000:3b:00.0').resource_class == 'PGPU'


def test_discover_vgpus_have_configured_class(t4: VgpuBench) -> None:
    own_class = 'CUSTOM_CYBORG_VGPU'
    options = {'vgpu_types': [f'{_T4}=nvidia-231'], 'vgpu_resource_class': own_class}
    driver = NvidiaGpu(t4.host, options)
    device, before = find_device(driver, _T4), t4.device(_T4)
    assert device.root.resource_class == own_class
    assert device.root.total == before.root.total
    assert driver.read_usage(device).units_total == device.root.total


def test_discover_foreign_type_blocks_card(make: MakeBench) -> None:
    bench = make('t4-mdev', f'{_T4}=T4-16Q')
    device = bench.device(_T4)
    assert device.health is Health.BUSY
    assert (device.root.total, device.root.reserved) == (1, 1)
    assert device.health_reason.startswith(
        'in use by another program: 2 vGPUs of T4_2Q'
    )


def test_discover_card_with_guest_stays_whole(make: MakeBench) -> None:
    bench = make('t4-mdev', '0000:3b:00.0=T4-2Q')
    directory = bench.host.root / 'sys/bus/pci/devices/0000:3b:00.0'
    shutil.rmtree(directory / 'mdev_supported_types')
    bind_driver(bench.host, '0000:3b:00.0', 'vfio-pci')
    device = bench.device('0000:3b:00.0')
    assert (device.root.resource_class, device.root.reserved) == ('PGPU', 1)
    assert 'refused while it is bound to vfio' in device.health_reason


@pytest.mark.parametrize(
    ('name', 'rule', 'file'),
    [
        ('a100-sriov-mig', f'{_A100}=nvidia-471', 'mdev_supported_types'),
        ('l40s-vendor-vfio', f'{_L40S}=1155', 'nvidia'),
    ],
)
def test_discover_unusable_vf_is_marked_in_use(
    make: MakeBench, name: str, rule: str, file: str
) -> None:
    bench = make(name, rule)
    card = rule.partition('=')[0]
    second = f'{card[:-1]}5'
    path = bench.host.root / f'sys/bus/pci/devices/{second}' / file
    path.rename(path.with_name('gone'))
    device = bench.device(card)
    in_use = {
        handle.key.partition('/')[0] for handle in device.root.handles if handle.in_use
    }
    assert in_use == {f'{card[:-1]}4', second}
    assert device.health_reason.endswith(f'no vGPU can be created on {second}')


@pytest.mark.parametrize('rule', [f'{_A100[:-1]}5=nvidia-471', '0000:41:00.4=471'])
def test_discover_rule_may_name_virtual_function(make: MakeBench, rule: str) -> None:
    """Nova and Cyborg name an Ampere card by its virtual functions only."""
    bench = make('a100-sriov-mig', rule)
    assert bench.root(_A100).attributes['vgpu_type'] == 'A100_10C'
    # The rule also applies while the virtual functions are disabled.
    bench.kernel.reboot()
    assert bench.device(_A100).root.resource_class != 'PGPU'


def test_discover_lost_card_is_reserved(t4: VgpuBench) -> None:
    total = t4.root(_T4).total
    t4.kernel.lose(_T4)
    device = t4.device(_T4)
    assert device.health is Health.FAILED
    assert (device.root.total, device.root.reserved) == (total, total)
    assert t4.driver.read_usage(device).health is Health.FAILED


def test_discover_card_without_driver_is_failed(t4: VgpuBench) -> None:
    before = t4.root(_T4)
    directory = t4.host.root / f'sys/bus/pci/devices/{_T4}'
    (directory / 'driver').unlink()
    (directory / 'mdev_supported_types').rename(directory / 'gone')
    device = t4.device(_T4)
    assert device.health is Health.FAILED
    assert device.health_reason == 'driver nvidia is not bound to it'
    assert (device.root.handles, device.root.reserved) == (before.handles, before.total)


def test_read_usage_counts_existing_vgpus(t4: VgpuBench) -> None:
    usage = t4.driver.read_usage(t4.device(_T4))
    assert (usage.health, usage.units_used, usage.units_total) == (Health.OK, 2, 8)
    assert usage.counters == {'correctable': 0, 'nonfatal': 0, 'fatal': 0}
