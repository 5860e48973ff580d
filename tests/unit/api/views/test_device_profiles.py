# SPDX-License-Identifier: Apache-2.0
"""Tests of device profiles in responses."""

from datetime import UTC, datetime

from cyborg_lite.api.microversion import V2_3, V2_4
from cyborg_lite.api.views.device_profiles import (
    ProfileList,
    ProfileView,
    WrappedProfile,
)
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from tests.builders.api_calls import render

PROFILE = DeviceProfile(
    uuid='5c9a477a-d3d4-426a-9e9c-b2660917780e',
    name='gpu',
    description=None,
    groups=({'resources:PGPU': '1'}, {'resources:FPGA': '2'}),
    created_at=datetime(2026, 11, 21, tzinfo=UTC),
)


def test_profile_view_shows_groups_and_self_link() -> None:
    body = render(ProfileView(PROFILE))
    assert body['groups'] == [{'resources:PGPU': '1'}, {'resources:FPGA': '2'}]
    assert body['description'] is None
    assert body['links'] == [
        {'href': f'http://api/v2/device_profiles/{PROFILE.uuid}', 'rel': 'self'}
    ]


def test_profile_view_visibility_needs_2_4() -> None:
    older = render(ProfileView(PROFILE), V2_3)
    newer = render(ProfileView(PROFILE), V2_4)
    assert newer.keys() - older.keys() == {'enabled', 'is_public'}
    assert (newer['enabled'], newer['is_public']) == (True, True)


def test_wrapped_profile_has_required_key() -> None:
    body = render(WrappedProfile(device_profile=PROFILE))
    assert body == {'device_profile': render(ProfileView(PROFILE))}


def test_profile_list_without_next_page_has_no_links() -> None:
    body = render(ProfileList([PROFILE]), V2_4)
    assert body.keys() == {'device_profiles'}
