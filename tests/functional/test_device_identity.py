# SPDX-License-Identifier: Apache-2.0
"""Fixture hosts in a real Placement, and the identity of cards that are moved."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.hosts.heartbeat_batch import HeartbeatBatch
from cyborg_lite.conductor.inventory.inventory import InventoryService as Reports
from cyborg_lite.conductor.providers.sync import PlacementSync, SyncResult
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Deployable, Device
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.providers.providers import ActualProvider
from cyborg_lite.model.traits import EMPTIED
from cyborg_lite.rpc.context import daemon_context
from tests.builders.rows import add_arqs
from tests.hosts.fixture_hosts import FixtureHost, renumber_buses, with_text, without
from tests.servers.databases import database_fixture
from tests.servers.placement import CountedRemote, remote

__all__ = ['remote']

database = database_fixture('sqlite')

IDLE, CUT = '0000:3b:00.0', '0000:af:00.0'
IDLE_UUID = 'GPU-6ee9bd5d-26e1-4f9e-9f0e-1b6d0c0a3b00'
ALL_FIELDS = ('t4-mdev', 'a100-sriov-mig', 'l40s-vendor-vfio', 'fpga-intel')


@dataclass
class Cloud:
    """Conductor with a database and a Placement, and one host that sends reports."""

    database: Database
    placement: Placement
    host: FixtureHost

    def __post_init__(self) -> None:
        self.sync = PlacementSync(self.database, self.placement)
        pulses = HeartbeatBatch(self.database, threading.Event())
        self.reports = Reports(self.database, lambda: None, pulses)

    def scan_and_sync(self) -> SyncResult:
        self.reports.store_report(daemon_context(), self.host.scan())
        return self.sync.sync(self.host.hostname)

    def providers(self) -> Mapping[str, ActualProvider]:
        """Return the providers of devices by name."""
        root = self.placement.find_provider_by_name(self.host.hostname)
        assert root is not None
        stored = {}
        for node in self.placement.list_tree(root.uuid):
            if node.parent_uuid is not None:
                stocked = self.placement.get_inventories(node.uuid)
                marked = self.placement.get_traits(node.uuid)
                if EMPTIED in marked.traits:
                    assert stocked.inventories == {}
                    continue
                stored[node.name.removeprefix(f'{root.name}_')] = ActualProvider(
                    node, stocked.inventories, marked.traits
                )
        return stored

    def devices(self) -> Mapping[str, tuple[str, str]]:
        """Return uuids of devices and of their root providers by address."""
        stored = select(Device.control_address, Device.uuid, Deployable.rp_uuid)
        joined = stored.join(Deployable, Deployable.device_id == Device.id)
        rows = self.database.read(
            lambda session: session.execute(
                joined.where(Deployable.parent_id.is_(None))
            ).all()
        )
        return {row.control_address: (row.uuid, row.rp_uuid or '') for row in rows}

    def claim_handle(self, address: str) -> str:
        """Claim a handle of the card for a new ARQ and return its uuid."""
        (arq,) = add_arqs(self.database, 1)
        self.database.write(_hold, address, arq)
        return arq

    def handle(self, arq: str) -> tuple[str, str, bool]:
        """Return uuid and bus of the handle of an ARQ, and whether it is missing."""
        owned_handle = select(AttachHandle).where(AttachHandle.arq_uuid == arq)
        row = self.database.read(lambda session: session.scalars(owned_handle).one())
        return row.uuid, row.info['bus'], row.missing

    def release_handle(self, arq: str) -> SyncResult:
        self.database.write(_release_handle, arq, self.host.hostname)
        return self.scan_and_sync()


def _hold(session: Session, address: str, arq: str) -> None:
    key = select(AttachHandle.id).join(Deployable).join(Device)
    first = session.scalars(key.where(Device.control_address == address).limit(1)).one()
    handle_of_arq = update(AttachHandle).where(AttachHandle.id == first)
    session.execute(handle_of_arq.values(arq_uuid=arq))


def _release_handle(session: Session, arq: str, hostname: str) -> None:
    handles_of_arq = update(AttachHandle).where(AttachHandle.arq_uuid == arq)
    session.execute(handles_of_arq.values(arq_uuid=None))
    reports.delete_missing_handles(session, hostname)


def cloud_of(
    fixture: str, remote: CountedRemote, database: Database, directory: Path
) -> Cloud:
    hostname = f'compute-{uuid4().hex[:8]}'
    placement = Placement(remote)
    placement.create_provider(str(uuid4()), hostname, None)
    return Cloud(database, placement, FixtureHost(fixture, hostname, directory))


@pytest.fixture
def cloud(remote: CountedRemote, database: Database, tmp_path: Path) -> Cloud:
    """Yield two cards of one model with serial numbers; one is divided into vGPUs."""
    created = cloud_of('t4-mdev', remote, database, tmp_path)
    created.scan_and_sync()
    return created


def total(provider: ActualProvider) -> int:
    return sum(entry.total for entry in provider.inventories.values())


def free(provider: ActualProvider) -> int:
    return sum(entry.total - entry.reserved for entry in provider.inventories.values())


# --- removed, returned and moved cards ---


def test_removed_card_returns_with_same_identity(cloud: Cloud) -> None:
    before = cloud.providers()
    cloud.host.edit(without(IDLE))
    cloud.scan_and_sync()
    assert set(cloud.providers()) == set(before) - {IDLE}
    cloud.host.restore()
    cloud.scan_and_sync()
    providers = cloud.providers()
    assert set(providers) == set(before)
    assert providers[IDLE].node.uuid == before[IDLE].node.uuid
    assert providers[IDLE].traits == before[IDLE].traits


def test_moved_card_keeps_rows_provider_and_arq(cloud: Cloud) -> None:
    devices, providers = cloud.devices(), cloud.providers()
    arq = cloud.claim_handle(IDLE)
    uuid, bus, _ = cloud.handle(arq)
    assert bus == '3b'
    cloud.host.edit(renumber_buses(('3b', '5e')))
    assert cloud.scan_and_sync() == SyncResult()
    assert cloud.devices() == {'0000:5e:00.0': devices[IDLE], CUT: devices[CUT]}
    assert cloud.providers() == providers
    assert cloud.handle(arq) == (uuid, '5e', False)


def test_exchanged_cards_change_only_addresses(cloud: Cloud) -> None:
    devices, providers = cloud.devices(), cloud.providers()
    arq = cloud.claim_handle(IDLE)
    uuid, _, _ = cloud.handle(arq)
    cloud.host.edit(renumber_buses(('3b', 'af'), ('af', '3b')))
    assert cloud.scan_and_sync() == SyncResult()
    assert cloud.devices() == {IDLE: devices[CUT], CUT: devices[IDLE]}
    assert cloud.providers() == providers
    assert cloud.handle(arq) == (uuid, 'af', False)


def test_replaced_card_inherits_nothing(cloud: Cloud) -> None:
    devices = cloud.devices()
    cloud.host.edit(with_text(IDLE_UUID, f'GPU-{uuid4()}'))
    cloud.scan_and_sync()
    now = cloud.devices()
    assert now[IDLE][0] != devices[IDLE][0]
    assert now[CUT] == devices[CUT]
    assert free(cloud.providers()[IDLE]) == 1


def test_card_lost_in_use_and_replacement_are_distinct(cloud: Cloud) -> None:
    devices, before = cloud.devices(), cloud.providers()
    arq = cloud.claim_handle(IDLE)
    cloud.host.edit(with_text(IDLE_UUID, f'GPU-{uuid4()}'))
    assert cloud.scan_and_sync().problems == ()
    stored = cloud.providers()
    # The lost card keeps name and provider without capacity; the new card has its own.
    assert stored[IDLE].node.uuid == before[IDLE].node.uuid
    assert (total(stored[IDLE]), free(stored[IDLE])) == (1, 0)
    (name,) = set(stored) - set(before)
    assert name.startswith(f'{IDLE}_')
    assert (total(stored[name]), free(stored[name])) == (1, 1)
    assert stored[name].node.uuid != stored[IDLE].node.uuid
    assert cloud.handle(arq)[2] is True
    # The deletion of the ARQ deletes the lost card; the new card is unchanged.
    cloud.release_handle(arq)
    remaining = cloud.providers()
    assert set(remaining) == {name, CUT}
    assert remaining[name].node.uuid == stored[name].node.uuid
    assert devices[IDLE][0] not in {uuid for uuid, _ in cloud.devices().values()}


def test_card_lost_in_use_returns_elsewhere_as_same(cloud: Cloud) -> None:
    devices, providers = cloud.devices(), cloud.providers()
    arq = cloud.claim_handle(IDLE)
    uuid, _, _ = cloud.handle(arq)
    cloud.host.edit(renumber_buses(('3b', '5e')))
    moved = cloud.host.scan()
    cloud.host.edit(without('0000:5e:00.0'))
    cloud.scan_and_sync()
    assert free(cloud.providers()[IDLE]) == 0
    assert cloud.handle(arq)[2] is True
    cloud.reports.store_report(daemon_context(), moved)
    cloud.sync.sync(cloud.host.hostname)
    assert cloud.devices()['0000:5e:00.0'] == devices[IDLE]
    assert cloud.handle(arq) == (uuid, '5e', False)
    assert {
        name: (entry.node.uuid, entry.inventories)
        for name, entry in cloud.providers().items()
    } == {
        name: (entry.node.uuid, entry.inventories) for name, entry in providers.items()
    }


@pytest.mark.parametrize('fixture', ALL_FIELDS)
def test_renumbered_host_keeps_cards_with_serial_numbers(
    remote: CountedRemote, database: Database, tmp_path: Path, fixture: str
) -> None:
    """Cards without a serial number become new devices."""
    cloud = cloud_of(fixture, remote, database, tmp_path)
    cloud.scan_and_sync()
    devices, providers = cloud.devices(), cloud.providers()
    report = cloud.host.scan()
    buses = sorted({device.control_address[5:7] for device in report.devices})
    all_have_serials = all(
        entry.hardware_id != entry.control_address for entry in report.devices
    )
    cloud.host.edit(renumber_buses(*((bus, f'f{n}') for n, bus in enumerate(buses))))
    result = cloud.scan_and_sync()
    assert result.problems == ()
    if all_have_serials:
        assert set(cloud.devices().values()) == set(devices.values())
        assert cloud.providers() == providers
    assert len(cloud.providers()) == len(providers)
    assert cloud.sync.rehearse(cloud.host.hostname) == SyncResult()
