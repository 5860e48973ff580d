# SPDX-License-Identifier: Apache-2.0
"""Fabricated hosts through real daemons into a real Placement, function by function."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.chaos.kit import HurtCloud
from tests.fakes.fixture_agent import FIXTURES, FixtureAgent, Shown
from tests.fakes.fixture_hosts import renumbered, with_text, without
from tests.fakes.stack import Instance, expect
from tests.fakes.sysfs_tree import build_from
from tests.fakes.vgpu_fixtures import cloud

__all__ = ['cloud']

KINDS: Final = {'GPU', 'FPGA'}  # of devices that there are drivers for
IDLE, CUT = '0000:3b:00.0', '0000:af:00.0'
IDLE_UUID: Final = 'GPU-6ee9bd5d-26e1-4f9e-9f0e-1b6d0c0a3b00'

Row = tuple[str, str, str, str, str, str]


@pytest.fixture
def host(
    cloud: HurtCloud, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[FixtureAgent]:
    fixture: str = getattr(request, 'param', 't4-mdev')
    with FixtureAgent(cloud, tmp_path, fixture) as made:
        yield made


# --- what each host has ---


def test_every_function_of_all_hosts_is_accounted_for(
    cloud: HurtCloud, tmp_path: Path
) -> None:
    """Run with ``-s`` to read the table."""
    table: list[Row] = []
    for fixture in FIXTURES:
        with FixtureAgent(cloud, tmp_path / fixture, fixture) as host:
            host.switch_on()
            check_expectations(host)
            table += rows_of(host, tmp_path / f'{fixture}-tree')
    assert all(row[-1] for row in table)
    offered = [row for row in table if row[4] != '-']
    assert len(offered) < len(table)
    widths = [max(len(row[column]) for row in table) for column in range(5)]
    for row in table:
        cells = (f'{cell:<{size}}' for cell, size in zip(row, widths, strict=False))
        print('  '.join([*cells, row[-1]]))


def check_expectations(host: FixtureAgent) -> None:
    """Placement and database have what the fixture says, all of it and no more."""
    found = host.providers()
    expected = [each for each in host.fixture.expected if each['type'] in KINDS]
    accounted: set[str] = set()
    for fields in expected:
        parts = {name: p for name, p in found.items() if name.startswith(fields['pci'])}
        accounted |= parts.keys()
        classes = {name for part in parts.values() for name in part.inventory}
        assert classes == {fields['rc']}, fields
        totals = (n for part in parts.values() for n in part.inventory.values())
        assert sum(totals) == fields['total'], fields
        traits = {trait.lstrip('+') for trait in fields.get('traits', ())}
        told = set().union(*(part.traits for part in parts.values()))
        assert told == traits if fields['type'] == 'GPU' else told >= traits
        if 'handles' in fields:
            check_handles(host, fields)
    # What is ill may be there, and nobody is given it.
    assert not any(part.free for name, part in found.items() if name not in accounted)


def check_handles(host: FixtureAgent, fields: dict[str, Any]) -> None:
    kind, count, info = fields['handles']
    handles = host.handles(fields['pci'])
    assert [each for each, _ in handles] == [kind] * count
    assert handles[0][1] == json.loads(info)


def rows_of(host: FixtureAgent, tree: Path) -> Iterator[Row]:
    """Host, address, ids, class, what Placement has, and the verdict's reason."""
    fixture = host.fixture.fixture
    functions = build_from(host.fixture.fields, tree)
    verdicts = {each['address']: each for each in host.verdicts()}
    providers = host.providers()
    assert verdicts.keys() <= functions.keys()
    for address in sorted(functions):
        parts = {n: p for n, p in providers.items() if n.startswith(address)}
        there = [
            f'{name} {total}'
            for part in parts.values()
            for name, total in part.inventory.items()
        ]
        said = verdicts.get(address)
        reason = said['reason'] if said else 'its class is none of an accelerator'
        # Nothing is in Placement that the agent does not offer, nor the reverse.
        is_offered = said is not None and said['offered']
        assert bool(any(part.free for part in parts.values())) == is_offered, address
        ids, pci_class = (said['ids'], said['class']) if said else ('-', '-')
        yield fixture, address, ids, pci_class, ' + '.join(there) or '-', reason


# --- cards that go, come and move ---


def boot_whole(host: FixtureAgent) -> Instance:
    guest = host.cloud.boot('PGPU')
    host.cloud.until(guest.resolved, 'Nova hears of it')
    assert guest.states() == {'Bound'}
    return guest


def given(guest: Instance) -> tuple[str, str]:
    """Uuid and bus of its handle."""
    (arq,) = guest.shown()
    return arq['attach_handle_uuid'], arq['attach_handle_info']['bus']


