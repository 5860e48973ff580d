# SPDX-License-Identifier: Apache-2.0
"""Tests of the list of daemons."""

from datetime import UTC, datetime
from typing import Any

import pytest

from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR, ServiceState
from tests.builders.service_rows import add_service_row
from tests.support.api.conversation import HOST, MANAGER, Client

AT = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)


# Any: columns of the row.
def daemon(
    client: Client, host: str, state: ServiceState = ServiceState.UP, **columns: Any
) -> str:
    """Add a daemon; return its uuid."""
    columns |= {'started_at': AT, 'heartbeat_at': AT}
    return add_service_row(client.conductor.database, host, state, **columns)


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.4')


def test_list_services_shows_host_and_state(newest: Client) -> None:
    uuid = daemon(newest, 'compute-1', ServiceState.DOWN)
    assert newest.get('/services').json == {
        'services': [
            {
                'uuid': uuid,
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
        ('sort_key=host&sort_dir=desc&limit=2', ['c', 'b']),
    ],
)
def test_list_services_filters_and_sorts(
    newest: Client, query: str, hosts: list[str]
) -> None:
    for host in 'abc':
        daemon(newest, host, ServiceState.DOWN if host == 'b' else ServiceState.UP)
    services = newest.get(f'/services?{query}').json['services']
    assert [service['host'] for service in services] == hosts


def test_list_services_full_page_links_next(newest: Client) -> None:
    daemons = [daemon(newest, host) for host in 'ab']
    link = f'{HOST}/v2/services?limit=1&marker={daemons[0]}'
    expected = [{'href': link, 'rel': 'next'}]
    assert newest.get('/services?limit=1').json['services_links'] == expected


def test_services_have_no_agents_since_2_7(newest: Client) -> None:
    agent = daemon(newest, 'compute-1')
    conductor = daemon(newest, 'ctl-1', binary=CONDUCTOR)
    latest = newest.at('2.7')
    for query in ('', f'?binary={CONDUCTOR}', '?hostname=ctl-1&sort_key=hostname'):
        (service,) = latest.get(f'/services{query}').json['services']
        assert (service['uuid'], service['hostname']) == (conductor, 'ctl-1')
        assert 'host' not in service
    assert latest.get(f'/services?binary={AGENT}').json == {'services': []}
    assert latest.delete(f'/services/{agent}').status == 404
    for query in ('host=ctl-1', 'sort_key=host'):
        assert latest.get(f'/services?{query}').status == 400


@pytest.mark.parametrize(
    ('state', 'status'), [(ServiceState.DOWN, 204), (ServiceState.UP, 409)]
)
def test_delete_service_is_refused_while_up(
    newest: Client, state: ServiceState, status: int
) -> None:
    service = daemon(newest, 'ctl-1', state, binary=CONDUCTOR)
    latest = newest.at('2.7')
    assert latest.as_(MANAGER).delete(f'/services/{service}').status == 403
    assert latest.delete(f'/services/{service}').status == status
    assert len(newest.get('/services').json['services']) == (status == 409)


@pytest.mark.parametrize('uuid', ['adeb91d5-34ae-48a7-b31a-4de8a7d7dbb2', 'x'])
def test_delete_service_unknown_returns_404(newest: Client, uuid: str) -> None:
    assert newest.at('2.7').delete(f'/services/{uuid}').status == 404
