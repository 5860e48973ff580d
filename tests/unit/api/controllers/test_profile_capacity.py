# SPDX-License-Identifier: Apache-2.0
"""Tests of the number of further servers with a device profile."""

import pytest

from cyborg_lite.model.capacity.explanations import ProviderCapacity
from tests.support.api.conversation import Client

PATH = '/device_profiles/dp1/capacity'


def card(host: str, free: int) -> ProviderCapacity:
    return ProviderCapacity(
        rp_uuid=host,
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
    """Return a client of a service with two hosts."""
    client.conductor.stock_up([card('compute-1', 5), card('compute-2', 2)])
    client.create_profile('dp1', {'resources:PGPU': '2', 'trait:CUSTOM_T4': 'required'})
    return client.at('2.7')


def test_capacity_counts_servers_of_hosts_and_in_all(newest: Client) -> None:
    answer = newest.get(PATH)
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


def test_capacity_of_one_host(newest: Client) -> None:
    capacity = newest.get(f'{PATH}?hostname=compute-2').json
    assert [host['hostname'] for host in capacity['hosts']] == ['compute-2']
    assert capacity['servers'] == 1
    empty = newest.get(f'{PATH}?hostname=nobody').json
    assert (empty['servers'], empty['hosts'], empty['shortage']) == (0, [], None)


def test_capacity_by_uuid(newest: Client) -> None:
    uuid = newest.get('/device_profiles/dp1').json['device_profile']['uuid']
    capacity = newest.get(f'/device_profiles/{uuid}/capacity').json
    assert capacity['device_profile_uuid'] == uuid


@pytest.mark.parametrize(
    ('version', 'path', 'status'),
    [
        ('2.7', '/device_profiles/nobody/capacity', 404),
        ('2.7', f'{PATH}?host=x', 400),
    ],
)
def test_capacity_invalid_request_is_refused(
    newest: Client, version: str, path: str, status: int
) -> None:
    assert newest.at(version).get(path).status == status
