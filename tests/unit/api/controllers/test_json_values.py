# SPDX-License-Identifier: Apache-2.0
"""Tests of JSON in place of JSON text, since microversion 2.5."""

import json
from typing import Any

import pytest

from cyborg_lite import codec
from cyborg_lite.model.inventory.typed_attributes import MEMORY
from tests.builders.device_rows import add_deployable, add_device
from tests.builders.patches import build_program_patch
from tests.support.api.conversation import Client

UNKNOWN = 'd5ca2f11-3108-4426-a11c-a959987565df'


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


def test_attributes_are_one_list_and_text_before(client: Client) -> None:
    pairs = {'memory_mib': 'large', 'rack': '7', 'trait': 'CUSTOM_"A"'}
    memory = MEMORY.of(81920)
    uuid = add_deployable(
        client.conductor.database,
        attributes=pairs,
        typed_attributes=[codec.dump(memory)],
    ).uuid
    for path in ('/deployables', f'/deployables/{uuid}'):
        for version in ('2.4', '2.0'):
            body = client.at(version).get(path).json
            (deployable,) = body.get('deployables', [body])
            text = json.dumps([{key: value} for key, value in pairs.items()])
            assert deployable['attributes_list'] == text
            assert 'attributes' not in deployable
        for version in ('2.5', '2.7'):
            body = client.at(version).get(path).json
            (deployable,) = body.get('deployables', [body])
            assert 'attributes_list' not in deployable
            values = {item['name']: item['value'] for item in deployable['attributes']}
            assert values == {**pairs, 'memory_mib': 81920}


@pytest.mark.parametrize(
    ('method', 'path', 'body'),
    [
        ('GET', '/attributes', None),
        ('POST', '/attributes', {'deployable_id': 1, 'key': 'rack', 'value': '7'}),
        ('GET', f'/attributes/{UNKNOWN}', None),
        ('DELETE', f'/attributes/{UNKNOWN}', None),
        ('POST', f'/devices/{UNKNOWN}/enable', None),
        ('POST', f'/devices/{UNKNOWN}/disable', None),
        ('PATCH', f'/deployables/{UNKNOWN}/program/{UNKNOWN}', build_program_patch()),
    ],
)
def test_path_with_successor_is_gone_since_2_5(
    client: Client, method: str, path: str, body: Any
) -> None:
    assert client.at('2.4').send(method, path, body).status in (200, 404)
    for version in ('2.5', '2.7'):
        answer = client.at(version).send(method, path, body)
        assert (answer.status, 'requires microversion 2.4' in answer.fault) == (
            406,
            True,
        )
