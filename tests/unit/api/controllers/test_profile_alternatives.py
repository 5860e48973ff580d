# SPDX-License-Identifier: Apache-2.0
"""Alternatives of device profiles, at the microversion that has them and before it."""

from typing import Any, Final

import pytest

from tests.support.api.conversation import ADMIN, MEMBER, Client

LARGE: Final = {'resources:PGPU': '1', 'trait:CUSTOM_LARGE': 'required'}
SHARED: Final = {'resources:VGPU': '1'}
NIC: Final = {'resources:CUSTOM_NIC': '1'}
GROUPS: Final = [{**LARGE, 'alternatives': [SHARED]}, NIC]
NEWER: Final = '2.6'
OLDER: Final = '2.5'


def create(client: Client) -> Any:
    body = [{'name': 'p', 'groups': GROUPS}]
    answer = client.at(NEWER).post('/device_profiles', body)
    assert answer.status == 201, answer.body
    return answer.json


def list_groups(client: Client, path: str, version: str) -> Any:
    (profile,) = client.at(version).get(path).json['device_profiles']
    return profile['groups']


def test_create_and_read_alternatives(client: Client) -> None:
    created = create(client)
    assert created['groups'] == GROUPS
    newer = client.at(NEWER)
    assert newer.get('/device_profiles/p').json['device_profile']['groups'] == GROUPS
    assert list_groups(client, '/device_profiles', NEWER) == GROUPS
    assert list_groups(client, '/device_profiles?name=p', NEWER) == GROUPS


@pytest.mark.parametrize('version', ['2.0', OLDER])
def test_older_client_reads_groups_of_choice(client: Client, version: str) -> None:
    uuid = create(client)['uuid']
    path = '/device_profiles?name=p'
    client.conductor.answers['choose_alternatives'] = (0, 0)
    assert list_groups(client, path, version) == [LARGE, NIC]
    client.conductor.answers['choose_alternatives'] = (1, 0)
    assert list_groups(client, path, version) == [SHARED, NIC]
    # Without a name there is no choice, so that a list is not a query for each profile.
    assert list_groups(client, '/device_profiles', version) == [LARGE, NIC]
    profile = client.at(version).get(f'/device_profiles/{uuid}').json['device_profile']
    assert profile['groups'] == [SHARED, NIC]


def test_profile_without_alternatives_is_not_chosen(client: Client) -> None:
    client.create_profile('p', LARGE)
    before = len(client.conductor.callers)
    assert list_groups(client, '/device_profiles?name=p', '2.0') == [LARGE]
    assert len(client.conductor.callers) - before == 1


def test_older_client_cannot_create_alternatives(client: Client) -> None:
    body = [{'name': 'p', 'groups': GROUPS}]
    answer = client.at(OLDER).post('/device_profiles', body)
    assert (answer.status, 'alternatives' in answer.fault) == (400, True)


def test_patch_replaces_alternatives(client: Client) -> None:
    create(client)
    newer = client.at(NEWER)
    groups = [{**SHARED, 'alternatives': [LARGE]}]
    patch = [{'op': 'replace', 'path': '/groups', 'value': groups}]
    answer = newer.patch('/device_profiles/p', patch)
    assert answer.json['device_profile']['groups'] == groups
    patch[0]['value'] = [NIC]
    answer = newer.patch('/device_profiles/p', patch)
    assert answer.json['device_profile']['groups'] == [NIC]


def test_older_client_cannot_replace_alternatives(client: Client) -> None:
    create(client)
    patch: list[dict[str, Any]] = [{'op': 'replace', 'path': '/groups', 'value': [NIC]}]
    answer = client.at(OLDER).patch('/device_profiles/p', patch)
    assert (answer.status, 'has alternatives' in answer.fault) == (409, True)
    patch = [{'op': 'replace', 'path': '/description', 'value': 'x'}]
    assert client.at(OLDER).patch('/device_profiles/p', patch).status == 200
    assert list_groups(client, '/device_profiles', NEWER) == GROUPS


def test_patch_path_alternatives_is_refused(client: Client) -> None:
    create(client)
    patch = [{'op': 'replace', 'path': '/alternatives', 'value': []}]
    assert client.at(NEWER).patch('/device_profiles/p', patch).status == 400


def test_selector_of_alternative_is_compiled(client: Client) -> None:
    changed_group = {**SHARED, 'accel:memory': '2GB'}
    body = [{'name': 'p', 'groups': [{**LARGE, 'alternatives': [changed_group]}]}]
    answer = client.at(NEWER).post('/device_profiles', body)
    assert answer.status == 201, answer.body
    (compiled,) = answer.json['groups'][0]['alternatives']
    assert any(key.startswith('trait:CUSTOM_CYBORG_SEL_') for key in compiled)
    changed_group['accel:memory'] = '2GT/s'
    answer = client.at(NEWER).post('/device_profiles', body)
    assert 'groups[0].alternatives[0]: accel:memory' in answer.fault


@pytest.mark.parametrize('value', [None, {}, 'x', [None], [[]], [{'a': 1}], [1] * 8])
def test_malformed_alternatives_are_refused(client: Client, value: Any) -> None:
    body = [{'name': 'p', 'groups': [{**LARGE, 'alternatives': value}]}]
    assert client.at(NEWER).post('/device_profiles', body).status == 400
    client.create_profile('q', NIC)
    patch = [{'op': 'replace', 'path': '/groups', 'value': body[0]['groups']}]
    assert client.at(NEWER).patch('/device_profiles/q', patch).status == 400


@pytest.mark.parametrize('place', [0, 1])
def test_set_with_alternatives_is_refused(client: Client, place: int) -> None:
    groups: list[dict[str, Any]] = [{**NIC}, {**LARGE, 'alternatives': [SHARED]}]
    groups[place]['accel:same'] = 'card'
    body = [{'name': 'p', 'groups': groups}]
    answer = client.at(NEWER).post('/device_profiles', body)
    assert (answer.status, 'both accel:same' in answer.fault) == (400, True)


def test_arq_shows_alternative(client: Client) -> None:
    create(client)
    member = client.as_(MEMBER)
    member.create_arqs('p')
    for version, present in ((NEWER, True), (OLDER, False), ('2.0', False)):
        arqs = client.as_(ADMIN, version).get('/accelerator_requests').json['arqs']
        assert [arq.get('alternative') for arq in arqs] == (
            [0, 0] if present else [None, None]
        )


def test_explanation_shows_alternatives(client: Client) -> None:
    create(client)
    path = '/device_profiles/p/explain'
    assert client.at(NEWER).post(path, {}).json['alternatives'] == [0, 0]
    assert 'alternatives' not in client.at(OLDER).post(path, {}).json
