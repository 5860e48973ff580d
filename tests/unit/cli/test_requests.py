# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on ARQs."""

import pytest
from osc_lib import exceptions

from cyborg_lite.model.arqs.usages import UnitUsage, UsageReport
from cyborg_lite.model.capacity.device_types import DeviceType
from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import PROJECT, Client

INSTANCE = 'd5ca2f11-3108-4426-a11c-a959987565df'
BIND = (
    '--host=compute-1',
    f'--instance={INSTANCE}',
    '--provider=853f07a6-19de-3dd6-b9f6-6c782daa3f7b',
    '--service-token=t',
)


@pytest.fixture
def arq(client: Client) -> str:
    """Create an ARQ; return its uuid."""
    client.create_profile()
    uuid: str = client.create_arqs()[0]['uuid']
    return uuid


def test_show_has_state(client: Client, arq: str) -> None:
    row = read_json(client, 'request show', arq)
    assert (row['uuid'], row['state']) == (arq, 'Initial')


def test_event_list_is_of_arq_or_of_instance(client: Client, arq: str) -> None:
    created = read_json(client, 'request event list', arq)
    assert [(row['ARQ'], row['Step']) for row in created] == [(arq, 'Initial')]
    run_command(client, 'request bind', arq, *BIND, '--wait')
    rows = read_json(client, 'request event list', '--instance', INSTANCE)
    assert [row['Step'] for row in rows][-1] == 'BindStarted'
    assert rows == read_json(client, 'request event list', arq)[:-1]


def test_limits_show_lists_resources(client: Client) -> None:
    client.create_profile('a', {'resources:PGPU': '2'})
    rows = read_json(client, 'limits show')
    assert {'Resource': 'class:PGPU', 'Limit': -1, 'Used': 0} in rows


def test_request_list_has_filters(client: Client, arq: str) -> None:
    (row,) = read_json(client, 'request list', '--state', 'Initial', '--long')
    assert (row['UUID'], row['Device Profile'], row['Host']) == (arq, 'dp1', None)
    assert row['Project'] is not None
    assert read_json(client, 'request list', '--host', 'compute-9') == []
    with pytest.raises(exceptions.CommandError, match='known values'):
        run_command(client, 'request list', '--state', 'nonsense')


def test_usage_list_is_by_project(client: Client) -> None:
    usage = UnitUsage(PROJECT, 'PGPU', 'gpu', 5_400_000)
    client.conductor.answers['sum_usages'] = UsageReport((usage,), 0)
    (row,) = read_json(client, 'usage list', '--project', PROJECT)
    assert (row['Project'], row['Unit Hours']) == (PROJECT, 1.5)
    arguments = '--names', '--project', 'physics', '--start', '2026-10-01'
    assert read_json(client, 'usage list', *arguments)[0]['Project'] == 'physics'
    queries = client.conductor.list_arguments('sum_usages', 'query')
    assert [query.project_id for query in queries] == [PROJECT, PROJECT]


def test_device_type_list_has_words(client: Client) -> None:
    item = DeviceType('GPU', '10de', 'A100', 'CUSTOM_MIG', '2g.20gb', 20480, ('g',), 2)
    client.conductor.answers['list_device_types'] = (item,)
    (row,) = read_json(client, 'device type list')
    assert row['Description'] == 'one 20 GB slice of an A100'
    assert (row['Available'], row['Free']) == (True, 2)


def test_profile_commands_have_names_of_clients(client: Client, arq: str) -> None:
    changed = read_json(client, 'device profile set', 'dp1', '--private')
    assert changed['is_public'] is False
