# SPDX-License-Identifier: Apache-2.0
"""Selectors with a real Placement: what Nova is offered."""

import pytest

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
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
    create_profile,
    find_trait,
    store_attributes,
)
from tests.builders.service_rows import mark_down
from tests.servers.databases import database_fixture
from tests.servers.placed_host import Host, host
from tests.servers.placement import CountedRemote, remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')

LARGE = typed_attributes.MEMORY.of(81920)
SMALL = typed_attributes.MEMORY.of(16384)


@pytest.fixture
def runner(database: Database, remote: CountedRemote) -> SyncRunner:
    return SyncRunner(database, Placement(remote))


def list_candidates(host: Host, group: dict[str, str]) -> set[str]:
    """Return the providers that Placement offers for a group."""
    return {*host.placement.list_candidates({'PGPU': 1}, {find_trait(group)}, ())}


def test_selector_offers_matching_providers_only(
    database: Database, host: Host, runner: SyncRunner
) -> None:
    large = add_deployable(database, host.name, 'large', LARGE)
    add_deployable(database, host.name, 'small', SMALL)
    runner.sync(host.name)
    group = compile_keys(video_ram='40GB', selector="device.type == 'GPU'")
    profile = create_profile(database, group)
    runner.run()
    assert list_candidates(host, group) == {large}
    change_deployable(database, large, typed_attributes=store_attributes([SMALL]))
    runner.sync(host.name)
    assert list_candidates(host, group) == set()
    change_deployable(database, large, typed_attributes=store_attributes([LARGE]))
    runner.sync(host.name)
    assert list_candidates(host, group) == {large}
    mark_down(database, host.name)
    runner.sync(host.name)
    assert list_candidates(host, group) == set()
    database.write(profiles.delete_profiles, [profile.uuid], None)
    runner.run()
    assert find_trait(group) not in host.read(large).traits


def test_explain_selector_before_first_sync(
    database: Database, host: Host, runner: SyncRunner
) -> None:
    explaining = ExplanationService(database, host.placement)
    group = compile_keys(selector='device.memory_mib >= 40GiB')
    with pytest.raises(ImpossibleDeviceProfile, match='matches the selector'):
        explaining.check(build_profile((group,)))
    large = add_deployable(database, host.name, 'large', LARGE)
    add_handles(database, large, 1)
    explaining.check(build_profile((group,)))
    profile = create_profile(database, group)
    runner.sync(host.name)
    explanation = explaining.explain(None, profile.uuid, None)
    assert explanation.result is FitResult.FITS
