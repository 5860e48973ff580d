# SPDX-License-Identifier: Apache-2.0
"""Tests of elastic cards: GPU instances that the agent carves for each vGPU."""

from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import Device
from cyborg_lite.testing.preparation_checks import build_handle
from tests.hosts.kernel import FakeKernel
from tests.hosts.scans import find_device

_CARD = '0000:c1:00.0'
_TYPES = '+'.join(f'nvidia-{number}' for number in (474, 475, 476, 477, 478))


class ElasticHost:
    """Emulated host with one card that can be elastic."""

    def __init__(self, root: Path) -> None:
        self.kernel = FakeKernel('a100-sriov-mig', root)
        self.driver = self.start()

    def start(self, *remembered: AllocatedHandle) -> NvidiaGpu:
        options = {option.dest: option.default for option in NvidiaGpu.OPTIONS}
        options |= {'vgpu_types': [f'{_CARD}={_TYPES}'], 'modes': ['* = elastic']}
        self.driver = NvidiaGpu(
            Host('compute-1', self.kernel.root, self.kernel), options
        )
        self.driver.restore_handles(remembered)
        return self.driver

    def device(self) -> Device:
        return find_device(self.driver, _CARD)

    def handle(self, size: str, place: int | None, number: int = 0) -> AllocatedHandle:
        """Return a handle of a size, such as 1_5C, with its place on the card."""
        device = self.device()
        (part,) = (p for p in device.root.children if p.name.endswith(f'_{size}'))
        return replace(build_handle(device, part, part.handles[number]), place=place)

    def list_instances(self) -> list[tuple[str, str]]:
        """Return profile and place of each GPU instance, sorted by place."""
        _, output = self.kernel.run(
            self.kernel.root, 'usr/bin/nvidia-smi', ['mig', '-i', _CARD, '-lgi']
        )
        fields = [line.split() for line in output.splitlines()]
        return sorted(((f[3], f[6]) for f in fields), key=lambda item: item[1])


@pytest.fixture
def host(tmp_path: Path) -> ElasticHost:
    host = ElasticHost(tmp_path)
    host.driver.set_mode(host.device(), 'elastic')
    return host


def test_elastic_card_offers_each_size(host: ElasticHost) -> None:
    parts = host.device().root.children
    offers = {
        part.attributes['vgpu_type']: (part.total, part.attributes['places'])
        for part in parts
    }
    assert offers == {
        'A100_1_5C': (7, '0,1,2,3,4,5,6:1'),
        'A100_2_10C': (3, '0,2,4:2'),
        'A100_3_20C': (2, '0,4:4'),
        'A100_4_20C': (1, '0:4'),
        'A100_7_40C': (1, '0:8'),
    }
    addresses = [handle.key for part in parts for handle in part.handles]
    assert len(addresses) == len(set(addresses)) == 14


def test_elastic_mode_is_one_of_card(tmp_path: Path) -> None:
    host = ElasticHost(tmp_path)
    device = host.device()
    assert host.driver.declared_mode(device) == 'elastic'
    modes = {mode.name: mode for mode in host.driver.modes(device)}
    assert not modes['elastic'].is_current
    device = host.driver.set_mode(device, 'elastic')
    current = [mode.name for mode in host.driver.modes(device) if mode.is_current]
    assert (current, host.list_instances()) == (['elastic'], [])
    device = host.driver.set_mode(device, '2x3g.20gb')
    assert not host.driver.has_mode(device, 'elastic')
    assert all('places' not in part.attributes for part in device.root.children)


def test_prepare_carves_and_release_removes(host: ElasticHost) -> None:
    before = host.device()
    small, large = host.handle('1_5C', 6), host.handle('3_20C', 0)
    for handle in (small, large, small):  # a repetition changes nothing
        host.driver.prepare(handle)
    assert host.list_instances() == [('3g.20gb', '0:4'), ('1g.5gb', '6:1')]
    assert host.device() == before
    assert {small.uuid, large.uuid} <= set(host.driver._host.names(_MDEVS))
    for _ in range(2):
        host.driver.release(small)
    assert host.list_instances() == [('3g.20gb', '0:4')]
    assert host.driver.is_prepared(large)


_MDEVS = 'sys/bus/mdev/devices'


def test_prepare_place_in_use_is_busy(host: ElasticHost) -> None:
    host.driver.prepare(host.handle('3_20C', 4))
    with pytest.raises(DeviceBusy, match='uses memory slice 4'):
        host.driver.prepare(host.handle('1_5C', 5))
    assert host.list_instances() == [('3g.20gb', '4:4')]


@pytest.mark.parametrize('place', [None, 1, 7])
def test_prepare_invalid_place_is_refused(host: ElasticHost, place: int | None) -> None:
    with pytest.raises(DriverError, match='no valid place'):
        host.driver.prepare(host.handle('3_20C', place))
    assert host.list_instances() == []


def test_prepare_failure_leaves_no_instance(host: ElasticHost) -> None:
    host.kernel.break_off('/create')
    with pytest.raises(DriverError):
        host.driver.prepare(host.handle('2_10C', 2))
    assert host.list_instances() == []


def test_carve_replaces_abandoned_instance(host: ElasticHost) -> None:
    """A process that was killed has left an instance."""
    for profile in ('3g.20gb:4', '1g.5gb:0'):
        smi = ['mig', '-i', _CARD, '-cgi', profile]
        assert host.kernel.run(host.kernel.root, 'usr/bin/nvidia-smi', smi)[0] == 0
    host.driver.prepare(host.handle('1_5C', 5))
    assert host.list_instances() == [('1g.5gb', '5:1')]


def test_elastic_card_with_vgpus_stays_elastic(host: ElasticHost) -> None:
    handle = host.handle('1_5C', 6)
    host.driver.prepare(handle)
    with pytest.raises(DeviceBusy, match='it has vGPUs'):
        host.driver.set_mode(host.device(), '7x1g.5gb')
    driver = host.start(handle)
    assert driver.has_mode(host.device(), 'elastic')
    driver.release(handle)
    assert driver.has_mode(host.device(), 'elastic')


def test_mdevs_of_nova_prevent_elastic_mode(host: ElasticHost) -> None:
    host.driver._vgpus.creates_mdevs = False
    with pytest.raises(DriverError, match='has no mode elastic'):
        host.driver.set_mode(host.device(), 'elastic')


def test_unreadable_instances_refuse_carve(host: ElasticHost) -> None:
    host.driver.prepare(host.handle('1_5C', 6))
    host.kernel.break_off('-lgi')
    with pytest.raises(DriverError, match='nvidia-smi'):
        host.driver.prepare(host.handle('1_5C', 5, 1))


def test_foreign_vgpu_reserves_elastic_card(host: ElasticHost) -> None:
    handle = host.handle('1_5C', 6)
    host.driver.prepare(handle)
    host.driver._vgpus.prepared.remove(handle.uuid)
    parts = host.device().root.children
    assert all(part.unavailable == part.total for part in parts)


def test_restart_of_empty_card_sets_mode_again(host: ElasticHost) -> None:
    before = host.device()
    driver = host.start()
    assert not driver.has_mode(host.device(), 'elastic')
    driver.set_mode(host.device(), 'elastic')
    assert host.device() == before
