# SPDX-License-Identifier: Apache-2.0
"""Tests of the effect of changes of hardware on device profiles."""

from typing import Any
from uuid import uuid4

import pytest

from cyborg_lite.model.explanations import ProviderCapacity
from tests.support.api.conversation import MANAGER, Client

PATH = '/device_profiles/explain'
DEVICE = '11111111-2222-3333-4444-555555555555'
GROUP = {'resources:PGPU': '2', 'trait:CUSTOM_T4': 'required'}


def card(rp_uuid: str, host: str, free: int) -> ProviderCapacity:
    return ProviderCapacity(
        rp_uuid=rp_uuid,
        name=host,
        hostname=host,
        resource_class='PGPU',
        traits=frozenset({'CUSTOM_T4'}),
        total=8,
        free=free,
        free_handles=free,
    )


@pytest.fixture
def newest(client: Client) -> Client:
    """Return a client of a service with two hosts and a profile."""
    client.conductor.stock = [
        card(DEVICE, 'compute-1', 5),
        card(str(uuid4()), 'compute-2', 2),
    ]
    client.create_profile('dp1', GROUP)
    return client.at('2.26')


def test_removal_shows_capacity_before_and_after(newest: Client) -> None:
    answer = newest.post(PATH, {'changes': [{'device': DEVICE, 'remove': True}]})
    assert answer.status == 200
    (change,) = answer.json['changes']
    assert (change['hostname'], change['device']) == ('compute-1', DEVICE)
    (forecast,) = answer.json['device_profiles']
    assert forecast['device_profile_name'] == 'dp1'
    assert (forecast['result'], forecast['reasons']) == ('loses', [])
    before, after = forecast['before'], forecast['after']
    assert (before['servers'], after['servers']) == (3, 1)
    assert [(host['hostname'], host['servers']) for host in after['hosts']] == [
        ('compute-1', 0)
    ]
    assert newest.get('/device_profiles/dp1/capacity').json['servers'] == 3


def test_new_devices_and_new_profile(newest: Client) -> None:
    change = {
        'hostname': 'compute-2',
        'resources': {'pgpu': 4},
        'traits': ['CUSTOM_T4'],
        'count': 2,
    }
    body = {'changes': [change], 'groups': [{'resources:PGPU': '3'}], 'profiles': []}
    answer = newest.post(PATH, body)
    (effect,) = answer.json['changes']
    assert [item['total'] for item in effect['appears']] == [4, 4]
    (forecast,) = answer.json['device_profiles']
    assert forecast['device_profile_uuid'] is None
    assert forecast['result'] == 'gains'
    assert (forecast['before']['servers'], forecast['after']['servers']) == (1, 3)


def test_profiles_are_named_by_name_or_uuid(newest: Client) -> None:
    uuid = newest.get('/device_profiles/dp1').json['device_profile']['uuid']
    newest.create_profile('dp2', GROUP)
    body = {'changes': [], 'profiles': ['dp1', uuid]}
    profiles = newest.post(PATH, body).json['device_profiles']
    assert [item['device_profile_uuid'] for item in profiles] == [uuid]
    assert profiles[0]['result'] == 'unchanged'
    forecasts = newest.post(PATH, {'changes': []}).json['device_profiles']
    assert {item['device_profile_name'] for item in forecasts} == {'dp1', 'dp2'}


def test_attributes_are_in_unit_of_declaration(newest: Client) -> None:
    group = {'resources:PGPU': '1', 'accel:selector': 'device.memory_mib >= 1GiB'}
    change: dict[str, Any] = {'hostname': 'compute-1', 'resources': {'PGPU': 1}}
    body = {'changes': [change], 'profiles': [], 'groups': [group]}
    (unstated,) = newest.post(PATH, body).json['device_profiles']
    assert (unstated['result'], unstated['after']) == ('unknown', None)
    assert 'device.memory_mib' in unstated['reasons'][0]
    change['attributes'] = {'memory_mib': 2048}
    (stated,) = newest.post(PATH, body).json['device_profiles']
    assert stated['result'] == 'gains'


NEW: Any = {'hostname': 'h', 'resources': {'PGPU': 1}}


