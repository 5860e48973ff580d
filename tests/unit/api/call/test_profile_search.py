# SPDX-License-Identifier: Apache-2.0
"""Tests of the search for device profiles."""

from typing import Final

import pytest

from cyborg_lite.api.call import profile_search
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from tests.support.api.calls import build_api_context, build_call
from tests.support.api.conversation import OTHER_MEMBER, Client

UUID: Final = 'd5ca2f11-3108-4426-a11c-a959987565df'


def find_name(client: Client, identifier: str) -> str:
    """Return the name of the profile with an identifier."""
    call = build_call(context=build_api_context(client.conductor))
    return profile_search.find_profile(client.conductor.client, call, identifier).name


def test_find_profile_by_name_or_uuid(client: Client) -> None:
    uuid = client.create_profile('dp1')['uuid']
    client.create_profile('dp2')
    for identifier in ('dp1', uuid, uuid.upper(), uuid.replace('-', '')):
        assert find_name(client, identifier) == 'dp1'


def test_find_profile_name_may_look_like_uuid(client: Client) -> None:
    client.create_profile(UUID)
    assert find_name(client, UUID) == UUID


def test_find_profile_uuid_precedes_name(client: Client) -> None:
    uuid = client.create_profile('dp1')['uuid']
    client.create_profile(uuid)
    assert find_name(client, uuid) == 'dp1'


@pytest.mark.parametrize('identifier', ['dp2', UUID, '', 'dp1\n', 'dp1,dp2', '%'])
def test_find_profile_unknown_is_named(client: Client, identifier: str) -> None:
    client.create_profile('dp1')
    with pytest.raises(DeviceProfileNotFound, match='not found'):
        find_name(client, identifier)


def test_find_profile_malformed_name_skips_conductor(client: Client) -> None:
    with pytest.raises(DeviceProfileNotFound):
        find_name(client, "dp1' OR 1=1")
    assert client.conductor.calls == []


def test_find_profile_private_is_hidden(client: Client) -> None:
    client.create_profile('dp1')
    patch = [{'op': 'replace', 'path': '/is_public', 'value': False}]
    assert client.at('2.4').patch('/device_profiles/dp1', patch).status == 200
    call = build_call(headers=OTHER_MEMBER, context=build_api_context(client.conductor))
    with pytest.raises(DeviceProfileNotFound):
        profile_search.find_profile(client.conductor.client, call, 'dp1')
