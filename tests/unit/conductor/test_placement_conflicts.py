# SPDX-License-Identifier: Apache-2.0
"""A device that Nova manages too is not offered, and comes back by itself."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.placement_sync import PlacementSync
from cyborg_lite.db import conflicts
from cyborg_lite.db.engine import Database
from cyborg_lite.model.providers import OWNER, OWNER_NOVA, Inventory, TreeNode
from tests.fakes.databases import database_fixture
from tests.fakes.placement import FakePlacement
from tests.fakes.provider_rows import add_device, change_device
from tests.fakes.statements import statements, writes

HOST = 'compute-1'
ADDRESS = '0000:3b:00.0'

database = database_fixture('sqlite')


@pytest.fixture
def placement() -> FakePlacement:
    placement = FakePlacement()
    placement.create_provider(str(uuid4()), HOST, None)
    return placement


@pytest.fixture
def sync(database: Database, placement: FakePlacement) -> PlacementSync:
    return PlacementSync(database, placement)


@pytest.fixture
def gpu(database: Database, sync: PlacementSync) -> str:
    """The provider of a card that is offered."""
    rp_uuid = add_device(database, HOST, ADDRESS, num_accelerators=4)
    change_device(database, rp_uuid, address=ADDRESS)
    sync.sync(HOST)
    return rp_uuid


def nova_takes(
    placement: FakePlacement, name: str = f'{HOST}_0000:3B:00.0'
) -> TreeNode:
    """What its PCI tracker makes of a card."""
    root = placement.provider_named(HOST)
    assert root is not None
    node = placement.create_provider(str(uuid4()), name, root.uuid)
    placement.providers[node.uuid].traits = frozenset({OWNER_NOVA})
    placement.providers[node.uuid].inventories = {'CUSTOM_PCI_10DE': Inventory(1)}
    return node


def reasons(database: Database) -> list[str]:
    return [one.reason for one in database.read(conflicts.listed)]


@pytest.mark.parametrize('name', [f'{HOST}_0000:3B:00.0', f'{HOST}_pci_0000_3b_00_0'])
def test_a_card_that_nova_takes_is_withdrawn_and_both_are_named(
    database: Database,
    placement: FakePlacement,
    sync: PlacementSync,
    gpu: str,
    name: str,
) -> None:
    theirs = nova_takes(placement, name)
    before = placement.providers[theirs.uuid].inventories
    result = sync.sync(HOST)
    assert gpu not in placement.providers
    assert placement.providers[theirs.uuid].inventories == before
    (reason,) = reasons(database)
    assert 'driver NVIDIA' in reason
    assert f'Nova, provider {name} ({theirs.uuid})' in reason
    assert [problem.reason for problem in result.problems] == [reason]


def test_a_name_that_is_ours_to_the_letter_makes_no_difference(
    database: Database, placement: FakePlacement, sync: PlacementSync
) -> None:
    """Nova was there first, and its provider is named as ours would be."""
    theirs = nova_takes(placement, f'{HOST}_{ADDRESS}')
    rp_uuid = add_device(database, HOST, ADDRESS)
    change_device(database, rp_uuid, address=ADDRESS)
    sync.sync(HOST)
    assert rp_uuid not in placement.providers
    assert theirs.uuid in reasons(database)[0]


def test_a_card_that_is_in_use_is_closed_and_keeps_its_total(
    placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    server = placement.allocate(gpu, {'PGPU': 1})
    theirs = nova_takes(placement)
    for _ in range(2):
        sync.sync(HOST)
        assert placement.providers[gpu].inventories == {
            'PGPU': Inventory(4, reserved=4, max_unit=4)
        }
    del placement.consumers[server.uuid]
    sync.sync(HOST)
    assert gpu not in placement.providers
    assert theirs.uuid in placement.providers


def test_it_is_offered_again_when_nova_lets_go(
    database: Database, placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    theirs = nova_takes(placement)
    sync.sync(HOST)
    placement.delete_provider(theirs.uuid)
    assert sync.sync(HOST).problems == ()
    assert placement.providers[gpu].traits >= {OWNER}
    assert placement.providers[gpu].inventories['PGPU'].reserved == 0
    assert reasons(database) == []


def test_it_is_the_address_of_now_that_counts_and_not_the_name(
    database: Database, placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    """A card that moved keeps its name; Nova has what is in its old slot now."""
    change_device(database, gpu, address='0000:5e:00.0')
    nova_takes(placement)
    assert sync.sync(HOST).problems == ()
    assert reasons(database) == []
    nova_takes(placement, f'{HOST}_0000:5E:00.0')
    sync.sync(HOST)
    assert gpu not in placement.providers


def test_what_the_agent_found_out_counts_alike(
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


def test_a_conflict_that_stands_costs_no_write_and_three_reads(
    database: Database, placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    nova_takes(placement)
    sync.sync(HOST)
    placement.calls.clear()
    with statements(database) as seen:
        sync.sync(HOST)
    # Root, tree, and which of the providers in it that begin alike are ours.
    assert len(placement.calls) == 3
    assert placement.writes == []
    assert writes(seen) == []


def test_only_what_changes_is_said(
    placement: FakePlacement,
    sync: PlacementSync,
    gpu: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    theirs = nova_takes(placement)
    for _ in range(3):
        sync.sync(HOST)
    assert caplog.text.count('is not offered') == 1
    placement.delete_provider(theirs.uuid)
    with caplog.at_level('INFO'):
        sync.sync(HOST)
    assert 'is offered again' in caplog.text
