# SPDX-License-Identifier: Apache-2.0
"""Modes are changed through the API, and come back after a reboot of the host.

Real daemons, a real Placement and an emulated kernel.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.faulty_cloud import FaultyCloud
from tests.servers.mode_host import QAT, ModeHost
from tests.servers.vgpu_fixtures import cloud
from tests.servers.vgpu_machine import Generation

__all__ = ['cloud']

_GPU: Final = '0000:c1:00.0'


@pytest.fixture
def qat(cloud: FaultyCloud, tmp_path: Path) -> Iterator[ModeHost]:
    generation = Generation('qat-services', (), (QAT, QAT), (1, 1))
    with ModeHost(cloud, tmp_path, generation) as host:
        host.kernel.disable(QAT)
        host.drivers = {
            'intel_qat_driver': {
                'virtual_functions': f'{QAT} = 4',
                'modes': f'{host.name}/8086:4940 = sym;asym',
            }
        }
        host.start_agent()
        yield host


@pytest.fixture
def gpu(cloud: FaultyCloud, tmp_path: Path) -> Iterator[ModeHost]:
    rules = (f'{_GPU}=nvidia-474+nvidia-476',)
    generation = Generation('a100-sriov-mig', rules, (_GPU, _GPU), (1, 1))
    with ModeHost(cloud, tmp_path, generation) as host:
        host.card = _GPU
        host.drivers = {'nvidia_gpu_driver': {}}
        host.start_agent()
        yield host


def services(host: ModeHost) -> str:
    file = host.root / f'sys/bus/pci/devices/{QAT}/qat/cfg_services'
    return file.read_text().strip()


def traits(*names: str) -> set[str]:
    fixed = 'QAT_INTEL', 'QAT_PRODUCT_ID_4940'
    services = (f'QAT_SERVICE_{name}' for name in names)
    return {f'CUSTOM_{name}' for name in (*fixed, *services)}


def test_qat_services_are_planned_changed_and_restored(qat: ModeHost) -> None:
    cloud = qat.cloud
    modes = qat.modes()
    assert (modes['current'], modes['declared']) == ('dc', 'sym;asym')
    (plan,) = (mode for mode in modes['modes'] if mode['name'] == 'sym;asym')
    assert [item['total'] for item in (*plan['appears'], *plan['vanishes'])] == [4, 4]
    cloud.until(lambda: qat.offers() == {'': (4, traits('DC'))}, 'the card is offered')

    guest = qat.boot_from('CUSTOM_QAT')
    refusal = qat.change_mode('sym;asym')
    assert (refusal.status, guest.arqs[0] in str(refusal.body)) == (409, True)
    qat.end(guest)

    assert qat.change_mode('sym;asym').status == 202
    qat.wait_for_mode('sym;asym')
    offers = {'': (4, traits('SYM', 'ASYM'))}
    cloud.until(lambda: qat.offers() == offers, 'Placement has the new services')

    guest = qat.boot_from('CUSTOM_QAT')
    qat.power_cycle()
    assert services(qat) == 'dc'
    qat.start_agent()
    assert services(qat) == 'sym;asym'
    cloud.until(lambda: len(guest.events()) == 2, 'the ARQ is bound again')
    qat.end(guest)


def test_mig_layout_is_changed_and_restored(gpu: ModeHost) -> None:
    cloud = gpu.cloud
    small, large = '_A100_1_5C', '_A100_3_20C'
    cloud.until(lambda: {small, large} <= gpu.offers().keys(), 'both sizes are offered')
    assert gpu.change_mode('2x3g.20gb').status == 202
    gpu.wait_for_mode('2x3g.20gb')

    def has_large_only() -> bool:
        offers = gpu.offers()
        return offers[large][0] == 2 and offers.get(small, (0,))[0] == 0

    cloud.until(has_large_only, 'Placement has the new layout')
    guest = gpu.boot_from('VGPU', large)
    vgpus = gpu.list_vgpus()
    gpu.power_cycle()
    gpu.start_agent()
    cloud.until(lambda: len(guest.events()) == 2, 'the ARQ is bound again')
    made_on_card = {vgpu for vgpu in vgpus if vgpu.function.startswith('0000:c1')}
    assert made_on_card
    assert made_on_card <= gpu.list_vgpus()
    gpu.end(guest)
