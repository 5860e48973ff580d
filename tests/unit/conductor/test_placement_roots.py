# SPDX-License-Identifier: Apache-2.0
"""A host that is no compute node has a root provider of ours, and only such a host."""

from dataclasses import replace
from uuid import uuid4

import pytest

from cyborg_lite.conductor.placement_sync import PlacementSync, SyncResult
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import ComputeNodeAbsent
from cyborg_lite.model.providers import OWNER, Inventory
from tests.fakes.databases import database_fixture
from tests.fakes.placement import FakePlacement
from tests.fakes.provider_rows import add_device, remove_devices

database = database_fixture('sqlite')


@pytest.fixture
def placement() -> FakePlacement:
    return FakePlacement()


@pytest.fixture
def rooted(database: Database, placement: FakePlacement) -> PlacementSync:
    """A sync for which the hosts at the edge are no compute nodes."""
    return PlacementSync(database, placement, ['edge-*'])


def test_a_host_without_compute_gets_a_root_of_its_own(
    database: Database, placement: FakePlacement, rooted: PlacementSync
) -> None:
    rp_uuid = add_device(database, 'edge-1', 'gpu')
    expected = rooted.rehearse('edge-1')
    assert placement.writes == []
    assert rooted.sync('edge-1') == expected
    root = placement.provider_named('edge-1')
    assert root is not None
    assert root.parent_uuid is None
    assert placement.providers[root.uuid].traits == {OWNER}
    assert placement.providers[root.uuid].inventories == {}
    assert placement.providers[rp_uuid].node.parent_uuid == root.uuid
    placement.calls.clear()
    assert rooted.sync('edge-1') == SyncResult()
    assert len(placement.calls) == 2
    assert PlacementSync(database, placement, ['edge-1']).sync('edge-1') == SyncResult()


def test_other_hosts_wait_for_their_compute_node(
    database: Database, rooted: PlacementSync
) -> None:
    add_device(database, 'compute-2', 'gpu')
    with pytest.raises(ComputeNodeAbsent, match='compute-2'):
        rooted.sync('compute-2')


def test_a_root_of_our_own_is_repaired_and_keeps_what_others_gave_it(
    database: Database, placement: FakePlacement, rooted: PlacementSync
) -> None:
    add_device(database, 'edge-1', 'gpu')
    rooted.sync('edge-1')
    node = placement.provider_named('edge-1')
    assert node is not None
    root = placement.providers[node.uuid]
    root.traits, root.inventories = frozenset({'HW_GPU_API'}), {'VCPU': Inventory(4)}
    root.node = replace(node, name='misnamed')
    root.touch()
    assert len(rooted.sync('edge-1').changes) == 2
    assert root.node.name == 'edge-1'
    assert root.traits == {'HW_GPU_API', OWNER}
    assert root.inventories == {'VCPU': Inventory(4)}
    assert rooted.sync('edge-1', deep=True) == SyncResult()


def test_a_root_that_nova_has_made_is_not_ours(
    database: Database, placement: FakePlacement, rooted: PlacementSync
) -> None:
    theirs = placement.create_provider(str(uuid4()), 'edge-1', None)
    rp_uuid = add_device(database, 'edge-1', 'gpu')
    rooted.sync('edge-1')
    assert placement.providers[rp_uuid].node.parent_uuid == theirs.uuid
    assert placement.providers[theirs.uuid].traits == frozenset()
    remove_devices(database, [rp_uuid])
    rooted.sync('edge-1')
    assert set(placement.providers) >= {theirs.uuid}


@pytest.mark.parametrize('guest', [True, False])
def test_a_root_of_our_own_goes_with_the_last_below_it(
    database: Database, placement: FakePlacement, rooted: PlacementSync, guest: bool
) -> None:
    rp_uuid = add_device(database, 'edge-1', 'gpu')
    rooted.sync('edge-1')
    root = placement.provider_named('edge-1')
    assert root is not None
    if guest:
        placement.create_provider(str(uuid4()), 'edge-1_of_others', root.uuid)
    remove_devices(database, [rp_uuid])
    expected = rooted.rehearse('edge-1')
    assert rooted.sync('edge-1') == expected
    assert len(expected.changes) == (1 if guest else 2)
    assert (root.uuid in placement.providers) is guest
    assert rp_uuid not in placement.providers
    assert rooted.sync('edge-1') == SyncResult()
