# SPDX-License-Identifier: Apache-2.0
"""Deletion of custom traits and resource classes that nobody uses."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.providers.pruning import prune_names
from cyborg_lite.conductor.providers.sync import PlacementSync, SyncMode
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.providers import providers
from cyborg_lite.model.traits import EMPTIED
from tests.builders.provider_rows import add_device, remove_devices
from tests.builders.rows import add_profile
from tests.doubles.placement import FakePlacement

HOST = 'compute-1'
OWN_CLASS, OWN_TRAIT = 'CUSTOM_CYBORG_VGPU', 'CUSTOM_PHYSNET1'
FOREIGN = frozenset({'CUSTOM_BAREMETAL_GOLD', 'CUSTOM_RACK_7'})


@pytest.fixture
def card(database: Database, placement: FakePlacement, sync: PlacementSync) -> str:
    """Publish a card with a class and a trait that the operator chose."""
    placement.create_custom_names(
        ['CUSTOM_BAREMETAL_GOLD', 'CUSTOM_QAT'],
        ['CUSTOM_RACK_7', 'CUSTOM_NVIDIA_1EB8', EMPTIED],
    )
    rp_uuid = add_device(
        database, HOST, 'gpu', resource_class=OWN_CLASS, traits=[OWN_TRAIT]
    )
    sync.sync(HOST)
    return rp_uuid


def prune(database: Database, placement: FakePlacement) -> list[str]:
    published = database.read(providers.list_published_traits)
    sync = PlacementSync(database, placement)
    sync.sync(HOST, SyncMode(deep=True, prune=True))
    return list(prune_names(database, placement, published))


def test_prune_keeps_names_in_use(
    database: Database, placement: FakePlacement, card: str
) -> None:
    assert prune(database, placement) == [
        f'custom trait {EMPTIED}: deleted, unused',
        'custom trait CUSTOM_NVIDIA_1EB8: deleted, unused',
        'resource class CUSTOM_QAT: deleted, unused',
    ]
    assert {*FOREIGN, OWN_CLASS, OWN_TRAIT} <= placement.names


def test_prune_keeps_names_of_device_profiles(
    database: Database, placement: FakePlacement, card: str
) -> None:
    group = {f'resources:{OWN_CLASS}': '1', f'trait:{OWN_TRAIT}': 'required'}
    add_profile(database, [group])
    remove_devices(database, [card])
    prune(database, placement)
    assert {OWN_CLASS, OWN_TRAIT} <= placement.names


def test_prune_keeps_class_with_foreign_inventory(
    database: Database, placement: FakePlacement, card: str
) -> None:
    foreign = placement.create_provider(str(uuid4()), 'ironic-node', None)
    state = placement.providers[card]
    placement.providers[foreign.uuid].inventories = dict(state.inventories)
    remove_devices(database, [card])
    prune(database, placement)
    assert OWN_CLASS in placement.names
