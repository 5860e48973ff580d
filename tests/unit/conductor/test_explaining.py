# SPDX-License-Identifier: Apache-2.0
"""What is asked of Placement to explain a profile, and what follows from silence."""

from dataclasses import replace
from uuid import uuid4

import pytest

from cyborg_lite.conductor.explaining import Explaining
from cyborg_lite.conductor.placement_sync import PlacementSync
from cyborg_lite.db import device_profiles
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import now
from cyborg_lite.exceptions import (
    DeviceProfileNotFound,
    ImpossibleDeviceProfile,
    ServiceUnavailable,
)
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.explanations import Verdict, Why
from tests.fakes.placement import FakePlacement
from tests.fakes.provider_rows import add_device
from tests.fakes.rows import add_handles

ONE = {'resources:PGPU': '1'}


@pytest.fixture
def placement(database: Database) -> FakePlacement:
    """With two hosts of one card each."""
    placement = FakePlacement()
    for host in ('compute-1', 'compute-2'):
        placement.create_provider(str(uuid4()), host, None)
        add_handles(database, add_device(database, host, '0000:3b:00.0'), 1)
        PlacementSync(database, placement).sync(host)
    placement.calls.clear()
    return placement


@pytest.fixture
def explaining(database: Database, placement: FakePlacement) -> Explaining:
    return Explaining(database, placement)


def profile(database: Database, *groups: dict[str, str], **fields: bool) -> str:
    made = DeviceProfile(str(uuid4()), f'p-{uuid4()}', None, groups, now())
    changed = replace(made, **fields)  # type: ignore[arg-type]  # some fields
    return database.write(device_profiles.create, changed).uuid


def test_every_host_is_told_of_or_the_one_that_is_named(
    database: Database, explaining: Explaining
) -> None:
    uuid = profile(database, ONE)
    found = explaining.explain(None, uuid, None)
    assert [one.hostname for one in found.hosts] == ['compute-1', 'compute-2']
    (host,) = explaining.explain(None, uuid, 'compute-2').hosts
    assert (host.hostname, host.fits) == ('compute-2', True)


def test_groups_that_are_alike_are_one_question(
    database: Database, placement: FakePlacement, explaining: Explaining
) -> None:
    explaining.explain(None, profile(database, ONE, ONE, ONE), None)
    assert placement.calls == ['GET /allocation_candidates']
    placement.calls.clear()
    marked = {**ONE, 'trait:CUSTOM_NVIDIA_1EB8': 'required'}
    explaining.explain(None, profile(database, marked, marked), None)
    assert len(placement.calls) == 2


def test_a_disabled_profile_is_explained_with_a_warning(
    database: Database, explaining: Explaining
) -> None:
    found = explaining.explain(None, profile(database, ONE, enabled=False), None)
    assert found.verdict is Verdict.FITS
    assert [one.why for one in found.warnings] == [Why.DISABLED]


def test_a_profile_that_is_not_seen_is_not_there(
    database: Database, explaining: Explaining
) -> None:
    hidden = profile(database, ONE, is_public=False)
    with pytest.raises(DeviceProfileNotFound):
        explaining.explain('project', hidden, None)
    with pytest.raises(DeviceProfileNotFound):
        explaining.explain(None, str(uuid4()), None)


def test_without_placement_nothing_is_claimed(
    database: Database, placement: FakePlacement, explaining: Explaining
) -> None:
    uuid = profile(database, ONE)
    placement.errors.append(ServiceUnavailable(what='Placement'))
    with pytest.raises(ServiceUnavailable):
        explaining.explain(None, uuid, None)


def test_a_group_without_traits_is_checked_without_placement(
    placement: FakePlacement, explaining: Explaining
) -> None:
    explaining.check('possible', [ONE, ONE])
    with pytest.raises(ImpossibleDeviceProfile, match=r'groups\[1\]'):
        explaining.check('greedy', [ONE, {'resources:PGPU': '2'}])
    assert placement.calls == []
