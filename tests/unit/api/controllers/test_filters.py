# SPDX-License-Identifier: Apache-2.0
"""Tests of filters by words and by the start of a name, since microversion 2.5."""

import pytest

from cyborg_lite.api.microversion import MAXIMUM
from cyborg_lite.api.openapi.routes import list_routes
from cyborg_lite.model.devices.devices import DeviceStatus
from tests.builders.device_rows import add_deployable, add_device
from tests.support.api.api_document import load_document
from tests.support.api.conversation import Client
from tests.support.api.error_codes import check_code

FILTERS = [
    (route.path.removeprefix('/v2'), name, list(words))
    for route in list_routes(MAXIMUM)
    for name, words in route.words.items()
]


def test_filters_with_words_are_known() -> None:
    assert {f'{path}?{name}' for path, name, _ in FILTERS} >= {
        '/accelerator_requests?state',
        '/devices?health',
        '/devices?status',
        '/hosts?agent_state',
        '/operations?state',
        '/services?state',
    }


@pytest.mark.parametrize(('path', 'name', 'words'), FILTERS)
def test_unknown_word_is_refused_with_known_ones(
    client: Client, path: str, name: str, words: list[str]
) -> None:
    newest, listing = client.at(str(MAXIMUM)), ','.join(words)
    assert newest.get(f'{path}?{name}={listing}').status == 200
    for text in ('nonsense', f'{listing},nonsense', ''):
        answer = newest.get(f'{path}?{name}={text}')
        check_code(client, answer, 400)
        assert all(word in answer.fault for word in words)
    parameters = load_document(None)['paths'][f'/v2{path}']['get']['parameters']
    (documented,) = [item for item in parameters if item.get('name') == name]
    assert set(words) == set(documented['schema']['items']['enum'])


def test_list_of_words_selects_objects_with_any(client: Client) -> None:
    for status in DeviceStatus:
        add_device(client.conductor.database, status=status)
    words = ','.join(DeviceStatus)
    for query, number in ((words, len(DeviceStatus)), ('maintaining', 1)):
        answer = client.at('2.5').get(f'/devices?status={query}')
        assert len(answer.json['devices']) == number
    assert client.at('2.4').get(f'/devices?status={words}').json['devices'] == []


PATHS = [('/device_profiles', 'device_profiles'), ('/deployables', 'deployables')]


@pytest.fixture
def catalogue(client: Client) -> Client:
    """Return a client of a service with names that start alike."""
    for name in ('gpu-a', 'gpu-b', 'fpga'):
        client.create_profile(name)
        add_deployable(client.conductor.database, name=name)
    return client.at('2.5')


@pytest.mark.parametrize(('path', 'key'), PATHS)
def test_prefix_selects_names(catalogue: Client, path: str, key: str) -> None:
    objects = catalogue.get(f'{path}?name_prefix=gpu-&sort_key=uuid').json[key]
    assert {item['name'] for item in objects} == {'gpu-a', 'gpu-b'}
    assert catalogue.get(f'{path}?name_prefix=gpu-c').json[key] == []


def test_prefix_and_name_apply_together(catalogue: Client) -> None:
    path = '/device_profiles?name=gpu-a,fpga&name_prefix=gpu'
    (profile,) = catalogue.get(path).json['device_profiles']
    assert profile['name'] == 'gpu-a'


@pytest.mark.parametrize(('path', 'key'), PATHS)
@pytest.mark.parametrize('value', ['', 'x' * 256, '%00'])
def test_invalid_prefix_is_refused(
    catalogue: Client, path: str, key: str, value: str
) -> None:
    answer = catalogue.get(f'{path}?name_prefix={value}')
    assert (answer.status, 'name_prefix must' in answer.fault) == (400, True)


@pytest.mark.parametrize(('path', 'key'), PATHS)
def test_older_microversion_does_not_know_prefix(
    catalogue: Client, path: str, key: str
) -> None:
    answer = catalogue.at('2.4').get(f'{path}?name_prefix=gpu')
    assert (answer.status, 'name_prefix' in answer.fault) == (400, True)