def test_cards_that_are_moved_keep_all_that_they_have(host: FixtureAgent) -> None:
    host.switch_on()
    devices, providers = host.devices(), host.providers()
    guest = boot_whole(host)
    uuid, bus = given(guest)
    assert bus == '3b'

    host.switch_on(renumbered(('3b', '5e')))
    assert host.devices() == {'0000:5e:00.0': devices[IDLE], CUT: devices[CUT]}
    assert host.providers() == providers
    assert given(guest) == (uuid, '5e')

    host.switch_on(renumbered(('5e', 'af'), ('af', '5e')))
    assert host.devices() == {'0000:5e:00.0': devices[CUT], CUT: devices[IDLE]}
    assert host.providers() == providers
    assert given(guest) == (uuid, 'af')
    assert guest.states() == {'Bound'}

    # Taken out under its guest: kept, closed, and what it was when it is back.
    host.switch_on(without(CUT))
    closed = host.providers()
    assert closed.keys() == providers.keys()
    assert (closed[IDLE].uuid, closed[IDLE].free) == (providers[IDLE].uuid, 0)
    host.fixture.restore()
    host.switch_on()
    assert host.devices() == devices
    assert host.providers() == providers
    assert given(guest) == (uuid, '3b')
    guest.delete()
    host.cloud.until(guest.gone)


def test_another_card_in_the_slot_inherits_nothing(host: FixtureAgent) -> None:
    host.switch_on()
    devices, providers = host.devices(), host.providers()
    guest = boot_whole(host)
    uuid, _ = given(guest)
    host.switch_on(with_text(IDLE_UUID, f'GPU-{uuid4()}'))
    found = host.providers()
    (name,) = found.keys() - providers.keys()
    assert name.startswith(f'{IDLE}_')
    assert (found[IDLE].uuid, found[IDLE].free) == (providers[IDLE].uuid, 0)
    assert found[name].uuid != providers[IDLE].uuid
    assert found[name].free == 1
    # The guest has what it had, and the new card is for others.
    assert given(guest)[0] == uuid
    other = Instance(host.cloud, found[name].uuid, {'PGPU': 1})
    other.create_arqs(host.cloud.create_profile('PGPU'))
    other.allocate()
    assert other.bind().status == 202
    host.cloud.until(other.resolved, 'Nova hears of it')
    assert given(other)[0] != uuid
    for each in (guest, other):
        each.delete()
        host.cloud.until(each.gone)
    host.settle()
    assert host.providers().keys() == {name, CUT}
    assert devices[IDLE] not in host.devices().values()


def test_a_card_that_is_taken_out_goes_and_comes_back(host: FixtureAgent) -> None:
    host.switch_on()
    before = host.providers()
    host.switch_on(without(IDLE))
    assert host.providers().keys() == {CUT}
    host.fixture.restore()
    host.switch_on()
    assert host.providers() == before


# --- cards that Nova has, too ---


def test_a_card_in_novas_configuration_is_offered_by_nova_alone(
    host: FixtureAgent,
) -> None:
    host.switch_on()
    before, cloud = host.providers(), host.cloud
    spec = {'address': IDLE}
    host.nova_file.write_text(f'[pci]\ndevice_spec = {json.dumps(spec)}\n')
    cloud.until(lambda: host.providers().keys() == {CUT}, 'it is withdrawn')
    health, reason = host.health(IDLE)
    assert health == 'conflict'
    assert 'driver NVIDIA' in reason or 'nvidia_gpu_driver' in reason
    assert 'device_spec' in reason
    host.nova_file.write_text('')
    cloud.until(lambda: host.providers() == before, 'it is offered again')
    assert host.health(IDLE)[0] == 'ok'


def test_a_card_that_nova_has_in_placement_is_offered_by_nova_alone(
    host: FixtureAgent,
) -> None:
    host.switch_on()
    before, cloud = host.providers(), host.cloud
    theirs = nova_provider(host)
    assert 'left as it is' in host.repair()
    found = host.providers()
    assert found.keys() == {CUT, IDLE.upper()}
    assert found[IDLE.upper()] == theirs
    health, reason = host.health(IDLE)
    assert health == 'conflict'
    assert f'{host.name}_{IDLE.upper()}' in reason
    cloud.placement.ask('DELETE', f'/resource_providers/{theirs.uuid}')
    host.repair()
    assert host.providers() == before
    assert host.health(IDLE)[0] == 'ok'


def nova_provider(host: FixtureAgent) -> Shown:
    """As Nova makes it that tracks its PCI devices in Placement."""
    placement, uuid = host.cloud.placement, str(uuid4())
    path = f'/resource_providers?name={host.name}'
    (node,) = expect(placement.ask('GET', path), 200)['resource_providers']
    name = f'{host.name}_{IDLE.upper()}'
    body = {'uuid': uuid, 'name': name, 'parent_provider_uuid': node['uuid']}
    expect(placement.ask('POST', '/resource_providers', body), 200)
    body = {'traits': ['OWNER_NOVA'], 'resource_provider_generation': 0}
    expect(placement.ask('PUT', f'/resource_providers/{uuid}/traits', body), 200)
    inventory = {'CUSTOM_PCI_10DE_1EB8': {'total': 1, 'max_unit': 1}}
    (resource_class,) = inventory
    expect(placement.ask('PUT', f'/resource_classes/{resource_class}'), 201)
    body = {'inventories': inventory, 'resource_provider_generation': 1}
    expect(placement.ask('PUT', f'/resource_providers/{uuid}/inventories', body), 200)
    return host.providers()[IDLE.upper()]
