# SPDX-License-Identifier: Apache-2.0
"""Sets of groups with a real Placement: which providers serve all units of a set."""

import pytest

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.capacity.explanations import FitResult
from cyborg_lite.model.inventory import typed_attributes
from tests.builders.provider_rows import change_deployable
from tests.builders.rows import add_handles
from tests.builders.selector_fleets import (
    SyncRunner,
    add_deployable,
    compile_set,
    create_profile,
    find_trait,
    make_group,
)
from tests.servers.databases import database_fixture
from tests.servers.placed_host import Host, host
from tests.servers.placement import CountedRemote, remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')

SAME_CARD = typed_attributes.SAME_CARD
SAME_NODE = typed_attributes.SAME_NUMA_NODE
SAME_FABRIC = typed_attributes.SAME_FABRIC


@pytest.fixture
def runner(database: Database, remote: CountedRemote) -> SyncRunner:
    return SyncRunner(database, Placement(remote))


def list_candidates(host: Host, value: str, providers: set[str]) -> set[str]:
    """Return the providers of a host that Placement offers for two units of a set.

    Providers of the hosts of other tests have the same trait.
    """
    trait = find_trait(compile_set(value))
    return providers.intersection(
        host.placement.list_candidates({'PGPU': 2}, {trait}, ())
    )


def test_placement_offers_providers_whose_units_share(
    database: Database, host: Host, runner: SyncRunner
) -> None:
    singles = [
        add_deployable(database, host.name, part) for part in ('single-1', 'single-2')
    ]
    slot = SAME_CARD.of(True), SAME_NODE.of(True)
    ports = add_deployable(database, host.name, 'ports', *slot)
    cards = SAME_CARD.of(False), SAME_NODE.of(True), SAME_FABRIC.of(True)
    partition = add_deployable(database, host.name, 'partition', *cards)
    unknown = add_deployable(database, host.name, 'unknown')
    for rp_uuid in (ports, partition, unknown):
        make_group(database, rp_uuid)
    for value in ('card', 'numa_node', 'fabric'):
        create_profile(database, compile_set(value, 2))
    runner.sync(host.name)
    providers = {host.gpu, ports, partition, unknown, *singles}
    for value, candidates in (
        ('card', {host.gpu, ports}),
        ('numa_node', {host.gpu, ports, partition}),
        ('fabric', {partition}),
    ):
        assert list_candidates(host, value, providers) == candidates
    assert unknown in host.placement.list_candidates({'PGPU': 2}, (), ())


def test_explain_set_without_provider(
    database: Database, host: Host, runner: SyncRunner
) -> None:
    explaining = ExplanationService(database, host.placement)
    change_deployable(database, host.gpu, num_accelerators=1)
    profile = create_profile(database, compile_set('numa_node', 2))
    for part in ('single-1', 'single-2'):
        add_handles(database, add_deployable(database, host.name, part), 1)
    runner.sync(host.name)
    explanation = explaining.explain(None, profile.uuid, None)
    assert explanation.result is FitResult.NEVER
    pair = add_deployable(database, host.name, 'pair', SAME_NODE.of(True))
    make_group(database, pair)
    add_handles(database, pair, 2)
    runner.sync(host.name)
    explanation = explaining.explain(None, profile.uuid, None)
    assert explanation.result is FitResult.FITS
