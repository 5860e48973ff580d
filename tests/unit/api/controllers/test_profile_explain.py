# SPDX-License-Identifier: Apache-2.0
"""Explanations and capacities of device profiles, and impossible profiles."""

from datetime import UTC, datetime
from typing import Any

import pytest

from cyborg_lite.errors.profiles import ImpossibleDeviceProfile
from cyborg_lite.model.capacity.explanations import ReasonCode
from cyborg_lite.model.devices.cleaning import CleanState, UncleanUnit
from tests.builders.stock import build_provider
from tests.support.api.conversation import Client

PATH = '/device_profiles/dp1/explain'
CAPACITY = '/device_profiles/dp1/capacity'
TWO = {'resources:PGPU': '2'}


@pytest.fixture
def newest(client: Client) -> Client:
    """Return a client of a service with two hosts, one of them in maintenance."""
    closed: dict[str, Any] = {
        'closed': ReasonCode.MAINTENANCE,
        'closed_text': 'In maintenance: a fan.',
    }
    client.conductor.stock_up(
        [build_provider('compute-1'), build_provider('compute-2', **closed)]
    )
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
    assert (fitting['hostname'], fitting['fits']) == ('compute-1', True)
    assert fitting['groups'] == [{'group': 0, 'fits': True, 'reasons': []}]
    assert closed['fits'] is False
    (reason,) = closed['groups'][0]['reasons']
    assert (reason['code'], reason['group']) == ('maintenance', 0)
    assert reason['text'] == 'In maintenance: a fan.'
    assert reason['providers'] == ['compute-2_0000:3b:00.0']


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
    client.conductor.stock_up(
        [build_provider('compute-1', free=0, free_handles=0, unclean=(unit,))]
    )
    client.create_profile('dp1', {'resources:PGPU': '1'})
    explanation = client.at('2.4').post(PATH).json
    assert explanation['verdict'] == 'not-now'
    ((reason,),) = [group['reasons'] for group in explanation['hosts'][0]['groups']]
    assert reason['code'] == 'no-free-unit'
    assert '0000:c2:00.0 is being cleaned, at step 1/2 sanitize' in reason['text']


def test_explain_warns_of_impossible_groups(newest: Client) -> None:
    newest.create_profile('two', TWO)
    explanation = newest.post('/device_profiles/two/explain').json
    assert explanation['verdict'] == 'never'
    assert [warning['code'] for warning in explanation['warnings']] == ['too-few-units']
    assert explanation['warnings'][0]['group'] == 0


def test_explain_invalid_request_is_refused(newest: Client) -> None:
    assert newest.post(PATH, []).status == 400


@pytest.fixture
def strict(client: Client) -> Client:
    """Return a client of a service that has a profile, and refuses all others."""
    client.create_profile('dp1', {'resources:PGPU': '1'})
    client.conductor.calls.clear()
    refusal = ImpossibleDeviceProfile(name='two', reason='the largest has 1.')
    client.conductor.answers |= dict.fromkeys(CHANGES, refusal)
    return client.configure(refuse_impossible_profiles=True).at('2.4')


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
    newest.conductor.stock_up(
        [build_provider('compute-1', rp_uuid=f'gpu{number}') for number in range(8)]
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
    closed: dict[str, Any] = {
        'closed_for_guest': ReasonCode.MDEV_NOT_ATTACHED,
        'closed_for_guest_text': 'Upgrade Nova.',
    }
    newest.conductor.stock_up(
        [build_provider('compute-1'), build_provider('compute-2', **closed)]
    )
    explanation = newest.at('2.6').post(PATH).json
    assert explanation['verdict'] == 'fits'
    (warning,) = explanation['warnings']
    assert (warning['code'], warning['group']) == ('mdev-not-attached', 0)
    assert warning['text'].startswith('Nova drops the mdevs of 1 of 2 providers')
    assert warning['providers'] == ['compute-2_0000:3b:00.0']
    assert newest.at('2.5').post(PATH).json['warnings'] == []


@pytest.fixture
def stock(client: Client) -> Client:
    """Return a client of a service with two hosts."""
    client.conductor.stock_up(
        [build_provider('compute-1', 5), build_provider('compute-2', 2)]
    )
    client.create_profile('dp1', {'resources:PGPU': '2', 'trait:CUSTOM_T4': 'required'})
    return client.at('2.7')


def test_capacity_counts_servers_of_hosts_and_in_all(stock: Client) -> None:
    answer = stock.get(CAPACITY)
    assert answer.status == 200
    capacity = answer.json
    assert capacity['device_profile_name'] == 'dp1'
    assert (capacity['servers'], capacity['is_exact']) == (3, True)
    assert (capacity['warnings'], capacity['alternatives']) == ([], [])
    assert capacity['shortage'] == {
        'groups': [0],
        'resource_classes': ['PGPU'],
        'traits': ['CUSTOM_T4'],
        'hosts': 2,
        'text': 'Group 0 runs out first on 2 hosts.',
    }
    first, second = capacity['hosts']
    assert (first['hostname'], first['servers']) == ('compute-1', 2)
    assert first['shortage']['text'].startswith('1 of 5 free units are left')
    assert (second['hostname'], second['servers']) == ('compute-2', 1)


def test_capacity_of_one_host(stock: Client) -> None:
    capacity = stock.get(f'{CAPACITY}?hostname=compute-2').json
    assert [host['hostname'] for host in capacity['hosts']] == ['compute-2']
    assert capacity['servers'] == 1
    empty = stock.get(f'{CAPACITY}?hostname=nobody').json
    assert (empty['servers'], empty['hosts'], empty['shortage']) == (0, [], None)
