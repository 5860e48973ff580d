# SPDX-License-Identifier: Apache-2.0
"""The daemons, as operators look after them."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from cyborg_lite.model.services import Service, ServiceState
from tests.unit.api.conversation import HOST, MANAGER, Client

AT = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)


def daemon(client: Client, host: str, state: ServiceState = ServiceState.UP) -> Service:
    made = Service(str(uuid4()), 'cyborg-lite-agent', host, '1.2', state, AT, AT)
    client.conductor.services[made.uuid] = made
    return made


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.4')


def test_a_daemon_says_where_it_is_and_how_it_is(newest: Client) -> None:
    made = daemon(newest, 'compute-1', ServiceState.DOWN)
    assert newest.get('/services').json == {
        'services': [
            {
                'uuid': made.uuid,
                'binary': 'cyborg-lite-agent',
                'host': 'compute-1',
                'state': 'down',
                'version': '1.2',
                'started_at': '2026-11-21T06:00:00+00:00',
                'heartbeat_at': '2026-11-21T06:00:00+00:00',
            }
        ]
    }


@pytest.mark.parametrize(
    ('query', 'hosts'),
    [
        ('', ['a', 'b', 'c']),
        ('state=down', ['b']),
        ('host=c', ['c']),
        ('binary=cyborg-lite-agent&state=up', ['a', 'c']),
        ('binary=x', []),
        ('sort_dir=desc&limit=2', ['c', 'b']),
    ],
)
def test_daemons_are_picked_and_sorted(
    newest: Client, query: str, hosts: list[str]
) -> None:
    for host in 'abc':
        daemon(newest, host, ServiceState.DOWN if host == 'b' else ServiceState.UP)
    found = newest.get(f'/services?{query}').json['services']
    assert [one['host'] for one in found] == hosts


def test_a_full_page_links_to_the_next(newest: Client) -> None:
    made = [daemon(newest, host) for host in 'ab']
    link = f'{HOST}/v2/services?limit=1&marker={made[0].uuid}'
    expected = [{'href': link, 'rel': 'next'}]
    assert newest.get('/services?limit=1').json['services_links'] == expected


def test_others_do_not_see_them(newest: Client) -> None:
    assert newest.as_(MANAGER).get('/services').status == 403
    assert newest.at('2.3').get('/services').status == 406
    assert newest.get('/services?colour=red').status == 400
    assert newest.get('/services/x').status == 404
