# SPDX-License-Identifier: Apache-2.0
"""Selectors, quantities and sets of device profiles, since microversion 2.6."""

from typing import Any

import pytest

from cyborg_lite.model.profiles.selector_grammar import parse_selector
from tests.builders.patches import build_replace_patch
from tests.support.api.conversation import NOVA, Client

SELECTOR = "device.memory_mib >= 40000 and device.architecture in ['hopper', 'ada']"
GROUP = {'resources:PGPU': '1', 'accel:selector': SELECTOR}
TRAIT = f'trait:{parse_selector(SELECTOR).trait}'
SAME_CARD = {'resources:PGPU': '1', 'accel:same': 'card'}
SET_TRAIT = f'trait:{parse_selector("device.same_card == true").trait}'
MERGED = {'resources:PGPU': '2', 'accel:same': 'card', SET_TRAIT: 'required'}


def create(client: Client, *groups: dict[str, Any]) -> Any:
    return client.post('/device_profiles', [{'name': 'dp1', 'groups': [*groups]}])


def show_groups(client: Client) -> list[dict[str, str]]:
    (profile,) = client.get('/device_profiles?name=dp1').json['device_profiles']
    return list(profile['groups'])


def show_group(client: Client) -> dict[str, str]:
    (group,) = show_groups(client)
    return group


def test_selector_shows_trait_at_every_microversion(newest: Client) -> None:
    assert create(newest, GROUP).status == 201
    # Nova reads profiles by name in the default microversion.
    for client in (newest, newest.at('2.2'), newest.as_(NOVA, '2.0')):
        assert show_group(client) == {**GROUP, TRAIT: 'required'}


@pytest.mark.parametrize('groups', [[GROUP], [SAME_CARD, SAME_CARD]])
def test_patch_accepts_groups_of_response(
    newest: Client, groups: list[dict[str, Any]]
) -> None:
    create(newest, *groups)
    expected = show_groups(newest)
    for client in (newest, newest.at('2.4')):
        patch = build_replace_patch(groups=expected)
        assert client.patch('/device_profiles/dp1', patch).status == 200
        assert show_groups(client) == expected


def test_patch_selector_replaces_trait(newest: Client) -> None:
    create(newest, GROUP)
    group = {**show_group(newest), 'accel:selector': 'device.numa_node == 0'}
    newest.patch('/device_profiles/dp1', build_replace_patch(groups=[group]))
    assert TRAIT not in show_group(newest)
    assert len(show_group(newest)) == 3


def test_quantity_is_compiled(newest: Client) -> None:
    answer = create(newest, {'resources:PGPU': '1', 'accel:video_ram': '2 GB'})
    assert answer.status == 201
    group = show_group(newest)
    assert group['accel:video_ram'] == '2GB'
    trait = parse_selector('device.memory_mib >= 2GB').trait
    assert group[f'trait:{trait}'] == 'required'


@pytest.mark.parametrize('version', ['2.0', '2.5'])
def test_earlier_microversion_stores_any_value(client: Client, version: str) -> None:
    group = {'resources:PGPU': '1', 'accel:selector': 'fast', 'accel:video_ram': 'x'}
    older = client.at(version)
    assert create(older, group).status == 201
    assert show_group(client.at('2.6')) == group


@pytest.mark.parametrize(
    ('group', 'fault'),
    [
        ({'accel:selector': 'device.memry > 1'}, 'Character 1'),
        ({'accel:selector': 'device.memory_mib > '}, 'Character 21, at the end'),
        ({'accel:selector': 'x' * 1025}, 'at most 1024 characters'),
        ({'accel:video_ram': '2GHz'}, 'one of the units B, kB, MB'),
        ({TRAIT: 'required'}, 'is computed from a selector'),
    ],
)
def test_invalid_selector_is_refused(
    newest: Client, group: dict[str, str], fault: str
) -> None:
    answer = create(newest, {'resources:PGPU': '1', **group})
    assert answer.status == 400
    assert fault in answer.fault


def test_profile_without_selector_is_unchanged(newest: Client) -> None:
    group = {'resources:PGPU': '1', 'accel:attach_target': 'host'}
    create(newest, group)
    assert show_group(newest) == group


def test_set_is_one_group_with_all_arqs(newest: Client) -> None:
    assert create(newest, SAME_CARD, {'resources:PGPU': '3'}, SAME_CARD).status == 201
    nova = newest.as_(NOVA).at('2.0')
    assert show_groups(nova) == [MERGED, {'resources:PGPU': '3'}]
    arqs = nova.post('/accelerator_requests', {'device_profile_name': 'dp1'}).json
    assert [arq['device_profile_group_id'] for arq in arqs['arqs']] == [0, 0, 1, 1, 1]


def test_set_of_several_classes_is_refused_with_reason(newest: Client) -> None:
    answer = create(newest, SAME_CARD, {'resources:VGPU': '1', 'accel:same': 'card'})
    assert answer.status == 400
    assert 'groups[1]: the groups of accel:same must have one' in answer.fault


def test_earlier_microversions_do_not_know_sets(client: Client) -> None:
    group = {**SAME_CARD, 'accel:same': 'rack'}
    for number, version in enumerate(('2.0', '2.5')):
        body = [{'name': f'dp{number}', 'groups': [group]}]
        assert client.at(version).post('/device_profiles', body).status == 201
    assert create(client.at('2.6'), group).status == 400
