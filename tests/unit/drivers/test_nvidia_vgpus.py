# SPDX-License-Identifier: Apache-2.0
"""vGPUs through their lives, on an emulated kernel: mdevs, changes, reboots, losses."""

import errno
from typing import Any

import pytest

from cyborg_lite.exceptions import DeviceBusy, DeviceHangs, DriverError
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Health
from tests.unit.drivers.vgpu_bench import MakeBench, VgpuBench

_T4 = '0000:af:00.0'
_A100 = '0000:41:00.0'
_L40S = '0000:82:00.0'
_OFF = '0000:c3:00.0'
_OURS = '1ae6d6ce-4f2a-4a52-9d0c-0f5f2e7a1001'
_STRANGER = 'c0ffee00-0000-4000-8000-00000000beef'


@pytest.fixture
def t4(make: MakeBench) -> VgpuBench:
    return make('t4-mdev', f'{_T4}=nvidia-231')


# --- mdevs of the card ------------------------------------------------------------


def test_an_mdev_is_made_under_the_uuid_of_its_handle(t4: VgpuBench) -> None:
    handle = t4.handle(_T4)
    t4.driver.prepare(handle)
    assert t4.mdevs() == {_OURS, _STRANGER, handle.uuid}
    mdev = f'sys/bus/mdev/devices/{handle.uuid}'
    assert t4.host.target(f'{mdev}/mdev_type') == 'nvidia-231'
    assert t4.host.target(f'{mdev}/..') == _T4
    t4.driver.release(handle)
    assert t4.mdevs() == {_OURS, _STRANGER}


def test_what_others_made_counts_as_used_and_is_left_alone(t4: VgpuBench) -> None:
    assert (t4.root(_T4).total, t4.root(_T4).reserved) == (8, 2)
    ours = t4.handle(_T4)
    remembered = HeldHandle(**{**_fields(ours), 'uuid': _OURS})
    t4.restart(remembered)
    device = t4.device(_T4)
    assert (device.root.total, device.root.reserved) == (8, 1)
    assert device.health_reason == f'not made by this service: {_STRANGER}'


def test_an_mdev_of_ours_never_counts_as_a_strangers(t4: VgpuBench) -> None:
    before = t4.root(_T4)
    t4.driver.prepare(t4.handle(_T4))
    assert t4.root(_T4) == before


def test_the_same_mdev_made_by_another_in_between_is_no_error(t4: VgpuBench) -> None:
    """Mdevctl may bring it back at boot, before the agent does."""
    handle = t4.handle(_T4)
    t4.driver.prepare(handle)
    t4.restart()
    t4.driver.prepare(handle)
    assert len(t4.mdevs()) == 3


def test_a_uuid_that_is_another_mdev_is_refused_and_not_touched(t4: VgpuBench) -> None:
    handle = HeldHandle(
        **{
            **_fields(t4.handle(_T4)),
            'uuid': _STRANGER,
            'info': {**t4.handle(_T4).info, 'asked_type': 'nvidia-234'},
        }
    )
    with pytest.raises(
        DriverError, match=r'exists on 0000:af:00\.0 of type nvidia-231'
    ):
        t4.driver.prepare(handle)
    t4.driver.release(handle)
    assert _STRANGER in t4.mdevs()


def test_a_type_that_cannot_run_beside_the_others_is_busy(t4: VgpuBench) -> None:
    info = {**t4.handle(_T4).info, 'asked_type': 'nvidia-234'}
    handle = HeldHandle(**{**_fields(t4.handle(_T4)), 'info': info})
    with pytest.raises(DeviceBusy, match='no mdev of nvidia-234 can be made'):
        t4.driver.prepare(handle)


def test_an_mdev_that_a_guest_has_is_not_even_asked_to_go(t4: VgpuBench) -> None:
    """The kernel would block for as long as the guest lives."""
    handle = t4.handle(_T4)
    t4.driver.prepare(handle)
    group = t4.host.target(f'sys/bus/mdev/devices/{handle.uuid}/iommu_group')
    link = t4.kernel.open(f'/dev/vfio/{group}')
    changes = len(t4.kernel.written)
    with pytest.raises(DeviceBusy, match='open in process 4242'):
        t4.driver.release(handle)
    assert len(t4.kernel.written) == changes
    link.unlink()
    t4.driver.release(handle)
    assert handle.uuid not in t4.mdevs()


def test_a_change_that_hangs_is_given_up_and_names_its_card(make: MakeBench) -> None:
    bench = make('t4-mdev', f'{_T4}=nvidia-231', timeout=0.5)
    handle = bench.handle(_T4)
    let_go = bench.kernel.hang('create')
    with pytest.raises(DeviceHangs, match=f'{_T4} hangs: write to create'):
        bench.driver.prepare(handle)
    # It may still come to be, and then it is ours.
    assert bench.root(_T4).reserved == 2
    let_go.set()


@pytest.mark.parametrize('number', [errno.ENOENT, errno.ENODEV])
def test_an_mdev_that_goes_by_itself_is_released(t4: VgpuBench, number: int) -> None:
    handle = t4.handle(_T4)
    t4.driver.prepare(handle)
    t4.kernel.refuse('remove', number)
    t4.driver.release(handle)


# --- changing what a card is ------------------------------------------------------


def test_another_type_waits_until_the_last_vgpu_is_given_back(make: MakeBench) -> None:
    bench = make('t4-mdev', '0000:3b:00.0=T4-2Q')
    handle = bench.handle('0000:3b:00.0')
    bench.driver.prepare(handle)
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


