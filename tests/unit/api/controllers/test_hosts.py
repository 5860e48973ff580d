# SPDX-License-Identifier: Apache-2.0
"""Tests of hosts, their topologies and the other daemons."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR, ServiceState
from cyborg_lite.model.hosts.topology import (
    Availability,
    HostTopology,
    NumaNode,
    TopologyDeployable,
    TopologyUnit,
)
from tests.builders.device_rows import add_device
from tests.builders.host_topologies import HOST, HOSTILE, PROJECT, build_topology
from tests.builders.service_rows import add_service_row
from tests.support.api.conversation import MANAGER, Client, build_policy_client

PATH = f'/hosts/{HOST}/topology'
AT = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
INSTANCE = '5c9a477a-d3d4-426a-9e9c-b2660917780e'


@pytest.fixture
def newest(client: Client) -> Client:
    client.conductor.answers['show_host_topology'] = build_topology()
    return client.at('2.7')


def list_units(view: Any) -> list[Any]:
    return [
        unit
        for node in view['numa_nodes']
        for device in node['devices']
        for item in device['deployables']
        for unit in item['units']
    ]


def test_topology_shows_nodes_devices_and_users(newest: Client) -> None:
    view = newest.get(PATH).json
    assert (view['hostname'], view['agent_state']) == (HOST, 'up')
    assert [node['number'] for node in view['numa_nodes']] == [0, None]
    (hostile,) = view['numa_nodes'][1]['devices']
    assert hostile['model'] == HOSTILE
    root, child = view['numa_nodes'][0]['devices'][0]['deployables']
    assert (root['parent_uuid'], child['parent_uuid']) == (None, root['uuid'])
    states = [unit['availability'] for unit in list_units(view)]
    assert states == ['used', 'free', 'reserved', 'broken']
    used, free, reserved, _ = list_units(view)
    assert (used['user']['project_id'], free['user']) == (PROJECT, None)
    assert (used['reason'], reserved['reason']) == (
        None,
        'A program of the host uses it.',
    )


@pytest.fixture
def shared_client(tmp_path: Path) -> Client:
    """Return a client of a service whose policy file lets managers read topologies."""
    rule = '"cyborg:host:get_topology": "rule:project_manager_or_admin"'
    client = build_policy_client(tmp_path, rule)
    client.conductor.answers['show_host_topology'] = build_topology()
    return client.at('2.7')


def test_topology_hides_users_from_managers(shared_client: Client) -> None:
    newest = shared_client.as_(MANAGER)
    answer = newest.get(PATH)
    assert answer.status == 200
    assert not any('user' in unit for unit in list_units(answer.json))
    assert PROJECT not in str(answer.json['numa_nodes'])


def test_topology_only_admin_sees_uuids_in_reasons(shared_client: Client) -> None:
    """Consumers in Placement are instances of all projects."""
    reason = f'Used by {INSTANCE}.'
    unit = TopologyUnit('a', 'PCI', Availability.RESERVED, reason)
    deployable = TopologyDeployable('d', 'root', None, 'PGPU', total=1, units=(unit,))
    topology = build_topology()
    device = replace(
        topology.numa_nodes[0].devices[0],
        status_reason=reason,
        health_reason=reason,
        deployables=(deployable,),
    )
    nodes = (NumaNode(0, (device,)),)
    changed = replace(topology, numa_nodes=nodes)
    shared_client.conductor.answers['show_host_topology'] = changed
    assert str(shared_client.get(PATH).json).count(INSTANCE) == 3
    text = str(shared_client.as_(MANAGER).get(PATH).json)
    assert (text.count(INSTANCE), text.count('(hidden)')) == (0, 3)


def test_topology_host_without_devices_is_empty(newest: Client) -> None:
    topology = HostTopology('a/bé', None)
    newest.conductor.answers['show_host_topology'] = topology
    view = newest.get('/hosts/a%20b%C3%A9/topology').json
    assert (view['numa_nodes'], view['agent_state']) == ([], None)
    assert view['links'][0]['href'].endswith('/v2/hosts/a%2Fb%C3%A9/topology')


@pytest.mark.parametrize('name', ['elsewhere', '%00', '%ED%A0%80'])
def test_topology_unknown_host_is_refused(client: Client, name: str) -> None:
    assert client.at('2.7').get(f'/hosts/{name}/topology').status in (400, 404)


@pytest.fixture
def fleet(client: Client) -> Client:
    """Return a client of hosts a (agent), b (agent down, devices), c (a device)."""
    database = client.conductor.database
    add_service_row(database, 'b', 'down')
    add_service_row(database, 'a')
    for name in 'bbc':
        add_device(database, hostname=name)
    return client.at('2.7')


def list_names(client: Client, query: str = '') -> list[str]:
    return [host['name'] for host in client.get(f'/hosts{query}').json['hosts']]


@pytest.mark.parametrize(
    ('query', 'names'),
    [
        ('', ['a', 'b', 'c']),
        ('?sort_key=name&sort_dir=desc', ['c', 'b', 'a']),
        ('?agent_state=down', ['b']),
        ('?name=c', ['c']),
        ('?name=%00', []),
    ],
)
def test_list_hosts_sorts_and_filters(
    fleet: Client, query: str, names: list[str]
) -> None:
    assert list_names(fleet, query) == names


@pytest.mark.parametrize(
    'query',
    ['sort_key=uuid', f'marker={INSTANCE}', 'marker=x', 'agent_state=x', 'drain=true'],
)
def test_list_hosts_refuses_unknown_words(fleet: Client, query: str) -> None:
    assert fleet.get(f'/hosts?{query}').status == 400


def test_list_hosts_refuses_cursor_of_other_direction(fleet: Client) -> None:
    href = fleet.get('/hosts?limit=1').json['hosts_links'][0]['href']
    path = f'{href.partition("/v2")[2]}&sort_dir=desc'
    assert fleet.get(path).status == 400


def test_host_shows_agent_devices_and_status(fleet: Client) -> None:
    without_agent = fleet.get('/hosts/c').json
    assert (without_agent['agent_state'], without_agent['version']) == (None, None)
    assert (without_agent['status'], without_agent['devices_count']) == ('enabled', 1)
    assert fleet.get('/hosts/a').json['status'] is None


def test_patch_host_changes_status_of_all_devices(fleet: Client) -> None:
    status = {'op': 'replace', 'path': '/status', 'value': 'maintaining'}
    reason = {'op': 'add', 'path': '/reason', 'value': 'fan'}
    changed = fleet.patch('/hosts/b', [status, reason]).json
    assert (changed['status'], changed['maintaining_count']) == ('maintaining', 2)
    devices = fleet.get('/devices?hostname=b').json['devices']
    assert {device['status_reason'] for device in devices} == {'fan'}
    enabled = fleet.patch('/hosts/b', [{**status, 'value': 'enabled'}]).json
    assert (enabled['status'], enabled['maintaining_count']) == ('enabled', 0)
    assert fleet.patch('/hosts/b', [{**status, 'path': '/mode'}]).status == 400


def test_delete_host_deletes_agent_and_devices(fleet: Client) -> None:
    assert fleet.delete('/hosts/a?drain=true').status == 409
    answer = fleet.delete('/hosts/b')
    path = answer.headers['Location'].partition('/v2')[2]
    operation = fleet.get(path).json
    assert (answer.status, operation['state']) == (202, 'succeeded')
    assert list_names(fleet) == ['a', 'c']
    assert len(fleet.get('/devices').json['devices']) == 1
    assert fleet.delete('/hosts/b').status == 404


def add_daemon(
    client: Client, host: str, state: str = 'up', binary: str = AGENT
) -> str:
    """Add a daemon; return its uuid."""
    columns = {'binary': binary, 'started_at': AT, 'heartbeat_at': AT}
    return add_service_row(client.conductor.database, host, state, **columns)


@pytest.fixture
def older(client: Client) -> Client:
    return client.at('2.4')


def test_list_services_shows_host_and_state(older: Client) -> None:
    uuid = add_daemon(older, 'compute-1', ServiceState.DOWN)
    assert older.get('/services').json == {
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
    older: Client, query: str, hosts: list[str]
) -> None:
    for host in 'abc':
        add_daemon(older, host, ServiceState.DOWN if host == 'b' else ServiceState.UP)
    services = older.get(f'/services?{query}').json['services']
    assert [service['host'] for service in services] == hosts


def test_services_have_no_agents_since_2_7(older: Client) -> None:
    agent = add_daemon(older, 'compute-1')
    conductor = add_daemon(older, 'ctl-1', binary=CONDUCTOR)
    latest = older.at('2.7')
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
    older: Client, state: ServiceState, status: int
) -> None:
    service = add_daemon(older, 'ctl-1', state, binary=CONDUCTOR)
    latest = older.at('2.7')
    assert latest.delete(f'/services/{service}').status == status
    assert len(older.get('/services').json['services']) == (status == 409)
