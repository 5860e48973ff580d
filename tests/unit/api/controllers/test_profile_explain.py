# SPDX-License-Identifier: Apache-2.0
"""Tests of the explanation of device profiles, and of impossible profiles."""

from datetime import UTC, datetime
from typing import Any

import pytest

from cyborg_lite.api.app import assemble
from cyborg_lite.errors.profiles import ImpossibleDeviceProfile
from cyborg_lite.model.capacity.explanations import ProviderCapacity, ReasonCode
from cyborg_lite.model.devices.cleaning import CleanState, UncleanUnit
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import ADMIN, Client, build_configuration

PATH = '/device_profiles/dp1/explain'
TWO = {'resources:PGPU': '2'}


def card(host: str, **fields: Any) -> ProviderCapacity:
    name = f'{host}_0000:3b:00.0'
    return ProviderCapacity(
        **{
            'rp_uuid': name,
            'name': name,
            'hostname': host,
            'resource_class': 'PGPU',
            'traits': frozenset({'CUSTOM_T4'}),
            'total': 1,
            'free': 1,
            'free_handles': 1,
            **fields,
        }
    )


def stock_up(client: Client, *stock: ProviderCapacity) -> None:
    """Have the conductor explain profiles with these providers."""
    client.conductor.stock_up(stock)


@pytest.fixture
def newest(client: Client) -> Client:
    """Return a client of a service with two hosts, one of them in maintenance."""
    closed = {'closed': ReasonCode.MAINTENANCE, 'closed_text': 'In maintenance: a fan.'}
    stock_up(client, card('compute-1'), card('compute-2', **closed))
    client.create_profile('dp1', {'resources:PGPU': '1', 'trait:CUSTOM_T4': 'required'})
    return client.at('2.4')


def test_explain_lists_all_hosts(newest: Client) -> None:
    answer = newest.post(PATH)
    assert answer.status == 200
    explanation = answer.json
    assert explanation['device_profile_name'] == 'dp1'
    assert explanation['verdict'] == 'fits'
    assert explanation['warnings'] == []
    fitting, closed = explanation['hosts']
    assert fitting == {
        'hostname': 'compute-1',
        'fits': True,
        'groups': [{'group': 0, 'fits': True, 'reasons': []}],
        'reasons': [],
    }
    assert closed['fits'] is False
    assert closed['groups'][0]['reasons'] == [
        {
            'code': 'maintenance',
            'text': 'In maintenance: a fan.',
            'group': 0,
            'resource_class': 'PGPU',
            'traits': [],
            'providers': ['compute-2_0000:3b:00.0'],
        }
    ]


@pytest.mark.parametrize('body', [None, {}])
def test_explain_one_host(newest: Client, body: Any) -> None:
    explanation = newest.post(f'{PATH}?hostname=compute-2', body).json
    assert [host['hostname'] for host in explanation['hosts']] == ['compute-2']
    assert explanation['verdict'] == 'not-now'
    assert newest.post(f'{PATH}?hostname=nobody').json['hosts'] == []


def test_explain_names_unit_that_is_cleaned(client: Client) -> None:
    unit = UncleanUnit(
        'compute-1',
        'd',
        '0000:c2:00.0',
        CleanState.DIRTY,
        '1/2 sanitize',
        '',
        datetime.now(UTC),
    )
    stock_up(client, card('compute-1', free=0, free_handles=0, unclean=(unit,)))
    client.create_profile('dp1', {'resources:PGPU': '1'})
    explanation = client.at('2.4').post(PATH).json
    assert explanation['verdict'] == 'not-now'
    ((reason,),) = [group['reasons'] for group in explanation['hosts'][0]['groups']]
    assert reason['code'] == 'no-free-unit'
    assert '0000:c2:00.0 is being cleaned, at step 1/2 sanitize' in reason['text']


def test_explain_by_uuid(newest: Client) -> None:
    uuid = newest.get('/device_profiles/dp1').json['device_profile']['uuid']
    explanation = newest.post(f'/device_profiles/{uuid}/explain').json
    assert explanation['device_profile_uuid'] == uuid


