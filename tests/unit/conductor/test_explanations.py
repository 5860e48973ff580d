# SPDX-License-Identifier: Apache-2.0
"""Explanations of device profiles, and the calls of Placement for them."""

from dataclasses import replace
from uuid import uuid4

import pytest

from cyborg_lite.conductor.explanations import ExplanationService
from cyborg_lite.conductor.placement.sync import PlacementSync
from cyborg_lite.db.device_profiles import profiles
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import now
from cyborg_lite.exceptions import (
    DeviceProfileNotFound,
    ImpossibleDeviceProfile,
    ServiceUnavailable,
)
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.explanations import FitResult, ReasonCode
from tests.builders.provider_rows import add_device
from tests.builders.rows import add_handles
from tests.doubles.placement import FakePlacement

ONE = {'resources:PGPU': '1'}


@pytest.fixture
def placement(database: Database) -> FakePlacement:
    """Return a Placement with two hosts of one card each."""
    placement = FakePlacement()
    for host in ('compute-1', 'compute-2'):
        placement.create_provider(str(uuid4()), host, None)
        add_handles(database, add_device(database, host, '0000:3b:00.0'), 1)
        PlacementSync(database, placement).sync(host)
    placement.calls.clear()
    return placement


@pytest.fixture
def explanations(database: Database, placement: FakePlacement) -> ExplanationService:
    return ExplanationService(database, placement)


def profile(database: Database, *groups: dict[str, str], **fields: bool) -> str:
    new_profile = DeviceProfile(str(uuid4()), f'p-{uuid4()}', None, groups, now())
    changed = replace(new_profile, **fields)  # type: ignore[arg-type]  # some fields
    return database.write(profiles.create_profile, changed).uuid


def test_explain_hostname_limits_hosts(
    database: Database, explanations: ExplanationService
) -> None:
    uuid = profile(database, ONE)
    explanation = explanations.explain(None, uuid, None)
    assert [fit.hostname for fit in explanation.hosts] == ['compute-1', 'compute-2']
    (host,) = explanations.explain(None, uuid, 'compute-2').hosts
    assert (host.hostname, host.fits) == ('compute-2', True)


def test_explain_equal_groups_are_queried_once(
    database: Database, placement: FakePlacement, explanations: ExplanationService
) -> None:
    explanations.explain(None, profile(database, ONE, ONE, ONE), None)
    assert placement.calls == ['GET /allocation_candidates']
    placement.calls.clear()
    marked = {**ONE, 'trait:CUSTOM_NVIDIA_1EB8': 'required'}
    explanations.explain(None, profile(database, marked, marked), None)
    assert len(placement.calls) == 2


def test_explain_disabled_profile_adds_warning(
    database: Database, explanations: ExplanationService
) -> None:
    explanation = explanations.explain(
        None, profile(database, ONE, enabled=False), None
    )
    assert explanation.result is FitResult.FITS
    assert [reason.code for reason in explanation.warnings] == [ReasonCode.DISABLED]


def test_explain_hidden_profile_raises(
    database: Database, explanations: ExplanationService
) -> None:
    hidden = profile(database, ONE, is_public=False)
    with pytest.raises(DeviceProfileNotFound):
        explanations.explain('project', hidden, None)
    with pytest.raises(DeviceProfileNotFound):
        explanations.explain(None, str(uuid4()), None)


def test_explain_placement_down_raises(
    database: Database, placement: FakePlacement, explanations: ExplanationService
) -> None:
    uuid = profile(database, ONE)
    placement.errors.append(ServiceUnavailable(what='Placement'))
    with pytest.raises(ServiceUnavailable):
        explanations.explain(None, uuid, None)


def test_check_without_traits_does_not_call_placement(
    placement: FakePlacement, explanations: ExplanationService
) -> None:
    explanations.check('possible', [ONE, ONE])
    with pytest.raises(ImpossibleDeviceProfile, match=r'groups\[1\]'):
        explanations.check('greedy', [ONE, {'resources:PGPU': '2'}])
    assert placement.calls == []
