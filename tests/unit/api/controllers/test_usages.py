# SPDX-License-Identifier: Apache-2.0
"""Tests of the use of units at microversion 2.7."""

from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from cyborg_lite.model.arqs.usages import UnitUsage, UsageQuery, UsageReport
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
def admin(client: Client) -> Client:
    return client.as_(ADMIN, '2.7')


@pytest.fixture
def reader(client: Client) -> Client:
    return client.as_(READER, '2.7')


def list_queries(client: Client) -> list[UsageQuery]:
    """Return the queries that have reached the conductor."""
    return client.conductor.list_arguments('sum_usages', 'query')


def test_usages_of_month_are_unit_hours(admin: Client) -> None:
    usage = UnitUsage(PROJECT, 'PGPU', 'gpu', 5_400_000)
    admin.conductor.answers['sum_usages'] = UsageReport((usage,), END)
    body = admin.get(f'/usages?{MONTH}').json
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
    assert list_queries(admin) == [UsageQuery(START, END, None)]


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


def test_usages_default_is_last_30_days(admin: Client) -> None:
    now = int(datetime.now(UTC).timestamp() * 1000)
    assert admin.get('/usages').status == 200
    (query,) = list_queries(admin)
    assert query.end - query.start == 30 * DAY_MS
    assert now <= query.end < now + DAY_MS


def test_usages_time_with_offset_is_converted(admin: Client) -> None:
    offset = quote('2026-10-01T02:00:00+02:00')
    assert admin.get(f'/usages?start={offset}&end=2026-11-01').status == 200
    assert list_queries(admin) == [UsageQuery(START, END, None)]


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
        'begin=2026-10-01',
    ],
)
def test_usages_invalid_argument_is_400(admin: Client, arguments: str) -> None:
    assert admin.get(f'/usages?{arguments}').status == 400
    assert list_queries(admin) == []


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
    assert member.at('2.6').get('/limits').status == 406