def test_explain_warns_of_impossible_groups(newest: Client) -> None:
    newest.create_profile('two', TWO)
    explanation = newest.post('/device_profiles/two/explain').json
    assert explanation['verdict'] == 'never'
    assert [warning['code'] for warning in explanation['warnings']] == ['too-few-units']
    assert explanation['warnings'][0]['group'] == 0


@pytest.mark.parametrize(
    ('version', 'path', 'body', 'status'),
    [
        ('2.3', PATH, None, 406),
        ('2.4', '/device_profiles/nobody/explain', None, 404),
        ('2.4', f'{PATH}/x', None, 404),
        ('2.4', f'{PATH}?host=x', None, 400),
        ('2.4', PATH, [], 400),
    ],
)
def test_explain_invalid_request_is_refused(
    newest: Client, version: str, path: str, body: Any, status: int
) -> None:
    assert newest.at(version).post(path, body).status == status


@pytest.fixture
def strict() -> Client:
    """Return a client of a service that has a profile, and refuses all others."""
    conductor = LocalConductor()
    Client(conductor).create_profile('dp1', {'resources:PGPU': '1'})
    conductor.calls.clear()
    refusal = ImpossibleDeviceProfile(name='two', reason='the largest has 1.')
    conductor.answers |= dict.fromkeys(CHANGES, refusal)
    conf = build_configuration(refuse_impossible_profiles=True)
    return Client(conductor, assemble(conf, conductor.client), dict(ADMIN), '2.4')


CHANGES = ('create_device_profiles', 'change_device_profile')


def test_impossible_profile_is_refused_if_configured(strict: Client) -> None:
    body = [{'name': 'two', 'groups': [TWO]}]
    patch = [{'op': 'replace', 'path': '/groups', 'value': [TWO]}]
    for answer in (
        strict.at('2.0').post('/device_profiles', body),
        strict.at('2.4').post('/device_profiles', body),
        strict.patch('/device_profiles/dp1', patch),
    ):
        assert (answer.status, 'two can never fit' in answer.fault) == (409, True)
    for method in CHANGES:
        assert set(strict.conductor.list_arguments(method, 'possible')) == {True}


def test_create_profile_impossible_is_accepted_by_default(newest: Client) -> None:
    assert newest.create_profile('two', TWO)['name'] == 'two'
    arguments = newest.conductor.list_arguments('create_device_profiles', 'possible')
    assert set(arguments) == {False}


def test_explain_warns_of_many_candidates(newest: Client) -> None:
    stock_up(
        newest, *[card('compute-1', rp_uuid=f'gpu{number}') for number in range(8)]
    )
    newest.create_profile('eight', *[{'resources:PGPU': '1'}] * 8)
    path = '/device_profiles/eight/explain'
    assert newest.at('2.5').post(path).json['warnings'] == []
    (warning,) = newest.at('2.6').post(path).json['warnings']
    assert (warning['code'], warning['group']) == ('many-candidates', None)
    assert 'up to 16777216 allocation candidates' in warning['text']
    assert 'at most 1000' in warning['text']
    newest.create_profile('four', *[{'resources:PGPU': '1'}] * 4)
    small = newest.at('2.6').post('/device_profiles/four/explain').json
    assert [warning['code'] for warning in small['warnings']] == ['many-candidates']
    assert 'up to 4096 allocation candidates' in small['warnings'][0]['text']
    newest.create_profile('three', *[{'resources:PGPU': '1'}] * 3)
    path = '/device_profiles/three/explain'
    assert newest.at('2.6').post(path).json['warnings'] == []


def test_explain_warns_of_mdevs_that_nova_drops(newest: Client) -> None:
    closed = {
        'closed_for_guest': ReasonCode.MDEV_NOT_ATTACHED,
        'closed_for_guest_text': 'Upgrade Nova.',
    }
    stock_up(newest, card('compute-1'), card('compute-2', **closed))
    explanation = newest.at('2.6').post(PATH).json
    assert explanation['verdict'] == 'fits'
    (warning,) = explanation['warnings']
    assert (warning['code'], warning['group']) == ('mdev-not-attached', 0)
    assert warning['text'].startswith('Nova drops the mdevs of 1 of 2 providers')
    assert warning['providers'] == ['compute-2_0000:3b:00.0']
    assert newest.at('2.5').post(PATH).json['warnings'] == []
