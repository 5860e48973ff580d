# SPDX-License-Identifier: Apache-2.0
"""Asking where a device profile fits, and profiles that are refused at once."""

from typing import Any

import pytest

from cyborg_lite.api.app import assemble
from cyborg_lite.model.explanations import Supply, Why
from tests.fakes.conductor import FakeConductor
from tests.unit.api.conversation import ADMIN, MANAGER, Client, configuration

PATH = '/device_profiles/dp1/explain'
TWO = {'resources:PGPU': '2'}


def card(host: str, **fields: Any) -> Supply:
    name = f'{host}_0000:3b:00.0'
    return Supply(
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


@pytest.fixture
def newest(client: Client) -> Client:
    """An administrator of two hosts; one is in maintenance."""
    closed = {'closed': Why.MAINTENANCE, 'closed_text': 'In maintenance: a fan.'}
    client.conductor.stock = [card('compute-1'), card('compute-2', **closed)]
    client.profile('dp1', {'resources:PGPU': '1', 'trait:CUSTOM_T4': 'required'})
    return client.at('2.4')


def test_each_host_is_told_of(newest: Client) -> None:
    answer = newest.post(PATH)
    assert answer.status == 200
    told = answer.json
    assert told['device_profile_name'] == 'dp1'
    assert told['verdict'] == 'fits'
    assert told['warnings'] == []
    fitting, closed = told['hosts']
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
def test_one_host_can_be_asked_for(newest: Client, body: Any) -> None:
    told = newest.post(f'{PATH}?hostname=compute-2', body).json
    assert [host['hostname'] for host in told['hosts']] == ['compute-2']
    assert told['verdict'] == 'not-now'
    assert newest.post(f'{PATH}?hostname=nobody').json['hosts'] == []


def test_a_profile_is_named_by_its_uuid_too(newest: Client) -> None:
    uuid = newest.get('/device_profiles/dp1').json['device_profile']['uuid']
    told = newest.post(f'/device_profiles/{uuid}/explain').json
    assert told['device_profile_uuid'] == uuid


def test_what_can_never_be_is_warned_of(newest: Client) -> None:
    newest.profile('two', TWO)
    told = newest.post('/device_profiles/two/explain').json
    assert told['verdict'] == 'never'
    assert [one['code'] for one in told['warnings']] == ['too-few-units']
    assert told['warnings'][0]['group'] == 0


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
def test_what_cannot_be_explained(
    newest: Client, version: str, path: str, body: Any, status: int
) -> None:
    assert newest.at(version).post(path, body).status == status


def test_others_than_admins_are_not_told_of_hosts(newest: Client) -> None:
    answer = newest.as_(MANAGER).post(PATH)
    assert answer.status == 403
    assert 'cyborg:device_profile:explain' in answer.fault


# --- refused at once ---------------------------------------------------------------


@pytest.fixture
def strict() -> Client:
    conductor = FakeConductor()
    conductor.stock = [card('compute-1')]
    conf = configuration(refuse_impossible_profiles=True)
    return Client(conductor, assemble(conf, conductor), dict(ADMIN), '2.4')


def test_impossible_profiles_are_refused_where_that_is_configured(
    strict: Client,
) -> None:
    body = [
        {'name': 'one', 'groups': [{'resources:PGPU': '1'}]},
        {'name': 'two', 'groups': [TWO]},
    ]
    for version in ('2.0', '2.4'):
        answer = strict.at(version).post('/device_profiles', body[1:])
        assert answer.status == 409
        assert 'two can never fit' in answer.fault
        assert 'the largest that fits has 1' in answer.fault
    assert strict.post('/device_profiles', body).status == 409
    assert strict.conductor.profiles == {}


def test_a_profile_is_not_made_impossible_either(strict: Client) -> None:
    strict.profile('dp1', {'resources:PGPU': '1'})
    patch = [{'op': 'replace', 'path': '/groups', 'value': [TWO]}]
    assert strict.patch('/device_profiles/dp1', patch).status == 409
    renamed = [{'op': 'replace', 'path': '/description', 'value': 'x'}]
    assert strict.patch('/device_profiles/dp1', renamed).status == 200


def test_impossible_profiles_are_kept_by_default(newest: Client) -> None:
    assert newest.profile('two', TWO)['name'] == 'two'
