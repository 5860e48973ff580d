# SPDX-License-Identifier: Apache-2.0
"""Tests of selectors and quantities of device profiles at microversion 2.6."""

from typing import Any

import pytest

from cyborg_lite.model.profiles.selector_grammar import parse_selector
from tests.builders.patches import build_replace_patch
from tests.support.api.conversation import NOVA, Client

SELECTOR = "device.memory_mib >= 40000 and device.architecture in ['hopper', 'ada']"
GROUP = {'resources:PGPU': '1', 'accel:selector': SELECTOR}
TRAIT = f'trait:{parse_selector(SELECTOR).trait}'


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.6')


def create(client: Client, group: dict[str, Any]) -> Any:
    return client.post('/device_profiles', [{'name': 'dp1', 'groups': [group]}])


def show_group(client: Client) -> dict[str, str]:
    profile = client.get('/device_profiles/dp1').json['device_profile']
    (group,) = profile['groups']
    return dict(group)


def test_selector_shows_trait_at_every_microversion(newest: Client) -> None:
    assert create(newest, GROUP).status == 201
    expected = {**GROUP, TRAIT: 'required'}
    assert show_group(newest) == expected
    assert show_group(newest.at('2.2')) == expected
    # Nova reads profiles by name in the default microversion.
    nova = newest.as_(NOVA).at('2.0').get('/device_profiles?name=dp1')
    (profile,) = nova.json['device_profiles']
    assert profile['groups'] == [expected]


def test_patch_accepts_groups_of_response(newest: Client) -> None:
    create(newest, GROUP)
    for client in (newest, newest.at('2.4')):
        patch = build_replace_patch(groups=[show_group(client)])
        assert client.patch('/device_profiles/dp1', patch).status == 200
        assert show_group(client) == {**GROUP, TRAIT: 'required'}


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
