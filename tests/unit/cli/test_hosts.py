# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on hosts."""

import pytest
from osc_lib import exceptions

from tests.builders.host_topologies import HOST, build_shared_topology, build_topology
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
