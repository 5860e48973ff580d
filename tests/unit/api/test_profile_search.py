# SPDX-License-Identifier: Apache-2.0
"""A device profile is found by what clients call it."""

from typing import Final

import pytest

from cyborg_lite.api import profile_search
from cyborg_lite.exceptions import DeviceProfileNotFound
from tests.fakes.conductor import FakeConductor
from tests.unit.api.calls import backing, call
from tests.unit.api.conversation import STRANGER, Client

UUID: Final = 'd5ca2f11-3108-4426-a11c-a959987565df'


def found(client: Client, identifier: str) -> str:
    """The name of what is found."""
    asked = call(behind=backing(client.conductor))
    return profile_search.found(client.conductor, asked, identifier).name


def test_by_its_name_and_by_any_spelling_of_its_uuid(client: Client) -> None:
    uuid = client.profile('dp1')['uuid']
    client.profile('dp2')
    for identifier in ('dp1', uuid, uuid.upper(), uuid.replace('-', '')):
        assert found(client, identifier) == 'dp1'


def test_a_name_may_look_like_a_uuid(client: Client) -> None:
    client.profile(UUID)
    assert found(client, UUID) == UUID


def test_the_uuid_of_one_goes_before_the_name_of_another(client: Client) -> None:
    uuid = client.profile('dp1')['uuid']
    client.profile(uuid)
    assert found(client, uuid) == 'dp1'


@pytest.mark.parametrize('identifier', ['dp2', UUID, '', 'dp1\n', 'dp1,dp2', '%'])
def test_what_is_not_there_is_named(client: Client, identifier: str) -> None:
    client.profile('dp1')
    with pytest.raises(DeviceProfileNotFound, match='not found'):
        found(client, identifier)


def test_what_could_be_no_name_is_not_even_asked_for() -> None:
    asked: list[object] = []

    class Watched(FakeConductor):
        def list_device_profiles(self, *arguments: object) -> list[object]:  # type: ignore[override]  # it is never used
            asked.append(arguments)
            return []

    conductor = Watched()
    with pytest.raises(DeviceProfileNotFound):
        profile_search.found(conductor, call(), "dp1' OR 1=1")
    assert asked == []


def test_a_private_one_is_not_there_for_strangers(client: Client) -> None:
    client.profile('dp1')
    patch = [{'op': 'replace', 'path': '/is_public', 'value': False}]
    assert client.at('2.4').patch('/device_profiles/dp1', patch).status == 200
    asked = call(headers=STRANGER, behind=backing(client.conductor))
    with pytest.raises(DeviceProfileNotFound):
        profile_search.found(client.conductor, asked, 'dp1')
