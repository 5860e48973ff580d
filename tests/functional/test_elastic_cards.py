# SPDX-License-Identifier: Apache-2.0
"""An elastic card is divided by real daemons, and Placement shows what fits.

The kernel and ``nvidia-smi`` are emulated. The tool refuses to destroy a GPU instance
that a vGPU uses.
"""

import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.faulty_cloud import FaultyCloud
from tests.hosts.kernel import FakeKernel
from tests.servers.mode_host import ModeHost
from tests.servers.stack import Instance, expect
from tests.servers.vgpu_fixtures import cloud
from tests.servers.vgpu_machine import Generation

__all__ = ['cloud']

_GPU: Final = '0000:c1:00.0'
_TYPES: Final = 'nvidia-474+nvidia-475+nvidia-476+nvidia-477+nvidia-478'
# As `nvidia-smi mig -lgipp` lists them for an A100: starts and length.
_PLACES: Final = {
    '1_5C': (range(7), 1),
    '2_10C': (range(0, 6, 2), 2),
    '3_20C': (range(0, 8, 4), 4),
    '4_20C': (range(1), 4),
    '7_40C': (range(1), 8),
}
_PROFILES: Final = {
    '1_5C': '1g.5gb',
    '2_10C': '2g.10gb',
    '3_20C': '3g.20gb',
    '4_20C': '4g.20gb',
    '7_40C': '7g.40gb',
}


class ElasticHost(ModeHost):
    """Host with a card that becomes elastic."""

    def list_instances(self) -> list[tuple[str, int]]:
        """Return profile and first slice of each GPU instance, as the tool does."""
        _, output = self.kernel.run(
            self.root, 'usr/bin/nvidia-smi', ['mig', '-i', _GPU, '-lgi']
        )
        fields = [line.split() for line in output.splitlines()]
        return sorted((f[3], int(f[6].split(':')[0])) for f in fields)

    def free(self) -> dict[str, int]:
        """Return what Placement has left of each size: total - reserved - used."""
        numbers = {}
        prefix = f'{self.name}_{_GPU}_A100_'
        for name, provider in self.cloud.providers().items():
            if name.startswith(prefix):
                uuid = provider['uuid']
                path = f'/resource_providers/{uuid}/usages'
                usages = expect(self.cloud.placement.ask('GET', path), 200)['usages']
                for item in self.cloud.inventory(uuid).values():
                    used = sum(usages.values())
                    size = name.removeprefix(prefix)
                    numbers[size] = max(0, item['total'] - item['reserved'] - used)
        return numbers

    def try_boot(self, size: str) -> Instance | None:
        """Boot an instance if Placement offers the size to Nova."""
        if not self.free()[size]:
            return None
        return self.boot_from('VGPU', f'_A100_{size}')


def count_fitting(size: str, instances: list[tuple[str, int]]) -> int:
    """Return how many units of a size fit beside others, by trying all sets."""
    lengths = {_PROFILES[name]: length for name, (_, length) in _PLACES.items()}
    used = {s for name, at in instances for s in range(at, at + lengths[name])}
    starts, length = _PLACES[size]
    best = 0
    for chosen in product((False, True), repeat=len(starts)):
        slots = Counter(
            slot
            for start, is_chosen in zip(starts, chosen, strict=True)
            if is_chosen
            for slot in range(start, start + length)
        )
        if max(slots.values(), default=0) <= 1 and not used & slots.keys():
            best = max(best, sum(chosen))
    return best


def _has_events(guest: Instance, number: int) -> bool:
    return len(guest.events()) == number


def _build_kernel(fixture: str, root: Path, _most_virtual: int) -> FakeKernel:
    """Return a kernel with enough virtual functions for all sizes."""
    return FakeKernel(fixture, root)


@pytest.fixture
def host(cloud: FaultyCloud, tmp_path: Path) -> Iterator[ElasticHost]:
    generation = Generation(
        'a100-sriov-mig', (f'{_GPU}={_TYPES}',), (_GPU, _GPU), (1, 1)
    )
    with ElasticHost(cloud, tmp_path, generation, _build_kernel) as host:
        host.card = _GPU
        host.drivers = {'nvidia_gpu_driver': {'modes': '10de:20f1 = elastic'}}
        host.start_agent()
        assert host.modes()['declared'] == 'elastic'
        assert host.change_mode('elastic').status == 202
        host.wait_for_mode('elastic')
        host.cloud.until(lambda: wait_for_truth(host), 'the empty card is offered')
        yield host


def wait_for_truth(host: ElasticHost) -> bool:
    """Check whether Placement has what fits beside the GPU instances."""
    instances = host.list_instances()
    return host.free() == {size: count_fitting(size, instances) for size in _PLACES}


def test_elastic_card_serves_mixed_sizes(host: ElasticHost) -> None:
    """Let six instances of random sizes come and go."""
    cloud, choose = host.cloud, random.Random(33)
    running: list[tuple[str, Instance]] = []
    booted = 0
    while booted < 6:
        size = choose.choice(list(_PLACES))
        guest = host.try_boot(size)
        if guest is not None:
            booted += 1
            running.append((size, guest))
        elif running:
            host.end(running.pop(choose.randrange(len(running)))[1])
        cloud.until(lambda: wait_for_truth(host), 'Placement has what fits')
        instances = Counter(name for name, _ in host.list_instances())
        assert instances == Counter(_PROFILES[size] for size, _ in running)
    assert running
    assert host.change_mode('7x1g.5gb').status == 409


def test_elastic_card_is_restored_after_reboot(host: ElasticHost) -> None:
    cloud = host.cloud
    guests = [host.boot_from('VGPU', f'_A100_{size}') for size in ('1_5C', '3_20C')]
    before, vgpus = host.list_instances(), host.list_vgpus()
    assert before == [('1g.5gb', 6), ('3g.20gb', 0)]
    host.power_cycle()
    assert host.list_instances() == []
    host.start_agent()
    for guest in guests:
        cloud.until(partial(_has_events, guest, 2), 'the ARQ is bound again')
    assert host.list_instances() == before
    on_card = {vgpu for vgpu in vgpus if vgpu.function.startswith('0000:c1')}
    assert len(on_card) == len(guests)
    assert on_card <= host.list_vgpus()
    for guest in guests:
        host.end(guest)
    assert host.list_instances() == []
    cloud.until(lambda: wait_for_truth(host), 'the empty card is offered again')


def test_last_slots_go_to_one_of_two_sizes(host: ElasticHost) -> None:
    """Bind two instances that have an allocation in Placement."""
    cloud = host.cloud
    sizes = ('7_40C', '4_20C')
    guests = [host.request(f'{_GPU}_A100_{size}', 'VGPU') for size in sizes]
    for guest in guests:
        expect(guest.bind(), 202)
    for guest in guests:
        cloud.until(guest.is_resolved, 'Nova receives an event')
    states = sorted(guest.states().pop() for guest in guests)
    assert states == ['BindFailed', 'Bound']
    (failed,) = (guest for guest in guests if guest.states() == {'BindFailed'})
    query = f"SELECT status_reason FROM arqs WHERE uuid = '{failed.arqs[0]}'"
    ((reason,),) = cloud.rows(query)
    size = 'A100_7_40C' if failed is guests[0] else 'A100_4_20C'
    assert f'{size} do not fit beside the units in use' in reason
    for guest in guests:
        host.end(guest)
    assert host.list_instances() == []
    cloud.until(lambda: wait_for_truth(host), 'the empty card is offered again')
