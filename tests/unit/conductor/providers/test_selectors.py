# SPDX-License-Identifier: Apache-2.0
"""Traits of selectors in Placement after changes of profiles, hardware and hosts."""

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.traits import OWNER_CYBORG
from tests.builders.provider_rows import change_deployable, change_device
from tests.builders.selector_fleets import (
    SyncRunner,
    add_compute_nodes,
    add_deployable,
    compile_keys,
    create_profile,
    find_trait,
    store_attributes,
)
from tests.builders.selector_texts import (
    DEVICES,
    TREES,
    Node,
    build_attributes,
    decide,
    write_text,
)
from tests.builders.service_rows import mark_down, mark_up
from tests.doubles.placement import FakePlacement

HOST = 'compute-1'
LARGE = typed_attributes.MEMORY.of(81920)
SMALL = typed_attributes.MEMORY.of(16384)
SELECTOR = compile_keys(selector='device.memory_mib >= 40GiB')
TRAIT = find_trait(SELECTOR)


@pytest.fixture
def runner(database: Database, placement: FakePlacement) -> SyncRunner:
    return SyncRunner(database, placement)


def find_matching(placement: FakePlacement, trait: str = TRAIT) -> set[str]:
    """Return the providers with the trait of a selector."""
    return {
        uuid for uuid, state in placement.providers.items() if trait in state.traits
    }


def test_create_profile_marks_matching_providers_only(
    database: Database, placement: FakePlacement, runner: SyncRunner
) -> None:
    large = add_deployable(database, HOST, 'large', LARGE)
    add_deployable(database, HOST, 'small', SMALL)
    add_deployable(database, HOST, 'unknown')
    runner.sync(HOST)
    create_profile(database, SELECTOR)
    assert runner.run() == [OperationKind.SELECTORS, OperationKind.RECONCILE]
    assert find_matching(placement) == {large}
    assert placement.providers[large].traits >= {OWNER_CYBORG, 'CUSTOM_NVIDIA_1EB8'}


def test_host_down_removes_trait_until_up(
    database: Database, placement: FakePlacement, runner: SyncRunner
) -> None:
    rp_uuid = add_deployable(database, HOST, 'gpu', LARGE)
    create_profile(database, SELECTOR)
    runner.sync(HOST)
    mark_down(database, HOST)
    runner.sync(HOST)
    assert find_matching(placement) == set()
    mark_up(database, HOST)
    runner.sync(HOST)
    assert find_matching(placement) == {rp_uuid}
    change_device(database, rp_uuid, health='failed')
    runner.sync(HOST)
    assert find_matching(placement) == set()


def test_foreign_trait_of_selector_is_removed(
    database: Database, placement: FakePlacement, runner: SyncRunner
) -> None:
    """The record of published traits may be lost."""
    rp_uuid = add_deployable(database, HOST, 'gpu', SMALL)
    create_profile(database, SELECTOR)
    runner.sync(HOST)
    state = placement.providers[rp_uuid]
    placement.set_traits(rp_uuid, state.node.generation, state.traits | {TRAIT})
    runner.sync(HOST)
    assert find_matching(placement) == set()


def test_profile_without_selector_writes_no_job(
    database: Database, runner: SyncRunner
) -> None:
    profile = create_profile(database, {'resources:PGPU': '1'})
    database.write(profiles.delete_profiles, [profile.uuid], None)
    # An earlier microversion accepts any value.
    create_profile(database, {'resources:PGPU': '1', 'accel:selector': 'fast'})
    assert runner.run() == []


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(TREES, min_size=1, max_size=3),
    st.lists(DEVICES, min_size=1, max_size=6),
    DEVICES,
)
def test_random_fleet_traits_match_oracle(
    database: Database,
    placement: FakePlacement,
    trees: list[Node],
    fleet: list[dict[str, Any]],
    replacement: dict[str, Any],
) -> None:
    host, runner = f'host-{uuid4()}', SyncRunner(database, placement)
    add_compute_nodes(placement, [host])
    uuids = [
        add_deployable(database, host, f'gpu{number}', *build_attributes(device))
        for number, device in enumerate(fleet)
    ]
    groups = [compile_keys(selector=write_text(tree)) for tree in trees]
    profile = create_profile(database, *groups)
    runner.sync(host)
    column = store_attributes(build_attributes(replacement))
    change_deployable(database, uuids[0], typed_attributes=column)
    runner.sync(host)
    present = [replacement, *fleet[1:]]
    for tree, group in zip(trees, groups, strict=True):
        expected = {
            uuid
            for uuid, device in zip(uuids, present, strict=True)
            if decide(tree, device) is True
        }
        marked = find_matching(placement, find_trait(group)) & {*uuids}
        assert marked == expected
    database.write(profiles.delete_profiles, [profile.uuid], None)
