# SPDX-License-Identifier: Apache-2.0
"""Tests of providers for groups: queries of Placement, and capacities."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.capacity.group_candidates import CandidateFinder
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.core.engine import Database
from tests.builders.provider_rows import add_device
from tests.builders.rows import HOST, add_handles
from tests.doubles.placement import FakePlacement

CARD = {'resources:PGPU': '1'}
T4 = {'resources:PGPU': '1', 'trait:CUSTOM_NVIDIA_1EB8': 'required'}
BIG = {'resources:PGPU': '9', 'trait:CUSTOM_NVIDIA_1EB8': 'required'}
ON_HOST = {**CARD, 'accel:attach_to': 'host'}


@pytest.fixture
def rp_uuid(database: Database) -> str:
    rp_uuid = add_device(database, HOST, '0000:3b:00.0')
    add_handles(database, rp_uuid, 1)
    return rp_uuid


@pytest.fixture
def placement(database: Database, rp_uuid: str) -> FakePlacement:
    placement = FakePlacement()
    placement.create_provider(str(uuid4()), HOST, None)
    PlacementSync(database, placement).sync(HOST)
    placement.calls.clear()
    return placement


@pytest.fixture
def finder(database: Database, placement: FakePlacement) -> CandidateFinder:
    return CandidateFinder(database, placement)


def test_find_queries_equal_groups_once(
    finder: CandidateFinder, placement: FakePlacement, rp_uuid: str
) -> None:
    first, second, big = finder.find([T4, T4, BIG])
    assert first == second
    assert first.offers.keys() == {rp_uuid}
    assert (big.offers, big.trait_matches) == ({}, frozenset({rp_uuid}))
    # Free units and traits, of two distinct groups.
    assert len(placement.calls) == 4


def test_find_sends_only_requested_queries(
    finder: CandidateFinder, placement: FakePlacement, rp_uuid: str
) -> None:
    (candidate,) = finder.find([T4], traits=False)
    assert candidate.offers.keys() == {rp_uuid}
    assert not candidate.trait_matches
    (candidate,) = finder.find([T4], free=False)
    assert (candidate.offers, candidate.trait_matches) == ({}, frozenset({rp_uuid}))
    assert len(placement.calls) == 2
    # All providers satisfy a group without traits.
    assert not finder.find([CARD], free=False)[0].trait_matches
    assert len(placement.calls) == 2


def test_list_capacities_reads_database(
    finder: CandidateFinder, placement: FakePlacement, rp_uuid: str
) -> None:
    (capacity,) = finder.list_capacities([CARD], close=False)
    assert (capacity.rp_uuid, capacity.free_handles) == (rp_uuid, 1)
    assert not placement.calls
    assert finder.list_capacities([CARD], close=True) == (capacity,)