@pytest.mark.parametrize(
    ('change', 'text'),
    [
        ({}, 'lacks hostname'),
        ({'hostname': 'h'}, 'lacks resources'),
        ({'device': DEVICE}, 'either mode or remove'),
        ({'device': DEVICE, 'mode': 'a', 'remove': True}, 'either mode or remove'),
        (
            {'device': DEVICE, 'hostname': 'h'},
            'hostname is not allowed together with device',
        ),
        ({**NEW, 'mode': 'a'}, 'mode is allowed only together with device'),
        ({'device': 'x', 'remove': True}, 'must be a UUID'),
        ({'device': DEVICE, 'remove': False}, 'remove must be'),
        ({**NEW, 'hostname': '\0'}, 'is not valid text'),
        ({**NEW, 'resources': {'a b': 1}}, 'is no resource class'),
        ({**NEW, 'resources': {'PGPU': 0}}, 'violates'),
        ({**NEW, 'resources': {}}, 'at least 1 keys'),
        ({**NEW, 'traits': ['a']}, 'must match'),
        ({**NEW, 'count': 101}, 'violates'),
        ({**NEW, 'attributes': {'colour': 'red'}}, 'is no attribute'),
        ({**NEW, 'attributes': {'memory_mib': '2GB'}}, 'must be of type integer'),
        ({**NEW, 'attributes': {'memory_mib': True}}, 'must be of type integer'),
        ({**NEW, 'colour': 'red'}, 'violates'),
    ],
)
def test_invalid_change_is_refused(newest: Client, change: Any, text: str) -> None:
    answer = newest.post(PATH, {'changes': [change]})
    assert answer.status == 400
    assert text in answer.fault


def test_too_many_devices_are_refused(newest: Client) -> None:
    change = {**NEW, 'count': 100}
    answer = newest.post(PATH, {'changes': [change] * 11})
    assert answer.status == 400
    assert 'at most 1000' in answer.fault


def test_device_of_two_changes_is_refused(newest: Client) -> None:
    changes = [{'device': DEVICE, 'remove': True}, {'device': DEVICE, 'mode': 'a'}]
    answer = newest.post(PATH, {'changes': changes})
    assert (answer.status, 'more than once' in answer.fault) == (400, True)


def test_unknown_objects_return_404(newest: Client) -> None:
    change = {'device': str(uuid4()), 'remove': True}
    assert newest.post(PATH, {'changes': [change]}).status == 404
    body = {'changes': [], 'profiles': ['nobody']}
    assert newest.post(PATH, body).status == 404


def test_invalid_group_is_refused(newest: Client) -> None:
    body = {'changes': [], 'groups': [{'resources:PGPU': '1', 'trait:X': 'maybe'}]}
    assert newest.post(PATH, body).status == 400


def test_forecast_requires_admin(newest: Client) -> None:
    answer = newest.as_(MANAGER).post(PATH, {'changes': []})
    assert answer.status == 403
    assert 'cyborg:device_profile:forecast' in answer.fault


# --- a profile with this name ---


def test_profile_named_explain_is_served(newest: Client) -> None:
    created = newest.create_profile('explain', GROUP)
    path = '/device_profiles/explain'
    assert (
        newest.get(path).json['device_profile']
        == newest.get(f'/device_profiles/{created["uuid"]}').json['device_profile']
    )
    assert newest.at('2.2').get(path).status == 200
    assert newest.post(f'{path}/explain').status == 200
    assert newest.get(f'{path}/capacity').json['servers'] == 3
    assert newest.get(f'{path}/access').status == 200
    patch = [{'op': 'replace', 'path': '/description', 'value': 'text'}]
    assert newest.patch(path, patch).json['device_profile']['description'] == 'text'
    assert newest.delete(path).status == 204
    assert newest.get(path).status == 404


def test_post_before_microversion_returns_405(newest: Client) -> None:
    answer = newest.at('2.25').post(PATH, {'changes': []})
    assert answer.status == 405
    assert (
        newest.at('2.0').get(PATH).status
        == newest.at('2.0').get('/device_profiles/dp9').status
    )
