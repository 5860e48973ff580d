# SPDX-License-Identifier: Apache-2.0
"""Tests of the service for device profiles: hidden profiles and impossible groups."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.conductor.profiles.device_profiles import (
    DeviceProfileService,
    viewing_project,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.profiles import DeviceProfileNotFound, ImpossibleDeviceProfile
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.doubles.placement import FakePlacement

ADMIN = RequestContext(is_admin=True)
MEMBER = RequestContext(project_id='lab')
GROUP = {'resources:PGPU': '1'}


@pytest.fixture
def service(database: Database) -> DeviceProfileService:
    return DeviceProfileService(database, ExplanationService(database, FakePlacement()))


def build_profile(name: str, *, is_public: bool = True) -> DeviceProfile:
    return DeviceProfile(
        str(uuid4()), name, None, (GROUP,), datetime.now(UTC), is_public=is_public
    )


def list_names(service: DeviceProfileService, context: RequestContext) -> list[str]:
    return [profile.name for profile in service.list(context, Query())]


def test_hidden_profile_is_not_found(service: DeviceProfileService) -> None:
    profile = build_profile('closed', is_public=False)
    service.create(ADMIN, [profile], possible=False)
    with pytest.raises(DeviceProfileNotFound):
        service.delete(MEMBER, ['closed'])
    with pytest.raises(DeviceProfileNotFound):
        service.explain(MEMBER, profile.uuid, None)
    with pytest.raises(DeviceProfileNotFound):
        service.count_capacity(MEMBER, profile.uuid, None)
    with pytest.raises(DeviceProfileNotFound):
        service.change(
            MEMBER,
            profile.uuid,
            ProfileChange(('name',), name='x'),
            possible=False,
        )
    service.delete(ADMIN, ['closed'])
    assert list_names(service, ADMIN) == []


def test_create_impossible_profile_raises_only_if_requested(
    service: DeviceProfileService,
) -> None:
    """The cloud has no devices, so no profile is possible."""
    with pytest.raises(ImpossibleDeviceProfile):
        service.create(ADMIN, [build_profile('gpu')], possible=True)
    assert list_names(service, ADMIN) == []
    service.create(ADMIN, [build_profile('gpu')], possible=False)
    assert list_names(service, ADMIN) == ['gpu']


def test_change_checks_new_groups_only(service: DeviceProfileService) -> None:
    profile = build_profile('gpu')
    service.create(ADMIN, [profile], possible=False)
    renamed = service.change(
        ADMIN,
        profile.uuid,
        ProfileChange(('name',), name='new'),
        possible=True,
    )
    assert renamed.name == 'new'
    groups = ProfileChange(('groups',), groups=({'resources:PGPU': '2'},))
    with pytest.raises(ImpossibleDeviceProfile):
        service.change(ADMIN, profile.uuid, groups, possible=True)
    changed = service.change(ADMIN, profile.uuid, groups, possible=False)
    assert changed.groups == ({'resources:PGPU': '2'},)


@pytest.mark.parametrize(
    ('context', 'project'),
    [(ADMIN, None), (MEMBER, 'lab'), (RequestContext(), '')],
)
def test_viewing_project_is_none_for_admins_only(
    context: RequestContext, project: str | None
) -> None:
    assert viewing_project(context) == project
