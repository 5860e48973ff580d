# SPDX-License-Identifier: Apache-2.0
"""Devices, as they are listed, and taken out of service and back."""

import pytest

from cyborg_lite.exceptions import PlacementConflict
from cyborg_lite.model.devices import DeviceStatus
from tests.unit.api.conversation import HOST, MANAGER, Client, device

UNKNOWN = 'd5ca2f11-3108-4426-a11c-a959987565df'


def test_a_device_comes_bare(client: Client) -> None:
    made = device(client.conductor)
    answer = client.as_(MANAGER).get(f'/devices/{made.uuid.upper()}')
    assert answer.status == 200
    assert answer.json == {
        'uuid': made.uuid,
        'type': 'FPGA',
        'vendor': '0xABCD',
        'model': 'FakeDevice',
        'std_board_info': '{"class": "Fake class"}',
        'vendor_board_info': 'fake_vendor_info',
        'hostname': 'compute-1',
        'links': [{'href': f'{HOST}/v2/devices/{made.uuid}', 'rel': 'self'}],
        'created_at': '2026-11-21T05:53:43.501846+00:00',
        'updated_at': None,
    }


def test_the_first_key_of_a_list_is_the_collection(client: Client) -> None:
    assert next(iter(client.get('/devices').json)) == 'devices'
    assert client.get('/devices').json == {'devices': []}


@pytest.mark.parametrize('version', ['2.0', '2.1', '2.2'])
def test_the_status_is_not_shown_below_2_3(client: Client, version: str) -> None:
    made = device(client.conductor)
    older = client.at(version)
    assert 'status' not in older.get(f'/devices/{made.uuid}').json
    assert 'status' not in older.get('/devices').json['devices'][0]
    assert older.get('/devices?status=enabled').status == 406


def test_the_status_is_shown_from_2_3(client: Client) -> None:
    made = device(client.conductor)
    device(client.conductor, status=DeviceStatus.MAINTAINING)
    newer = client.at('2.3')
    assert newer.get(f'/devices/{made.uuid}').json['status'] == 'enabled'
    listed = newer.get('/devices?status=maintaining').json['devices']
    assert [one['status'] for one in listed] == ['maintaining']
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
def test_devices_are_picked_by_what_they_are(
    client: Client, query: str, count: int
) -> None:
    device(client.conductor)
    device(client.conductor, hostname='compute-2')
    device(client.conductor, type='GPU', vendor='10de')
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
def test_filters_come_in_pairs(client: Client, query: str, picked: list[int]) -> None:
    uuids = [device(client.conductor).uuid for _ in range(3)]
    answer = client.get(f'/devices?{query}')
    assert answer.status == 200
    listed = [one['uuid'] for one in answer.json['devices']]
    assert listed == [uuids[index] for index in picked]


@pytest.mark.parametrize(
    'query',
    [
        'filters=x',
        'filters={"field": "limit"}',
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
        'filters.field=name&filters.value=x',
        'filters.field=instance_uuid&filters.value=x',
        'filters.field=board&filters.value=x',
        'filters.field=sort_dir&filters.value=up',
        'filters.field=marker&filters.value=x',
        'name=x',
        'uuid=x',
    ],
)
def test_a_filter_that_would_be_ignored_is_refused(client: Client, query: str) -> None:
    assert client.get(f'/devices?{query}').status == 400


@pytest.mark.parametrize('identifier', [UNKNOWN, 'x', '%00', '%C3%A9'])
def test_an_unknown_device_is_not_found(client: Client, identifier: str) -> None:
    for method, path in (('GET', ''), ('POST', '/enable'), ('POST', '/disable')):
        answer = client.send(method, f'/devices/{identifier}{path}')
        assert answer.status == 404
        assert 'not found' in answer.fault


@pytest.mark.parametrize('raw', [None, b'', b'{}', b'null', b'{"a": 1}'])
def test_a_device_leaves_service_and_comes_back(
    client: Client, raw: bytes | None
) -> None:
    uuid = device(client.conductor).uuid
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
def test_an_action_has_no_other_body(client: Client, raw: bytes) -> None:
    uuid = device(client.conductor).uuid
    assert client.send('POST', f'/devices/{uuid}/disable', raw=raw).status == 400


def test_a_refusal_of_placement_is_a_conflict(client: Client) -> None:
    uuid = device(client.conductor).uuid
    client.conductor.refusal = PlacementConflict(provider='p')
    assert client.post(f'/devices/{uuid}/disable').status == 409


@pytest.mark.parametrize(
    ('method', 'path', 'status'),
    [
        ('POST', '', 405),
        ('POST', f'/{UNKNOWN}', 405),
        ('PUT', f'/{UNKNOWN}', 405),
        ('DELETE', f'/{UNKNOWN}', 405),
        ('PATCH', f'/{UNKNOWN}', 405),
        ('PATCH', '', 405),
        ('DELETE', '', 405),
        ('GET', f'/{UNKNOWN}/enable', 405),
        ('POST', f'/{UNKNOWN}/explode', 404),
        ('POST', f'/{UNKNOWN}/enable/now', 404),
    ],
)
def test_nothing_else_can_be_done(
    client: Client, method: str, path: str, status: int
) -> None:
    assert client.send(method, f'/devices{path}').status == status


def test_a_device_may_say_nothing_of_its_board(client: Client) -> None:
    made = device(client.conductor, std_board_info=None, vendor_board_info=None)
    shown = client.get(f'/devices/{made.uuid}').json
    assert (shown['std_board_info'], shown['vendor_board_info']) == (None, None)
