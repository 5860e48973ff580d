# SPDX-License-Identifier: Apache-2.0
"""Tests of the number of further servers by database and Placement."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.capacity.group_candidates import CandidateFinder
from cyborg_lite.conductor.capacity.server_capacity import CapacityService
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.core.engine import Database
from tests.builders.provider_rows import add_device
from tests.builders.rows import add_handles
from tests.doubles.placement import FakePlacement

CARD = {'resources:PGPU': '1'}


@pytest.fixture
def placement(database: Database) -> FakePlacement:
    """Return a Placement with a host of one card and a host of two cards."""
    placement = FakePlacement()
    for host, parts in (('compute-1', 'a'), ('compute-2', 'ab')):
        placement.create_provider(str(uuid4()), host, None)
        for part in parts:
            add_handles(database, add_device(database, host, part), 1)
        PlacementSync(database, placement).sync(host)
    placement.calls.clear()
    return placement


@pytest.fixture
def service(database: Database, placement: FakePlacement) -> CapacityService:
    return CapacityService(database, CandidateFinder(database, placement))


def test_count_lists_hosts_and_total(service: CapacityService) -> None:
    capacity = service.count([CARD])
    assert {host.hostname: host.servers for host in capacity.hosts} == {
        'compute-1': 1,
        'compute-2': 2,
    }
    assert (capacity.servers, capacity.is_exact, capacity.warnings) == (3, True, ())


def test_count_sends_one_query_per_distinct_group(
    service: CapacityService, placement: FakePlacement
) -> None:
    assert service.count([CARD, CARD]).servers == 1
    assert len(placement.calls) == 1


@pytest.mark.parametrize(('host', 'servers'), [('compute-2', [2]), ('unknown', [])])
def test_count_of_one_host(
    service: CapacityService, host: str, servers: list[int]
) -> None:
    capacity = service.count([CARD], host)
    assert [item.servers for item in capacity.hosts] == servers
    assert capacity.servers == sum(servers)


def test_count_respects_allocations_without_arqs(
    service: CapacityService, placement: FakePlacement
) -> None:
    """An instance allocates its card before its ARQ is bound."""
    (rp_uuid,) = (
        uuid
        for uuid, state in placement.providers.items()
        if state.node.name.endswith('compute-1_a')
    )
    placement.allocate(rp_uuid, {'PGPU': 1})
    assert service.count([CARD], 'compute-1').servers == 0
