# SPDX-License-Identifier: Apache-2.0
"""Tests of JSON in place of JSON text, since microversions 2.27 and 2.29."""

import json
from typing import Any

import pytest

from cyborg_lite.model.devices.reconfiguration import DeviceConfiguration, SetView
from tests.builders.device_rows import add_deployable, add_device
from tests.support.api.conversation import Client
from tests.support.api.reconfiguration import start_change


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
        for version, expected in (('2.27', value), ('2.26', text), ('2.0', text)):
            body = client.at(version).get(path).json
            (device,) = body.get('devices', [body])
            assert device['std_board_info'] == expected


def test_board_has_bridges_since_2_30(client: Client) -> None:
    text = '{"class": "Fake", "pci_bridges": "0000:3a:00.0"}'
    add_device(client.conductor.database, std_board_info=text)
    boards = {
        version: client.at(version).get('/devices').json['devices'][0]['std_board_info']
        for version in ('2.0', '2.26', '2.29', '2.30')
    }
    assert boards['2.0'] == boards['2.26'] == '{"class": "Fake"}'
    assert boards['2.29'] == {'class': 'Fake'}
    assert boards['2.30'] == json.loads(text)


def test_attributes_are_list_and_text_before(client: Client) -> None:
    pairs = [('rack', '7'), ('trait', 'CUSTOM_"A"')]
    uuid = add_deployable(client.conductor.database, attributes=dict(pairs)).uuid
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
    add_deployable(client.conductor.database)
    (deployable,) = client.at('2.27').get('/deployables').json['deployables']
    assert deployable['attributes_list'] == []


def test_settings_are_objects_and_text_before(client: Client) -> None:
    device = add_device(client.conductor.database).uuid
    schemas = {'vgpus': {'type': 'integer', 'maximum': 16}}
    client.conductor.answers['show_configuration'] = DeviceConfiguration(
        device, 'compute-1', (SetView('nvidia', schemas, ('vgpus',)),)
    )
    start_change(client.conductor)
    value = {'set': 'nvidia', 'settings': {'vgpus': 4}}
    body = [{'op': 'replace', 'path': '/configuration', 'value': value}]
    path = f'/devices/{device}'
    answers = {
        '2.29': client.at('2.29').patch(path, body).json,
        '2.28': client.at('2.28').get(f'{path}/configuration').json,
        '2.14': client.at('2.14').get(f'{path}/configuration').json,
    }
    for version, answer in answers.items():
        settings = [answer[name][0]['settings'] for name in ('sets', 'changes')]
        if version != '2.29':
            assert settings == [json.dumps(schemas), json.dumps(value['settings'])]
            settings = [json.loads(text) for text in settings]
        assert settings == [schemas, value['settings']]
