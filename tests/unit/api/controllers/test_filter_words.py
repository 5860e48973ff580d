# SPDX-License-Identifier: Apache-2.0
"""Tests of filters whose words are known, since microversion 2.5."""

import pytest

from cyborg_lite.model.devices.devices import DeviceStatus
from tests.builders.device_rows import add_device
from tests.support.api.api_document import load_document
from tests.support.api.conversation import Client

FILTERS = [
    ('/accelerator_requests', 'state', 'Initial,Bound'),
    ('/devices', 'status', 'enabled,maintaining'),
    ('/devices', 'health', 'ok,degraded'),
    ('/operations', 'state', 'waiting,failed'),
    ('/services', 'state', 'up,down'),
]


@pytest.mark.parametrize(('path', 'name', 'words'), FILTERS)
def test_unknown_word_is_refused_with_known_ones(
    client: Client, path: str, name: str, words: str
) -> None:
    newest = client.at('2.7')
    assert newest.get(f'{path}?{name}={words}').status == 200
    for text in ('nonsense', f'{words},nonsense', ''):
        answer = newest.get(f'{path}?{name}={text}')
        assert answer.status == 400
        assert all(word in answer.fault for word in words.split(','))
    parameters = load_document(None)['paths'][f'/v2{path}']['get']['parameters']
    (documented,) = [item for item in parameters if item.get('name') == name]
    assert set(words.split(',')) <= set(documented['schema']['items']['enum'])


def test_list_of_words_selects_objects_with_any(client: Client) -> None:
    for status in DeviceStatus:
        add_device(client.conductor.database, status=status)
    words = ','.join(DeviceStatus)
    for query, number in ((words, len(DeviceStatus)), ('maintaining', 1)):
        answer = client.at('2.5').get(f'/devices?status={query}')
        assert len(answer.json['devices']) == number
    assert client.at('2.4').get(f'/devices?status={words}').json['devices'] == []
