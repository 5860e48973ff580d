# SPDX-License-Identifier: Apache-2.0
"""Tests of sets of groups in device profiles at microversion 2.6."""

from typing import Any

import pytest

from cyborg_lite.model.profiles.selector_grammar import parse_selector
from tests.builders.patches import build_replace_patch
from tests.support.api.conversation import NOVA, Client

MEMBER = {'resources:PGPU': '1', 'accel:same': 'card'}
TRAIT = f'trait:{parse_selector("device.same_card == true").trait}'
MERGED = {'resources:PGPU': '2', 'accel:same': 'card', TRAIT: 'required'}


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.6')


def create(client: Client, *groups: dict[str, Any]) -> Any:
    return client.post('/device_profiles', [{'name': 'dp1', 'groups': [*groups]}])


def show_groups(client: Client) -> list[dict[str, str]]:
    profile = client.get('/device_profiles?name=dp1').json['device_profiles'][0]
    return list(profile['groups'])


def test_set_is_one_group_with_all_arqs(newest: Client) -> None:
    assert create(newest, MEMBER, {'resources:PGPU': '3'}, MEMBER).status == 201
    nova = newest.as_(NOVA).at('2.0')
    assert show_groups(nova) == [MERGED, {'resources:PGPU': '3'}]
    arqs = nova.post('/accelerator_requests', {'device_profile_name': 'dp1'}).json
    assert [arq['device_profile_group_id'] for arq in arqs['arqs']] == [0, 0, 1, 1, 1]


def test_set_of_several_classes_is_refused_with_reason(newest: Client) -> None:
    answer = create(newest, MEMBER, {'resources:VGPU': '1', 'accel:same': 'card'})
    assert answer.status == 400
    assert 'groups[1]: the groups of accel:same must have one' in answer.fault


def test_patch_accepts_groups_of_response(newest: Client) -> None:
    create(newest, MEMBER, MEMBER)
    for client in (newest, newest.at('2.4')):
        patch = build_replace_patch(groups=show_groups(client))
        assert client.patch('/device_profiles/dp1', patch).status == 200
        assert show_groups(client) == [MERGED]


def test_earlier_microversions_do_not_know_sets(client: Client) -> None:
    group = {**MEMBER, 'accel:same': 'rack'}
    for number, version in enumerate(('2.0', '2.5')):
        body = [{'name': f'dp{number}', 'groups': [group]}]
        assert client.at(version).post('/device_profiles', body).status == 201
    assert create(client.at('2.6'), group).status == 400
