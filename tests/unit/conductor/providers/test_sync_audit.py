# SPDX-License-Identifier: Apache-2.0
"""Syncs that remove traits or restore providers, and rehearsals."""

import copy
from collections.abc import Collection
from dataclasses import replace
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import ProviderTraits
from cyborg_lite.conductor.providers.sync import PlacementSync, SyncMode, SyncResult
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.providers.providers import ProviderInventory, TreeNode
from cyborg_lite.model.traits import OWNER_CYBORG
from tests.builders.provider_rows import add_device, change_deployable, remove_devices
from tests.doubles.placement import FakePlacement
from tests.support.sql_statements import statements, writes

HOST = 'compute-1'


@pytest.fixture
def nic(database: Database, sync: PlacementSync) -> str:
    """Return a provider with a trait that an operator could have set as well."""
    rp_uuid = add_device(database, HOST, 'nic', traits=['CUSTOM_PHYSNET1'])
    sync.sync(HOST)
    return rp_uuid


def read_published_traits(database: Database) -> tuple[str, ...] | None:
    (row,) = database.read(providers.list_providers_of_host, HOST)
    return row.published_traits


# --- former traits of Cyborg ---


def test_sync_removes_own_old_trait_only(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    provider = placement.providers[nic]
    provider.traits |= {'CUSTOM_RACK_7'}
    placement.names.add('CUSTOM_RACK_7')
    provider.touch()
    change_deployable(database, nic, traits=['CUSTOM_PHYSNET2'])
    sync.sync(HOST)
    assert provider.traits == {OWNER_CYBORG, 'CUSTOM_PHYSNET2', 'CUSTOM_RACK_7'}
    assert read_published_traits(database) == ('CUSTOM_PHYSNET2',)


def test_sync_keeps_former_trait_of_operator(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    change_deployable(database, nic, traits=[])
    sync.sync(HOST)
    provider = placement.providers[nic]
    assert provider.traits == {OWNER_CYBORG}
    provider.traits |= {'CUSTOM_PHYSNET1'}
    provider.touch()
    assert sync.sync(HOST) == SyncResult()
    assert provider.traits == {OWNER_CYBORG, 'CUSTOM_PHYSNET1'}


class Cut(FakePlacement):
    """Placement that sets traits and loses the reply."""

    def set_traits(
        self, uuid: str, generation: int, traits: Collection[str]
    ) -> ProviderTraits:
        super().set_traits(uuid, generation, traits)
        raise ServiceUnavailable(what='Placement')


def test_sync_crash_after_set_traits_is_repaired(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    """The trait was recorded first, so the next sync may remove it."""
    cut = Cut()
    cut.providers, cut.names = placement.providers, placement.names
    change_deployable(database, nic, traits=['CUSTOM_A'])
    with pytest.raises(ServiceUnavailable):
        PlacementSync(database, cut).sync(HOST)
    assert 'CUSTOM_A' in placement.providers[nic].traits
    change_deployable(database, nic, traits=['CUSTOM_B'])
    sync.sync(HOST)
    assert placement.providers[nic].traits == {OWNER_CYBORG, 'CUSTOM_B'}


def test_sync_deleted_provider_has_no_record(
    database: Database, sync: PlacementSync, nic: str
) -> None:
    remove_devices(database, [nic])
    sync.sync(HOST, SyncMode(prune=True))
    add_device(database, HOST, 'nic')
    assert read_published_traits(database) is None


def test_sync_unchanged_is_one_read(
    database: Database, sync: PlacementSync, nic: str
) -> None:
    with statements(database) as sql:
        sync.sync(HOST)
    assert len(sql) == 1
    assert writes(sql) == []


# --- names and places ---


def test_sync_renamed_provider_is_restored(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    provider = placement.providers[nic]
    provider.node = replace(provider.node, name='mine')
    (change,) = sync.sync(HOST).changes
    assert change.name == f'{HOST}_nic'
    assert change.description == 'was named mine'
    assert provider.node.name == f'{HOST}_nic'
    assert sync.sync(HOST) == SyncResult()


def stray(placement: FakePlacement, uuid: str) -> TreeNode:
    """Put a provider below another compute node."""
    foreign_root = placement.create_provider(str(uuid4()), f'compute-{uuid4()}', None)
    provider = placement.providers[uuid]
    provider.node = replace(
        provider.node, parent_uuid=foreign_root.uuid, root_uuid=foreign_root.uuid
    )
    return foreign_root


def test_sync_moved_provider_in_use_is_reported(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    server = placement.allocate(nic, {'PGPU': 1})
    foreign_root = stray(placement, nic)
    (problem,) = sync.sync(HOST).problems
    assert 'cannot be moved: it has allocations' in problem.reason
    del placement.consumers[server.uuid]
    child = placement.create_provider(str(uuid4()), 'child', nic)
    (problem,) = sync.sync(HOST).problems
    assert 'cannot be moved: it has child providers' in problem.reason
    assert placement.providers[nic].node.parent_uuid == foreign_root.uuid
    placement.delete_provider(child.uuid)
    assert sync.sync(HOST).problems == ()


def test_sync_old_placement_reports_microversion(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    stray(placement, nic)
    placement.is_old = True
    (problem,) = sync.sync(HOST).problems
    assert '1.37' in problem.reason


# --- deep ---


def test_sync_deep_ignores_cached_generation(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    """The database of Placement was restored to the same generation."""
    placement.providers[nic].inventories = {}
    assert sync.sync(HOST) == SyncResult()
    assert len(sync.sync(HOST, SyncMode(deep=True)).changes) == 1
    assert placement.providers[nic].inventories == {'PGPU': ProviderInventory(1)}
    assert sync.sync(HOST, SyncMode(deep=True)) == SyncResult()


def test_sync_without_devices_needs_no_compute_node(
    database: Database, sync: PlacementSync
) -> None:
    assert sync.sync('storage-1', SyncMode(deep=True)) == SyncResult()


# --- rehearsals ---


def test_rehearse_predicts_sync_and_changes_nothing(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    placement.providers[nic].traits = frozenset()
    placement.providers[nic].touch()
    removed, used = (add_device(database, HOST, part) for part in ('removed', 'used'))
    sync.sync(HOST)
    placement.providers[nic].inventories = {}
    placement.providers[nic].touch()
    placement.allocate(used, {'PGPU': 1})
    remove_devices(database, [removed, used])
    add_device(database, HOST, 'new', traits=['CUSTOM_UNHEARD_OF'])
    before = copy.deepcopy(placement.providers)
    with statements(database) as sql:
        expected = sync.rehearse(HOST)
    assert writes(sql) == []
    assert placement.providers == before
    assert len(expected.changes) == 7
    assert sync.sync(HOST) == expected
    assert sync.rehearse(HOST) == SyncResult(problems=expected.problems)


def test_rehearse_predicts_move(
    placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    stray(placement, nic)
    before = copy.deepcopy(placement.providers)
    (change,) = sync.rehearse(HOST).changes
    assert 'was below' in change.description
    assert placement.providers == before


def test_rehearse_predicts_class_in_use(
    database: Database, placement: FakePlacement, sync: PlacementSync, nic: str
) -> None:
    placement.allocate(nic, {'PGPU': 1})
    change_deployable(database, nic, resource_class='VGPU')
    expected = sync.rehearse(HOST)
    assert expected.problems
    assert sync.sync(HOST) == expected
