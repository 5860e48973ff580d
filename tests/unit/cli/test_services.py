# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on daemons."""

import pytest
from osc_lib import exceptions

from tests.builders.service_rows import add_service_row
from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import Client


@pytest.fixture(autouse=True)
def uuids(client: Client) -> list[str]:
    """Add an agent and three conductors, of which one is down; return their uuids."""
    database = client.conductor.database
    add_service_row(database, 'a')
    return [
        add_service_row(database, host, state, binary='cyborg-lite-conductor')
        for host, state in (('a', 'up'), ('b', 'down'), ('c', 'up'))
    ]


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
