# SPDX-License-Identifier: Apache-2.0
"""Fabricated hosts in a real Placement, and what becomes of cards that are moved."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.inventory import Inventory as Reports
from cyborg_lite.conductor.placement_sync import PlacementSync, SyncResult
from cyborg_lite.conductor.pulses import Pulses
from cyborg_lite.db import inventory
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import AttachHandle, Deployable, Device
from cyborg_lite.model.providers import ActualProvider
from cyborg_lite.rpc.context import of_daemon
from tests.fakes.databases import database_fixture
from tests.fakes.fixture_hosts import FixtureHost, renumbered, with_text, without
from tests.fakes.real_placement import CountedRemote, remote
from tests.fakes.rows import add_arqs
from tests.fakes.statements import statements, writes

__all__ = ['remote']

database = database_fixture('sqlite')

IDLE, CUT = '0000:3b:00.0', '0000:af:00.0'
IDLE_UUID = 'GPU-6ee9bd5d-26e1-4f9e-9f0e-1b6d0c0a3b00'
ALL_FIELDS = ('t4-mdev', 'a100-sriov-mig', 'l40s-vendor-vfio', 'fpga-intel')


@dataclass
class Cloud:
    """A conductor, its database and Placement, and one host that reports to it."""

    database: Database
    placement: Placement
    host: FixtureHost

    def __post_init__(self) -> None:
        self.sync = PlacementSync(self.database, self.placement)
        pulses = Pulses(self.database, threading.Event())
        self.reports = Reports(self.database, lambda: None, pulses)

    def look(self) -> SyncResult:
        self.reports.report(of_daemon(), self.host.look())
        return self.sync.sync(self.host.hostname)

    def providers(self) -> Mapping[str, ActualProvider]:
        """By name, without that of the host."""
        root = self.placement.provider_named(self.host.hostname)
        assert root is not None
        found = {}
        for node in self.placement.tree(root.uuid):
            if node.parent_uuid is not None:
                stocked = self.placement.inventories(node.uuid)
                marked = self.placement.traits(node.uuid)
                found[node.name.removeprefix(f'{root.name}_')] = ActualProvider(
                    node, stocked.inventories, marked.traits
                )
        return found

    def devices(self) -> Mapping[str, tuple[str, str]]:
        """By address: uuids of the device, and of the provider of its root."""
        found = select(Device.address, Device.uuid, Deployable.rp_uuid)
        joined = found.join(Deployable, Deployable.device_id == Device.id)
        rows = self.database.read(
            lambda session: session.execute(
                joined.where(Deployable.parent_id.is_(None))
            ).all()
        )
        return {row.address: (row.uuid, row.rp_uuid or '') for row in rows}

    def hold(self, address: str) -> str:
        """Give a unit of the card to a request; the request."""
        (arq,) = add_arqs(self.database, 1)
        self.database.write(_hold, address, arq)
        return arq

    def handle(self, arq: str) -> tuple[str, str, bool]:
        """Uuid and bus of what the request has, and whether it is missing."""
        wanted = select(AttachHandle).where(AttachHandle.arq_uuid == arq)
        row = self.database.read(lambda session: session.scalars(wanted).one())
        return row.uuid, row.info['bus'], row.missing

    def let_go(self, arq: str) -> SyncResult:
        self.database.write(_let_go, arq, self.host.hostname)
        return self.look()


def _hold(session: Session, address: str, arq: str) -> None:
    key = select(AttachHandle.id).join(Deployable).join(Device)
    first = session.scalars(key.where(Device.address == address).limit(1)).one()
    mine = update(AttachHandle).where(AttachHandle.id == first)
    session.execute(mine.values(arq_uuid=arq))


def _let_go(session: Session, arq: str, hostname: str) -> None:
    held = update(AttachHandle).where(AttachHandle.arq_uuid == arq)
    session.execute(held.values(arq_uuid=None))
    inventory.forget_missing(session, hostname)


def cloud_of(
    fixture: str, remote: CountedRemote, database: Database, directory: Path
) -> Cloud:
    hostname = f'compute-{uuid4().hex[:8]}'
    placement = Placement(remote)
    placement.create_provider(str(uuid4()), hostname, None)
    return Cloud(database, placement, FixtureHost(fixture, hostname, directory))


@pytest.fixture
def cloud(remote: CountedRemote, database: Database, tmp_path: Path) -> Cloud:
    """Two cards of one model, each with a serial number; one is cut into vGPUs."""
    made = cloud_of('t4-mdev', remote, database, tmp_path)
    made.look()
    return made


def total(provider: ActualProvider) -> int:
    return sum(one.total for one in provider.inventories.values())


def free(provider: ActualProvider) -> int:
    return sum(one.total - one.reserved for one in provider.inventories.values())


# --- what a host has, end to end ---


@pytest.mark.parametrize('fixture', [*ALL_FIELDS, 'fpga-xilinx-u250', 'generic-pci'])
def test_a_host_is_in_placement_as_it_is_expected(
    remote: CountedRemote, database: Database, tmp_path: Path, fixture: str
) -> None:
    cloud = cloud_of(fixture, remote, database, tmp_path)
    assert cloud.look().problems == ()
    known = {'GPU', 'FPGA'}  # as far as there are drivers
    expected = [each for each in cloud.host.expected if each['type'] in known]
    assert expected
    found = cloud.providers()
    for fields in expected:
        parts = [found[name] for name in found if name.startswith(fields['pci'])]
        assert {rc for part in parts for rc in part.inventories} == {fields['rc']}
        assert sum(map(total, parts)) == fields['total']
        wanted = {trait.lstrip('+') for trait in fields.get('traits', ())}
        assert wanted <= {trait for part in parts for trait in part.traits}
        for part in parts:
            one = part.inventories[fields['rc']]
            assert (one.allocation_ratio, one.max_unit) == (1.0, one.total)


def test_the_same_host_again_is_one_read(cloud: Cloud) -> None:
    report = cloud.host.look()
    with statements(cloud.database) as seen:
        cloud.reports.report(of_daemon(), report)
    assert len(seen) == 1
    assert writes(seen) == []


# --- cards that go, come, and move ---


def test_a_card_that_is_taken_out_goes_and_comes_back_as_it_was(cloud: Cloud) -> None:
    before = cloud.providers()
    cloud.host.edit(without(IDLE))
    cloud.look()
    assert set(cloud.providers()) == set(before) - {IDLE}
    cloud.host.restore()
    cloud.look()
    again = cloud.providers()
    assert set(again) == set(before)
    assert again[IDLE].node.uuid == before[IDLE].node.uuid
    assert again[IDLE].traits == before[IDLE].traits


def test_a_card_that_moves_keeps_rows_provider_and_request(cloud: Cloud) -> None:
    devices, providers = cloud.devices(), cloud.providers()
    arq = cloud.hold(IDLE)
    uuid, bus, _ = cloud.handle(arq)
    assert bus == '3b'
    cloud.host.edit(renumbered(('3b', '5e')))
    assert cloud.look() == SyncResult()
    assert cloud.devices() == {'0000:5e:00.0': devices[IDLE], CUT: devices[CUT]}
    assert cloud.providers() == providers
    assert cloud.handle(arq) == (uuid, '5e', False)


def test_cards_that_change_places_change_nothing_but_addresses(cloud: Cloud) -> None:
    devices, providers = cloud.devices(), cloud.providers()
    arq = cloud.hold(IDLE)
    uuid, _, _ = cloud.handle(arq)
    cloud.host.edit(renumbered(('3b', 'af'), ('af', '3b')))
    assert cloud.look() == SyncResult()
    assert cloud.devices() == {IDLE: devices[CUT], CUT: devices[IDLE]}
    assert cloud.providers() == providers
    assert cloud.handle(arq) == (uuid, 'af', False)


def test_another_card_in_the_slot_inherits_nothing(cloud: Cloud) -> None:
    devices = cloud.devices()
    cloud.host.edit(with_text(IDLE_UUID, f'GPU-{uuid4()}'))
    cloud.look()
    now = cloud.devices()
    assert now[IDLE][0] != devices[IDLE][0]
    assert now[CUT] == devices[CUT]
    assert free(cloud.providers()[IDLE]) == 1


def test_a_card_lost_in_use_and_the_next_in_its_slot_are_two(cloud: Cloud) -> None:
    devices, before = cloud.devices(), cloud.providers()
    arq = cloud.hold(IDLE)
    cloud.host.edit(with_text(IDLE_UUID, f'GPU-{uuid4()}'))
    assert cloud.look().problems == ()
    found = cloud.providers()
    # The lost one keeps name and provider, closed; the new one has others.
    assert found[IDLE].node.uuid == before[IDLE].node.uuid
    assert (total(found[IDLE]), free(found[IDLE])) == (1, 0)
    (name,) = set(found) - set(before)
    assert name.startswith(f'{IDLE}_')
    assert (total(found[name]), free(found[name])) == (1, 1)
    assert found[name].node.uuid != found[IDLE].node.uuid
    assert cloud.handle(arq)[2] is True
    # When the request goes, so does the lost card; the new one stays what it is.
    cloud.let_go(arq)
    left = cloud.providers()
    assert set(left) == {name, CUT}
    assert left[name].node.uuid == found[name].node.uuid
    assert devices[IDLE][0] not in {uuid for uuid, _ in cloud.devices().values()}


def test_a_card_lost_in_use_that_comes_back_elsewhere_is_the_same(
    cloud: Cloud,
) -> None:
    devices, providers = cloud.devices(), cloud.providers()
    arq = cloud.hold(IDLE)
    uuid, _, _ = cloud.handle(arq)
    cloud.host.edit(renumbered(('3b', '5e')))
    moved = cloud.host.look()
    cloud.host.edit(without('0000:5e:00.0'))
    cloud.look()
    assert free(cloud.providers()[IDLE]) == 0
    assert cloud.handle(arq)[2] is True
    cloud.reports.report(of_daemon(), moved)
    cloud.sync.sync(cloud.host.hostname)
    assert cloud.devices()['0000:5e:00.0'] == devices[IDLE]
    assert cloud.handle(arq) == (uuid, '5e', False)
    assert {
        name: (one.node.uuid, one.inventories)
        for name, one in cloud.providers().items()
    } == {name: (one.node.uuid, one.inventories) for name, one in providers.items()}


@pytest.mark.parametrize('fixture', ALL_FIELDS)
def test_a_host_renumbered_by_its_firmware_stays_what_it_was(
    remote: CountedRemote, database: Database, tmp_path: Path, fixture: str
) -> None:
    """Where cards tell their serial numbers; those that do not are new ones."""
    cloud = cloud_of(fixture, remote, database, tmp_path)
    cloud.look()
    devices, providers = cloud.devices(), cloud.providers()
    report = cloud.host.look()
    buses = sorted({device.address[5:7] for device in report.devices})
    told = all(one.hardware_id != one.address for one in report.devices)
    cloud.host.edit(renumbered(*((bus, f'f{n}') for n, bus in enumerate(buses))))
    result = cloud.look()
    assert result.problems == ()
    if told:
        assert set(cloud.devices().values()) == set(devices.values())
        assert cloud.providers() == providers
    assert len(cloud.providers()) == len(providers)
    assert cloud.sync.rehearse(cloud.host.hostname) == SyncResult()
