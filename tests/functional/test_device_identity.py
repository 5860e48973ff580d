# SPDX-License-Identifier: Apache-2.0
"""Identity of the cards of fixture hosts whose buses get other numbers."""

from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import select

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.providers.sync import PlacementSync, SyncResult
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Deployable, Device
from cyborg_lite.db.inventory import reports
from tests.hosts.fixture_hosts import FixtureHost, renumber_buses
from tests.servers.databases import database_fixture
from tests.servers.placement import CountedRemote, remote

__all__ = ['remote']

database = database_fixture('sqlite')

_DEVICES = (
    select(Device.uuid, Deployable.rp_uuid)
    .join(Deployable, Deployable.device_id == Device.id)
    .where(Deployable.parent_id.is_(None))
)


def read_providers(placement: Placement, root: str) -> Mapping[str, object]:
    """Return name, inventories and traits of the providers of devices by uuid."""
    return {
        node.uuid: (
            node.name,
            placement.get_inventories(node.uuid).inventories,
            placement.get_traits(node.uuid).traits,
        )
        for node in placement.list_tree(root)
        if node.parent_uuid is not None
    }


@pytest.mark.parametrize(
    ('fixture', 'has_serials'),
    [
        ('t4-mdev', True),
        ('a100-sriov-mig', True),
        ('l40s-vendor-vfio', False),
        ('fpga-intel', False),
    ],
)
def test_renumbered_host_keeps_cards_with_serial_numbers(
    remote: CountedRemote,
    database: Database,
    tmp_path: Path,
    fixture: str,
    has_serials: bool,
) -> None:
    """Cards without a serial number become new devices."""
    hostname, placement = f'compute-{uuid4().hex[:8]}', Placement(remote)
    root = placement.create_provider(str(uuid4()), hostname, None).uuid
    sync = PlacementSync(database, placement)
    host = FixtureHost(fixture, hostname, tmp_path)

    def report() -> tuple[set[tuple[str, str]], Mapping[str, object]]:
        database.write(reports.store_report, host.scan())
        assert sync.sync(hostname).problems == ()
        rows = database.read(lambda session: session.execute(_DEVICES).all())
        devices = {(row.uuid, row.rp_uuid) for row in rows}
        return devices, read_providers(placement, root)

    before = report()
    buses = sorted({device.control_address[5:7] for device in host.scan().devices})
    host.edit(renumber_buses(*((bus, f'f{n}') for n, bus in enumerate(buses))))
    assert (report() == before) == has_serials
    assert sync.rehearse(hostname) == SyncResult()
