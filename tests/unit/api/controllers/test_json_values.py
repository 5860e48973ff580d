# SPDX-License-Identifier: Apache-2.0
"""Tests of JSON in place of JSON text, since microversion 2.27."""

import json
from typing import Any

import pytest

from cyborg_lite.model.devices import Attribute
from tests.support.api.conversation import Client, add_deployable, add_device


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
    uuid = add_device(client.conductor, std_board_info=text).uuid
    for path in ('/devices', f'/devices/{uuid}'):
        for version, expected in (('2.27', value), ('2.26', text), ('2.0', text)):
            body = client.at(version).get(path).json
            (device,) = body.get('devices', [body])
            assert device['std_board_info'] == expected


def test_attributes_are_list_and_text_before(client: Client) -> None:
    pairs = [('rack', '7'), ('trait', 'CUSTOM_"A"')]
    moment = client.conductor.now()
    attributes = tuple(
        Attribute(str(number), 1, key, value, moment)
        for number, (key, value) in enumerate(pairs)
    )
    uuid = add_deployable(client.conductor, attributes=attributes).uuid
    expected = [{key: value} for key, value in pairs]
    for path in ('/deployables', f'/deployables/{uuid}'):
        for version in ('2.27', '2.26', '2.0'):
            body = client.at(version).get(path).json
            (deployable,) = body.get('deployables', [body])
            value = deployable['attributes_list']
            if version != '2.27':
                assert value == json.dumps(expected)
                value = json.loads(value)
            assert value == expected


def test_deployable_without_attributes_has_empty_list(client: Client) -> None:
    add_deployable(client.conductor)
    (deployable,) = client.at('2.27').get('/deployables').json['deployables']
    assert deployable['attributes_list'] == []
