# SPDX-License-Identifier: Apache-2.0
"""Tests of the use of units, of limits and of device types at microversion 2.7."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest

from cyborg_lite.model.arqs.usages import UnitUsage, UsageQuery, UsageReport
from cyborg_lite.model.capacity.device_types import DeviceType
from tests.builders.device_rows import add_deployable
from tests.support.api.conversation import (
    ADMIN,
    MEMBER,
    OTHER_MEMBER,
    OTHER_PROJECT,
    PROJECT,
    READER,
    Client,
)

DAY_MS = 86_400_000
MONTH = 'start=2026-10-01&end=2026-11-01T00:00:00Z'
START, END = (
    int(datetime(2026, month, 1, tzinfo=UTC).timestamp()) * 1000 for month in (10, 11)
)


@pytest.fixture
def reader(client: Client) -> Client:
    return client.as_(READER, '2.7')


def list_queries(client: Client) -> list[UsageQuery]:
    """Return the queries that have reached the conductor."""
    return client.conductor.list_arguments('sum_usages', 'query')


def test_usages_of_month_are_unit_hours(newest: Client) -> None:
    usage = UnitUsage(PROJECT, 'PGPU', 'gpu', 5_400_000)
    newest.conductor.answers['sum_usages'] = UsageReport((usage,), END)
    body = newest.get(f'/usages?{MONTH}').json
    assert (body['start'], body['end']) == (
        '2026-10-01T00:00:00+00:00',
        '2026-11-01T00:00:00+00:00',
    )
    assert body['usages'] == [
        {
            'project_id': PROJECT,
            'resource_class': 'PGPU',
            'device_profile_name': 'gpu',
            'unit_hours': 1.5,
        }
    ]
    assert list_queries(newest) == [UsageQuery(START, END, None)]


def test_usages_of_reader_are_of_own_project(reader: Client) -> None:
    assert reader.get(f'/usages?{MONTH}').status == 200
    assert reader.get(f'/usages?{MONTH}&project_id={PROJECT}').status == 200
    own = UsageQuery(START, END, PROJECT)
    assert list_queries(reader) == [own, own]


def test_usages_of_other_project_need_admin(reader: Client) -> None:
    path = f'/usages?{MONTH}&project_id={OTHER_PROJECT}'
    assert reader.get(path).status == 403
    assert reader.as_(ADMIN, '2.7').get(path).status == 200
    (query,) = list_queries(reader)
    assert query.project_id == OTHER_PROJECT


def test_usages_default_is_last_30_days(newest: Client) -> None:
    now = int(datetime.now(UTC).timestamp() * 1000)
    assert newest.get('/usages').status == 200
    (query,) = list_queries(newest)
    assert query.end - query.start == 30 * DAY_MS
    assert now <= query.end < now + DAY_MS


def test_usages_time_with_offset_is_converted(newest: Client) -> None:
    offset = quote('2026-10-01T02:00:00+02:00')
    assert newest.get(f'/usages?start={offset}&end=2026-11-01').status == 200
    assert list_queries(newest) == [UsageQuery(START, END, None)]


@pytest.mark.parametrize(
    'arguments',
    [
        'start=yesterday',
        'start=1969-12-31',
        'start=0001-01-01T00:00:00%2B14:00',
        'end=9999-12-31',
        'end=20261301',
        'start=2026-11-02&end=2026-11-01',
        'start=2026-11-01&end=2026-11-01',
        'start=2020-01-01&end=2026-11-01',
        f'start={"2026-10-01" * 9}',
        'start=2026-10-01&start=2026-10-02',
        'project_id=',
        'project_id=%00',
    ],
)
def test_usages_invalid_argument_is_400(newest: Client, arguments: str) -> None:
    assert newest.get(f'/usages?{arguments}').status == 400
    assert list_queries(newest) == []


def test_limits_show_use_of_project(client: Client) -> None:
    client.create_profile('a', {'resources:PGPU': '2'})
    client.create_profile('b', {'resources:FPGA': '1'})
    member = client.as_(MEMBER, '2.7')
    member.create_arqs('a')
    client.as_(OTHER_MEMBER).create_arqs('b')
    assert member.get('/limits').json['limits'] == [
        {'resource': 'accelerator_requests', 'limit': -1, 'used': 2},
        {'resource': 'class:FPGA', 'limit': -1, 'used': 0},
        {'resource': 'class:PGPU', 'limit': -1, 'used': 2},
        {'resource': 'unbound_requests', 'limit': 100, 'used': 2},
    ]


# Any: JSON.
def read_types(client: Client) -> list[dict[str, Any]]:
    answer = client.at('2.7').get('/device_types')
    assert answer.status == 200, answer.body
    types: list[dict[str, Any]] = answer.json['device_types']
    return types


@pytest.mark.parametrize(
    ('availability', 'persona', 'units', 'expected'),
    [
        ('none', READER, 3, (None, None)),
        ('yes-no', READER, 3, (True, None)),
        ('yes-no', READER, 0, (False, None)),
        ('number', READER, 3, (True, 3)),
        ('none', ADMIN, 3, (True, 3)),
    ],
)
def test_option_decides_what_users_read(
    client: Client,
    availability: str,
    persona: dict[str, str],
    units: int,
    expected: tuple[bool | None, int | None],
) -> None:
    item = DeviceType('GPU', '10de', 'A100', 'PGPU', '', 81920, ('gpu',), units)
    client.conductor.answers['list_device_types'] = (item,)
    service = client.configure(device_type_availability=availability)
    (record,) = read_types(service.as_(persona))
    assert record['description'] == 'one 80 GB A100'
    assert record['device_profiles'] == ['gpu']
    assert (record['is_available'], record['free_units']) == expected


def test_user_sees_types_of_own_profiles(client: Client) -> None:
    add_deployable(client.conductor.database, resource_class='FPGA')
    user = client.as_(READER)
    assert [item['device_profiles'] for item in read_types(client)] == [[]]
    assert read_types(user) == []
    client.create_profile('fpga', {'resources:FPGA': '1'})
    assert [item['device_profiles'] for item in read_types(user)] == [['fpga']]
    for path, value in (('/is_public', False), ('/enabled', False)):
        change = {'op': 'replace', 'path': path, 'value': value}
        client.at('2.7').patch('/device_profiles/fpga', [change])
        assert read_types(user) == []
        assert len(read_types(client)) == 1
