# SPDX-License-Identifier: Apache-2.0
"""Tests of the topology of a host at microversion 2.7."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.model.hosts.topology import (
    Availability,
    HostTopology,
    NumaNode,
    TopologyDeployable,
    TopologyUnit,
)
from tests.builders.host_topologies import HOST, HOSTILE, PROJECT, build_topology
from tests.support.api.conversation import MANAGER, Client, build_policy_client

PATH = f'/hosts/{HOST}/topology'
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
    assert (used['reason'], reserved['reason']) == (None, 'A job prepares it.')


@pytest.fixture
def shared_client(tmp_path: Path) -> Client:
    """Return a client of a service whose policy file lets managers read topologies."""
    rule = '"cyborg:host:get_topology": "rule:project_manager_or_admin"'
    client = build_policy_client(tmp_path, rule)
    client.conductor.answers['show_host_topology'] = build_topology()
    return client.at('2.7')


def test_topology_requires_administrator(newest: Client) -> None:
    assert newest.as_(MANAGER).get(PATH).status == 403


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
