# SPDX-License-Identifier: Apache-2.0
"""Devices that Nova manages as well are withdrawn until the conflict ends."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.attention import list_attention
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.attention import AttentionKind
from cyborg_lite.model.providers.providers import ProviderInventory, TreeNode
from cyborg_lite.model.traits import OWNER_CYBORG, OWNER_NOVA
from tests.builders.provider_rows import add_device, change_device
from tests.doubles.placement import FakePlacement
from tests.support.sql_statements import statements, writes

HOST = 'compute-1'
ADDRESS = '0000:3b:00.0'


@pytest.fixture
def gpu(database: Database, sync: PlacementSync) -> str:
    """Return the provider of a published card."""
    rp_uuid = add_device(database, HOST, ADDRESS, num_accelerators=4)
    change_device(database, rp_uuid, control_address=ADDRESS)
    sync.sync(HOST)
    return rp_uuid


def nova_takes(
    placement: FakePlacement, name: str = f'{HOST}_0000:3B:00.0'
) -> TreeNode:
    """Create the provider that the PCI tracker of Nova creates for a card."""
    root = placement.find_provider_by_name(HOST)
    assert root is not None
    node = placement.create_provider(str(uuid4()), name, root.uuid)
    placement.providers[node.uuid].traits = frozenset({OWNER_NOVA})
    placement.providers[node.uuid].inventories = {
        'CUSTOM_PCI_10DE': ProviderInventory(1)
    }
    return node


def reasons(database: Database) -> list[str]:
    return [
        item.reason
        for item in database.read(list_attention)
        if item.kind is AttentionKind.CONTESTED_DEVICE
    ]


def test_conflict_same_name_withdraws_provider(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    """Nova created its provider first, with the name that Cyborg would use."""
    nova_provider = nova_takes(placement, f'{HOST}_{ADDRESS}')
    rp_uuid = add_device(database, HOST, ADDRESS)
    change_device(database, rp_uuid, control_address=ADDRESS)
    sync.sync(HOST)
    assert rp_uuid not in placement.providers
    assert nova_provider.uuid in reasons(database)[0]


def test_conflict_ended_publishes_provider(
    database: Database, placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    nova_provider = nova_takes(placement)
    sync.sync(HOST)
    placement.delete_provider(nova_provider.uuid)
    assert sync.sync(HOST).problems == ()
    assert placement.providers[gpu].traits >= {OWNER_CYBORG}
    assert placement.providers[gpu].inventories['PGPU'].reserved == 0
    assert reasons(database) == []


def test_conflict_is_found_by_address_not_name(
    database: Database, placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    """A moved card keeps its name, and Nova manages the card in its former slot."""
    change_device(database, gpu, control_address='0000:5e:00.0')
    nova_takes(placement)
    assert sync.sync(HOST).problems == ()
    assert reasons(database) == []
    nova_takes(placement, f'{HOST}_0000:5E:00.0')
    sync.sync(HOST)
    assert gpu not in placement.providers


def test_conflict_reported_by_agent_withdraws_provider(
    database: Database, placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    reason = 'device_spec in nova.conf'
    change_device(database, gpu, health='conflict', health_reason=reason)
    (problem,) = sync.sync(HOST).problems
    assert gpu not in placement.providers
    assert problem.reason == reason
    change_device(database, gpu, health='ok', health_reason='')
    assert sync.sync(HOST).problems == ()
    assert gpu in placement.providers


def test_conflict_unchanged_costs_two_reads(
    database: Database, placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    nova_takes(placement)
    sync.sync(HOST)
    placement.calls.clear()
    with statements(database) as sql:
        sync.sync(HOST)
    # The root and the tree; the cache knows who owns the providers.
    assert len(placement.calls) == 2
    assert placement.writes == []
    assert writes(sql) == []
