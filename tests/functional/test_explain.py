# SPDX-License-Identifier: Apache-2.0
"""Reasons why a device profile fits or not, by a real Placement and the database."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.profiles import ImpossibleDeviceProfile
from cyborg_lite.model.capacity.explanations import FitResult
from cyborg_lite.model.inventory import typed_attributes
from tests.builders.alternatives import build_profile
from tests.builders.provider_rows import change_deployable
from tests.builders.rows import add_handles
from tests.builders.selector_fleets import (
    SyncRunner,
    add_deployable,
    compile_keys,
    compile_set,
    create_profile,
    make_group,
)
from tests.servers.databases import database_fixture
from tests.servers.placed_host import Host, host
from tests.servers.placement import CountedRemote, remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')

LARGE = typed_attributes.MEMORY.of(81920)
SAME_NODE = typed_attributes.SAME_NUMA_NODE

Explain = Callable[[dict[str, str]], FitResult]


@pytest.fixture
def runner(database: Database, remote: CountedRemote) -> SyncRunner:
    return SyncRunner(database, Placement(remote))


@pytest.fixture
def explain(database: Database, host: Host) -> Explain:
    """Return a function that explains a new profile with a group."""

    def explain_group(group: dict[str, str]) -> FitResult:
        profile = create_profile(database, group)
        explaining = ExplanationService(database, host.placement)
        return explaining.explain(None, profile.uuid, None).result

    return explain_group


def test_explain_uses_trait_added_in_placement(
    database: Database, host: Host, explain: Explain
) -> None:
    add_handles(database, host.gpu, 4)
    own_trait = f'CUSTOM_{uuid4().hex.upper()}'
    host.placement.create_custom_names((), [own_trait])
    traits = {*host.read(host.gpu).traits, own_trait}
    host.placement.set_traits(host.gpu, host.generation(host.gpu), traits)
    group = {'resources:PGPU': '1', f'trait:{own_trait}': 'required'}
    assert explain(group) is FitResult.FITS
    for _server in range(4):
        host.allocate(host.gpu)
    assert explain(group) is FitResult.NOT_NOW


def test_explain_selector_before_first_sync(
    database: Database, host: Host, runner: SyncRunner, explain: Explain
) -> None:
    explaining = ExplanationService(database, host.placement)
    group = compile_keys(selector='device.memory_mib >= 40GiB')
    with pytest.raises(ImpossibleDeviceProfile, match='matches the selector'):
        explaining.check(build_profile((group,)))
    large = add_deployable(database, host.name, 'large', LARGE)
    add_handles(database, large, 1)
    explaining.check(build_profile((group,)))
    create_profile(database, group)
    runner.sync(host.name)
    assert explain(group) is FitResult.FITS


def test_explain_set_without_provider(
    database: Database, host: Host, runner: SyncRunner, explain: Explain
) -> None:
    group = compile_set('numa_node', 2)
    change_deployable(database, host.gpu, num_accelerators=1)
    for part in ('single-1', 'single-2'):
        add_handles(database, add_deployable(database, host.name, part), 1)
    create_profile(database, group)
    runner.sync(host.name)
    assert explain(group) is FitResult.NEVER
    pair = add_deployable(database, host.name, 'pair', SAME_NODE.of(True))
    make_group(database, pair)
    add_handles(database, pair, 2)
    runner.sync(host.name)
    assert explain(group) is FitResult.FITS