def test_a_card_becomes_whole_when_the_last_vgpu_is_given_back(make: MakeBench) -> None:
    bench = make('t4-mdev', '0000:3b:00.0=T4-2Q')
    handle = bench.handle('0000:3b:00.0')
    bench.driver.prepare(handle)
    bench.restart(handle, rules=('0000:3b:00.0=whole',))
    device = bench.device('0000:3b:00.0')
    assert device.root.resource_class == 'VGPU'
    assert device.health_reason.startswith('To be whole again is refused while 1')
    bench.driver.release(handle)
    assert bench.root('0000:3b:00.0').resource_class == 'PGPU'


def test_strangers_of_another_type_leave_no_room(make: MakeBench) -> None:
    bench = make('t4-mdev', f'{_T4}=T4-16Q')
    device = bench.device(_T4)
    assert device.health is Health.BUSY
    assert (device.root.total, device.root.reserved) == (1, 1)
    assert device.health_reason.startswith(
        'in use by something that is not us: 2 vGPUs of T4_2Q'
    )


def test_a_card_at_a_guest_is_not_cut_up(make: MakeBench) -> None:
    bench = make('t4-mdev', '0000:3b:00.0=T4-2Q')
    directory = bench.host.root / 'sys/bus/pci/devices/0000:3b:00.0'
    for kind in (directory / 'mdev_supported_types').iterdir():
        for file in kind.iterdir():
            file.rmdir() if file.is_dir() else file.unlink()
        kind.rmdir()
    (directory / 'driver').unlink()
    (directory / 'driver').symlink_to('../../../../bus/pci/drivers/vfio-pci')
    (bench.host.root / 'sys/bus/pci/drivers/vfio-pci').mkdir()
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
def test_a_function_that_can_carry_nothing_is_given_to_nobody(
    make: MakeBench, name: str, rule: str, file: str
) -> None:
    bench = make(name, rule)
    card = rule.partition('=')[0]
    second = f'{card[:-1]}5'
    where = bench.host.root / f'sys/bus/pci/devices/{second}' / file
    where.rename(where.with_name('gone'))
    device = bench.device(card)
    taken = {unit.key.partition('/')[0] for unit in device.root.units if unit.in_use}
    assert taken == {f'{card[:-1]}4', second}
    assert device.health_reason.endswith(f'no vGPU can be made of {second}')


@pytest.mark.parametrize('rule', [f'{_A100[:-1]}5=nvidia-471', '0000:41:00.4=471'])
def test_a_card_may_be_named_by_one_of_its_virtual_functions(
    make: MakeBench, rule: str
) -> None:
    """Nova and Cyborg know an Ampere card by those alone."""
    bench = make('a100-sriov-mig', rule)
    assert bench.root(_A100).attributes['vgpu_type'] == 'A100_10C'
    # While they are off it is the same card, and not a whole one.
    bench.kernel.reboot()
    assert bench.device(_A100).root.resource_class != 'PGPU'


# --- a reboot of the host, and a card that is lost --------------------------------


@pytest.mark.parametrize(
    ('name', 'rule'),
    [
        ('t4-mdev', f'{_T4}=nvidia-231'),
        ('a100-sriov-mig', f'{_A100}=nvidia-471'),
        ('l40s-vendor-vfio', f'{_L40S}=1155'),
        ('l40s-vendor-vfio', f'{_OFF}=L40S-24Q'),
    ],
)
def test_a_reboot_is_made_good_by_preparing_again(
    make: MakeBench, name: str, rule: str
) -> None:
    bench = make(name, rule)
    address = rule.partition('=')[0]
    handle = bench.handle(address)
    bench.driver.prepare(handle)
    before = [(unit.key, unit.info) for unit in bench.root(address).units]
    bench.kernel.reboot()
    bench.restart(handle)
    bench.driver.prepare(handle)
    assert [(u.key, u.info) for u in bench.root(address).units] == before
    in_use = bench.mdevs() == {handle.uuid} or bench.vgpu_type(
        handle.key.partition('/')[0]
    )
    assert in_use
    bench.driver.release(handle)
    assert bench.mdevs() == set()


def test_a_lost_card_keeps_its_capacity_and_gives_none(t4: VgpuBench) -> None:
    total = t4.root(_T4).total
    t4.kernel.lose(_T4)
    device = t4.device(_T4)
    assert device.health is Health.FAILED
    assert (device.root.total, device.root.reserved) == (total, total)
    assert t4.driver.usage(device).health is Health.FAILED


def test_a_card_whose_driver_is_gone_is_failed_and_not_deleted(t4: VgpuBench) -> None:
    before = t4.root(_T4)
    directory = t4.host.root / f'sys/bus/pci/devices/{_T4}'
    (directory / 'driver').unlink()
    (directory / 'mdev_supported_types').rename(directory / 'gone')
    device = t4.device(_T4)
    assert device.health is Health.FAILED
    assert device.health_reason == 'driver nvidia is not bound to it'
    assert (device.root.units, device.root.reserved) == (before.units, before.total)


def test_usage_counts_what_exists(t4: VgpuBench) -> None:
    usage = t4.driver.usage(t4.device(_T4))
    assert (usage.health, usage.units_used, usage.units_total) == (Health.OK, 2, 8)
    assert usage.counters == {'correctable': 0, 'nonfatal': 0, 'fatal': 0}


# Any: the fields of a handle are of many types.
def _fields(handle: HeldHandle) -> dict[str, Any]:
    return {name: getattr(handle, name) for name in handle.__dataclass_fields__}
