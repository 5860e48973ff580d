# SPDX-License-Identifier: Apache-2.0
"""Syncs that are paused while another conductor finishes a newer sync."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

import pytest

from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.providers.providers import ProviderInventory
from tests.builders.provider_rows import (
    add_device,
    change_deployable,
    change_device,
    remove_devices,
)
from tests.doubles.placement import FakePlacement

HOST = 'compute-1'


class PausedPlacement(FakePlacement):
    """Client of a paused conductor: other conductors act before a certain request."""

    def __init__(self, shared: FakePlacement) -> None:
        super().__init__()
        self.providers = shared.providers
        self.consumers = shared.consumers
        self.names = shared.names
        self.pause_before = ''
        self.during_pause: Callable[[], object] | None = None

    def pause(self, request: str, during_pause: Callable[[], object]) -> None:
        """Call a function before the first request that begins with a text."""
        self.pause_before, self.during_pause = request, during_pause

    def _count_call(self, call: str) -> None:
        during_pause = self.during_pause
        if during_pause is not None and call.startswith(self.pause_before):
            self.during_pause = None
            during_pause()
        super()._count_call(call)


@dataclass(frozen=True, slots=True)
class Race:
    """Two conductors of one host; the older sync is paused while the newer runs."""

    newer: PlacementSync
    older: PlacementSync
    client: PausedPlacement  # of the older sync


@pytest.fixture
def race(database: Database, placement: FakePlacement) -> Race:
    client = PausedPlacement(placement)
    return Race(
        PlacementSync(database, placement, ['edge-*']),
        PlacementSync(database, client, ['edge-*']),
        client,
    )


@pytest.mark.parametrize('request_part', ['inventories', 'traits'])
@pytest.mark.parametrize('method', ['GET', 'PUT'])
def test_sync_paused_before_request_keeps_newer_inventory(
    database: Database,
    placement: FakePlacement,
    race: Race,
    method: str,
    request_part: str,
) -> None:
    gpu = add_device(database, HOST, 'gpu', num_accelerators=4)
    race.newer.sync(HOST)
    # The older sync computes both from this state.
    change_device(database, gpu, status='maintaining')
    change_deployable(database, gpu, traits=['CUSTOM_OLD'])

    def finish_newer_sync() -> None:
        change_device(database, gpu, status='enabled')
        change_deployable(database, gpu, traits=['CUSTOM_NEW'], num_accelerators=5)
        race.newer.sync(HOST)

    race.client.pause(
        f'{method} /resource_providers/{gpu}/{request_part}', finish_newer_sync
    )
    race.older.sync(HOST)
    assert race.client.during_pause is None
    provider = placement.providers[gpu]
    assert provider.inventories == {'PGPU': ProviderInventory(5, max_unit=5)}
    assert 'CUSTOM_NEW' in provider.traits
    assert 'CUSTOM_OLD' not in provider.traits


def test_sync_after_conflict_reads_changed_provider_once(
    database: Database, race: Race
) -> None:
    gpu = add_device(database, HOST, 'gpu')
    race.newer.sync(HOST)
    request = f'GET /resource_providers/{gpu}/inventories'

    def finish_newer_sync() -> None:
        change_deployable(database, gpu, num_accelerators=2)
        race.newer.sync(HOST)

    race.client.pause(request, finish_newer_sync)
    race.older.sync(HOST)
    assert race.client.calls.count(request) == 1


@pytest.mark.parametrize('request_part', ['GET', 'PUT'])
def test_sync_paused_before_removal_keeps_returned_device(
    database: Database,
    placement: FakePlacement,
    race: Race,
    request_part: str,
) -> None:
    add_device(database, HOST, 'other')
    gpu = add_device(database, HOST, 'gpu')
    race.newer.sync(HOST)
    remove_devices(database, [gpu])

    def return_gpu() -> None:
        add_device(database, HOST, 'gpu', num_accelerators=2)
        race.newer.sync(HOST)

    race.client.pause(
        f'{request_part} /resource_providers/{gpu}/inventories', return_gpu
    )
    race.older.sync(HOST)
    assert race.client.during_pause is None
    assert placement.providers[gpu].inventories == {
        'PGPU': ProviderInventory(2, max_unit=2)
    }


def test_sync_paused_before_moved_provider_read_keeps_newer(
    database: Database,
    placement: FakePlacement,
    race: Race,
) -> None:
    """The provider is below another root, so the tree of the host lacks it."""
    gpu = add_device(database, HOST, 'gpu', num_accelerators=4)
    race.newer.sync(HOST)
    elsewhere = placement.create_provider(str(uuid4()), 'compute-2', None)
    node = placement.providers[gpu].node
    placement.move_provider(node, node.name, elsewhere.uuid)
    change_device(database, gpu, status='maintaining')

    def finish_newer_sync() -> None:
        change_device(database, gpu, status='enabled')
        change_deployable(database, gpu, num_accelerators=5)
        race.newer.sync(HOST)
        placement.move_provider(
            placement.providers[gpu].node, node.name, elsewhere.uuid
        )

    race.client.pause(f'GET /resource_providers/{gpu}/inventories', finish_newer_sync)
    race.older.sync(HOST)
    assert race.client.during_pause is None
    assert placement.providers[gpu].inventories['PGPU'] == ProviderInventory(
        5, max_unit=5
    )
