# SPDX-License-Identifier: Apache-2.0
"""Tests of JSON in place of JSON text, since microversion 2.5."""

import json
from typing import Any

import pytest

from tests.builders.device_rows import add_deployable, add_device
from tests.support.api.conversation import Client


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


def test_attributes_are_list_and_text_before(client: Client) -> None:
    pairs = [('rack', '7'), ('trait', 'CUSTOM_"A"')]
    uuid = add_deployable(client.conductor.database, attributes=dict(pairs)).uuid
    expected = [{key: value} for key, value in pairs]
    for path in ('/deployables', f'/deployables/{uuid}'):
        for version in ('2.5', '2.4', '2.0'):
            body = client.at(version).get(path).json
            (deployable,) = body.get('deployables', [body])
            value = deployable['attributes_list']
            if version != '2.5':
                assert value == json.dumps(expected)
                value = json.loads(value)
            assert value == expected


def test_deployable_without_attributes_has_empty_list(client: Client) -> None:
    add_deployable(client.conductor.database)
    (deployable,) = client.at('2.5').get('/deployables').json['deployables']
    assert deployable['attributes_list'] == []
