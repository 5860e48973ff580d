# SPDX-License-Identifier: Apache-2.0
"""Every candidate is accounted for, with what becomes of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.verdict_table import table
from cyborg_lite.agent.verdicts import Verdict, verdicts
from cyborg_lite.drivers.nvidia_gpu import NvidiaGpu
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.inventory import Deployable, HandleType, Unit
from tests.fakes import sysfs_tree
from tests.fakes.drivers import finding


def _verdicts(host: Host) -> dict[str, Verdict]:
    found = list(NvidiaGpu(host, {'offer_without_reset': False}).discover())
    return {each.finding.address: each for each in verdicts(host, found, {})}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host('compute-1', tmp_path)


@pytest.mark.parametrize('name', sysfs_tree.hosts())
def test_every_candidate_of_a_host_has_its_verdict(name: str, host: Host) -> None:
    built = sysfs_tree.build(name, host.root)
    candidates = {
        address
        for address, directory in built.functions.items()
        if (host.text(f'{directory}/class') or '')[2:].startswith(('03', '12', '0b40'))
    }
    found = _verdicts(host)
    assert set(found) == candidates
    assert all(verdict.finding.reason for verdict in found.values())
    ours = {address for address in candidates if found[address].driver}
    assert ours == {
        address for address in candidates if found[address].finding.ids[:4] == '10de'
    }


def test_json_has_exactly_the_fields_that_are_promised(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    found = _verdicts(host)
    assert found['0000:3b:00.0'].as_json() == {
        'address': '0000:3b:00.0',
        'ids': '10de:1eb8',
        'class': '030200',
        'driver': 'nvidia_gpu_driver',
        'offered': True,
        'reason': 'whole card',
        'provider': {
            'name': 'compute-1_0000:3b:00.0',
            'resource_class': 'PGPU',
            'total': 1,
            'reserved': 0,
            'traits': ['OWNER_CYBORG', 'CUSTOM_NVIDIA_1EB8'],
        },
        'handles': [
            {
                'type': 'PCI',
                'info': {
                    'domain': '0000',
                    'bus': '3b',
                    'device': '00',
                    'function': '0',
                },
            }
        ],
    }
    assert found['0000:03:00.0'].as_json() == {
        'address': '0000:03:00.0',
        'ids': '102b:0538',
        'class': '030000',
        'driver': None,
        'offered': False,
        'reason': 'boot VGA of the host; no enabled driver claims it',
        'provider': None,
        'handles': [],
    }


def test_a_card_that_is_held_back_is_not_offered(host: Host) -> None:
    lost = finding()
    assert lost.device is not None
    root = replace(lost.device.root, reserved=1)
    lost = replace(lost, device=replace(lost.device, root=root))
    (verdict,) = verdicts(host, [lost], {})
    assert verdict.driver == 'scripted'
    assert verdict.as_json()['offered'] is False
    assert verdict.as_json()['provider'] is None


def test_units_that_strangers_have_are_reserved(host: Host) -> None:
    """As Placement will be told."""
    card = finding()
    assert card.device is not None
    address = {'domain': '0000', 'bus': '82', 'device': '00', 'function': '4'}
    taken = Unit('0000:82:00.4', HandleType.PCI, address, in_use=True)
    free = Unit('0000:82:00.5', HandleType.PCI, {**address, 'function': '5'})

    def of(*units: Unit) -> Verdict:
        root = Deployable('card', 'VGPU', total=len(units), units=units)
        assert card.device is not None
        device = replace(card.device, root=root)
        (verdict,) = verdicts(host, [replace(card, device=device)], {})
        return verdict

    half = of(taken, free)
    assert half.as_json()['provider']['reserved'] == 1
    assert 'VGPU 2, 1 of them reserved' in table([half])
    assert of(taken).as_json()['offered'] is False


def test_each_provider_of_a_device_has_a_row(host: Host) -> None:
    card = finding()
    assert card.device is not None
    parts = tuple(Deployable(f'part-{size}', 'VGPU', total=size) for size in (2, 1))
    root = Deployable('card', parts=parts)
    card = replace(card, device=replace(card.device, root=root))
    found = verdicts(host, [card], {})
    assert [each.provider and each.provider.name for each in found] == [
        'part-2',
        'part-1',
    ]


def test_virtual_functions_that_nobody_claims_name_their_owner(host: Host) -> None:
    sysfs_tree.build('qat-x710', host.root)
    assert _verdicts(host)['0000:6b:02.0'].finding.reason == (
        'virtual function of 0000:6b:00.0; no enabled driver claims it'
    )


def test_nobody_is_said_to_claim_nothing_while_a_driver_is_silent(host: Host) -> None:
    sysfs_tree.build('qat-x710', host.root)
    found = verdicts(host, [], {'qat_driver': 'it does not return'})
    assert found[0].finding.reason == (
        'no driver claims it, but qat_driver did not answer'
    )


def test_a_function_whose_ids_cannot_be_read_is_not_passed_over(host: Host) -> None:
    built = sysfs_tree.build('t4-mdev', host.root)
    (host.root / built.functions['0000:3b:00.0'] / 'class').unlink()
    verdict = _verdicts(host)['0000:3b:00.0']
    assert verdict.driver is None
    assert verdict.finding.reason == 'its ids cannot be read'


def test_a_root_without_sys_has_no_candidates(host: Host) -> None:
    assert _verdicts(host) == {}
