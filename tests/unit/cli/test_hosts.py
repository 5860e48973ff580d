# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on hosts and daemons."""

import pytest
from osc_lib import exceptions

from tests.builders.device_rows import add_device
from tests.builders.host_topologies import HOST, build_shared_topology, build_topology
from tests.builders.service_rows import add_service_row
from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import Client


def test_topology_lists_units_with_instances(client: Client) -> None:
    client.conductor.answers['show_host_topology'] = build_topology()
    rows = read_json(client, 'host topology', HOST)
    units = [row for row in rows if row['Unit']]
    states = [row['Availability'] for row in units]
    assert states == ['used', 'free', 'reserved', 'broken']
    assert units[0]['Instance']
    assert (units[0]['NUMA Node'], rows[-1]['NUMA Node']) == (0, None)


def test_topology_shows_bridges_on_request(client: Client) -> None:
    client.conductor.answers['show_host_topology'] = build_shared_topology()
    rows = read_json(client, 'host topology', HOST, '--bridges')
    bridges = [row['PCIe Bridges'] for row in rows]
    assert bridges[0] == '0000:40:01.0 0000:41:00.0 0000:42:00.0'
    assert bridges[-2:] == ['0000:40:03.0', None]
    assert 'PCIe Bridges' not in read_json(client, 'host topology', HOST)[0]


def test_topology_of_unknown_host_is_not_found(client: Client) -> None:
    with pytest.raises(exceptions.NotFound, match='nowhere'):
        run_command(client, 'host topology', 'nowhere')


def test_host_is_listed_disabled_enabled_and_forgotten(client: Client) -> None:
    database = client.conductor.database
    add_service_row(database, HOST, 'down')
    add_service_row(database, 'other')
    add_device(database, hostname=HOST)
    (row,) = read_json(client, 'host list', '--agent-state', 'down')
    assert (row['Name'], row['Agent'], row['Devices']) == (HOST, 'down', 1)
    host = read_json(client, 'host disable', HOST, '--reason', 'fan')
    assert (host['status'], host['maintaining_count']) == ('maintaining', 1)
    assert read_json(client, 'host enable', HOST)['status'] == 'enabled'
    assert read_json(client, 'host show', HOST)['agent_state'] == 'down'
    run_command(client, 'host forget', HOST, '--drain', '--wait')
    assert [row['Name'] for row in read_json(client, 'host list')] == ['other']


@pytest.fixture
def uuids(client: Client) -> list[str]:
    """Add an agent and three conductors, of which one is down; return their uuids."""
    database = client.conductor.database
    add_service_row(database, 'a')
    return [
        add_service_row(database, host, state, binary='cyborg-lite-conductor')
        for host, state in (('a', 'up'), ('b', 'down'), ('c', 'up'))
    ]


@pytest.mark.usefixtures('uuids')
def test_list_filters_by_state_and_host(client: Client) -> None:
    rows = read_json(client, 'service list')
    assert [row['Host'] for row in rows] == ['a', 'b', 'c']
    (down,) = read_json(client, 'service list', '--state', 'down', '--host', 'b')
    assert (down['State'], down['Binary']) == ('down', 'cyborg-lite-conductor')


def test_show_by_uuid_or_host(client: Client, uuids: list[str]) -> None:
    for name in (uuids[1], 'b'):
        assert read_json(client, 'service show', name)['uuid'] == uuids[1]
    with pytest.raises(exceptions.NotFound, match='nowhere'):
        run_command(client, 'service show', 'nowhere')


def test_delete_removes_only_daemons_that_are_down(
    client: Client, uuids: list[str]
) -> None:
    run_command(client, 'service delete', uuids[1])
    rows = read_json(client, 'service list')
    assert [row['UUID'] for row in rows] == [uuids[0], uuids[2]]
    with pytest.raises(exceptions.CommandError, match='HTTP 409'):
        run_command(client, 'service delete', uuids[0])
