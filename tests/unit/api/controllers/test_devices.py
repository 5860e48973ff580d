# SPDX-License-Identifier: Apache-2.0
"""Tests of listing, showing, disabling and enabling devices."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from cyborg_lite.errors.providers import PlacementConflict
from cyborg_lite.model.devices.devices import DeviceStatus
from tests.builders.device_rows import add_device
from tests.support.api.conversation import HOST, MANAGER, Client


def test_show_device_has_no_wrapper(client: Client) -> None:
    at = datetime(2026, 11, 21, 5, 53, 43, 501846, tzinfo=UTC)
    device = add_device(client.conductor.database, created_at=at)
    answer = client.as_(MANAGER).get(f'/devices/{device.uuid.upper()}')
    assert answer.status == 200
    expected = {
        'uuid': device.uuid,
        'type': 'FPGA',
        'vendor': '0xABCD',
        'model': 'FakeDevice',
        'std_board_info': '{"class": "Fake class"}',
        'vendor_board_info': 'fake_vendor_info',
        'hostname': 'compute-1',
        'links': [{'href': f'{HOST}/v2/devices/{device.uuid}', 'rel': 'self'}],
        'created_at': '2026-11-21T05:53:43.501846+00:00',
        'updated_at': None,
    }
    assert answer.body == json.dumps(expected).encode()


@pytest.mark.parametrize('version', ['2.0', '2.1', '2.2'])
def test_show_device_before_2_3_lacks_status(client: Client, version: str) -> None:
    device = add_device(client.conductor.database)
    older = client.at(version)
    assert 'status' not in older.get(f'/devices/{device.uuid}').json
    assert 'status' not in older.get('/devices').json['devices'][0]
    assert older.get('/devices?status=enabled').status == 406


def test_show_device_since_2_3_has_status(client: Client) -> None:
    device = add_device(client.conductor.database)
    add_device(client.conductor.database, status=DeviceStatus.MAINTAINING)
    newer = client.at('2.3')
    assert newer.get(f'/devices/{device.uuid}').json['status'] == 'enabled'
    listed = newer.get('/devices?status=maintaining').json['devices']
    assert [view['status'] for view in listed] == ['maintaining']
    assert newer.get('/devices?status=gone').json == {'devices': []}


@pytest.mark.parametrize(
    ('query', 'count'),
    [
        ('', 3),
        ('type=GPU', 1),
        ('type=FPGA', 2),
        ('type=FPGA&hostname=compute-2', 1),
        ('vendor=10de', 1),
        ('vendor=10de&type=FPGA', 0),
        ('type=fpga', 0),
        ('type=MOON', 0),
        ('type=', 0),
        ('type=%00', 0),
        ('hostname=%F0%9F%98%80', 0),
    ],
)
def test_list_devices_filters(client: Client, query: str, count: int) -> None:
    add_device(client.conductor.database)
    add_device(client.conductor.database, hostname='compute-2')
    add_device(client.conductor.database, type='GPU', vendor='10de')
    answer = client.get(f'/devices?{query}')
    assert (answer.status, len(answer.json['devices'])) == (200, count)


@pytest.mark.parametrize(
    ('query', 'picked'),
    [
        ('filters.field=limit&filters.value=1', [0]),
        ('filters[0].field=limit&filters[0].value=2', [0, 1]),
        ('filters%5B0%5D.field=limit&filters%5B0%5D.value=2', [0, 1]),
        (
            'filters.field=sort_dir&filters.value=desc'
            '&filters.field=limit&filters.value=1',
            [2],
        ),
        (
            'filters[7].value=1&filters[1].field=sort_dir'
            '&filters[7].field=limit&filters[1].value=desc',
            [2],
        ),
        ('filters.field=sort_key&filters.value=created_at&limit=2', [0, 1]),
        ('limit=99999999999999999999', [0, 1, 2]),
        ('sort_dir=desc', [2, 1, 0]),
    ],
)
def test_list_devices_filter_pairs(
    client: Client, query: str, picked: list[int]
) -> None:
    uuids = [add_device(client.conductor.database).uuid for _ in range(3)]
    answer = client.get(f'/devices?{query}')
    assert answer.status == 200
    listed = [view['uuid'] for view in answer.json['devices']]
    assert listed == [uuids[index] for index in picked]


@pytest.mark.parametrize(
    'query',
    [
        'filters=x',
        'filters.field=limit',
        'filters.value=1',
        'filters.field=limit&filters.value=x',
        'filters.field=limit&filters.value=1&filters.field=sort_dir',
        'filters[0].field=limit&filters[1].value=1',
        'filters[0].field=limit&filters[0].field=limit&filters[0].value=1',
        'filters.field=limit&filters.value=1&limit=1',
        'filters[x].field=limit&filters[x].value=1',
        'filters.field=colour&filters.value=red',
        'filters.field=type&filters.value=GPU',
        'name=x',
    ],
)
def test_list_devices_unknown_filter_returns_400(client: Client, query: str) -> None:
    assert client.get(f'/devices?{query}').status == 400


@pytest.mark.parametrize('identifier', ['x', '%00', '%C3%A9'])
def test_show_device_unknown_returns_404(client: Client, identifier: str) -> None:
    for method, path in (('GET', ''), ('POST', '/enable'), ('POST', '/disable')):
        answer = client.send(method, f'/devices/{identifier}{path}')
        assert answer.status == 404
        assert 'not found' in answer.fault


@pytest.mark.parametrize('raw', [None, b'', b'{}', b'null', b'{"a": 1}'])
def test_disable_and_enable_device_set_status(
    client: Client, raw: bytes | None
) -> None:
    uuid = add_device(client.conductor.database).uuid
    for action, status in (
        ('disable', DeviceStatus.MAINTAINING),
        ('disable', DeviceStatus.MAINTAINING),
        ('enable', DeviceStatus.ENABLED),
        ('enable', DeviceStatus.ENABLED),
    ):
        answer = client.send('POST', f'/devices/{uuid}/{action}', raw=raw)
        assert (answer.status, answer.body) == (204, b'')
        assert 'Content-Type' not in answer.headers
        assert client.conductor.devices[uuid].status is status


@pytest.mark.parametrize('raw', [b'x', b'[]', b'5'])
def test_device_action_with_body_returns_400(client: Client, raw: bytes) -> None:
    uuid = add_device(client.conductor.database).uuid
    assert client.send('POST', f'/devices/{uuid}/disable', raw=raw).status == 400


def test_device_action_placement_conflict_returns_409(client: Client) -> None:
    uuid = add_device(client.conductor.database).uuid
    refusal = PlacementConflict(provider='p')
    client.conductor.answers['set_device_status'] = refusal
    assert client.post(f'/devices/{uuid}/disable').status == 409


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('{"class": "Fake", "size": 2}', {'class': 'Fake', 'size': 2}),
        ('{"class": {"code": [1, null]}}', {'class': {'code': [1, None]}}),
        ('"old"', '"old"'),
        (None, None),
    ],
)
def test_board_is_object_and_text_before(
    client: Client, text: str | None, value: Any
) -> None:
    uuid = add_device(client.conductor.database, std_board_info=text).uuid
    for path in ('/devices', f'/devices/{uuid}'):
        for version, expected in (('2.5', value), ('2.4', text), ('2.0', text)):
            body = client.at(version).get(path).json
            (device,) = body.get('devices', [body])
            assert device['std_board_info'] == expected


def test_board_has_bridges_since_2_5(client: Client) -> None:
    text = '{"class": "Fake", "pci_bridges": "0000:3a:00.0"}'
    add_device(client.conductor.database, std_board_info=text)
    boards = {
        version: client.at(version).get('/devices').json['devices'][0]['std_board_info']
        for version in ('2.0', '2.4', '2.5')
    }
    assert boards['2.0'] == boards['2.4'] == '{"class": "Fake"}'
    assert boards['2.5'] == json.loads(text)
