# SPDX-License-Identifier: Apache-2.0
"""Tests of the list of bitstreams."""

import pytest

from cyborg_lite.model.bitstreams.listing import ListedBitstream
from tests.builders.device_rows import add_deployable
from tests.support.api.conversation import Client

IMAGE = '47840318-1387-4d41-8b72-61a23362641d'


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.4')


def test_list_bitstreams_shows_properties_and_reasons(newest: Client) -> None:
    uuid = add_deployable(newest.conductor.database).uuid
    listed = ListedBitstream(
        IMAGE,
        'nlb',
        7,
        {'bs-name': 'nlb-0', 'vendor': 'intel', 'function_uuid': 'ab'},
        ('It is for board u250, not pac.',),
    )
    fitting = ListedBitstream(IMAGE, 'other', 7, {}, ())
    newest.conductor.answers['list_bitstreams'] = (listed, fitting)
    answer = newest.get(f'/bitstreams?deployable={uuid.upper()}')
    bitstream, second = answer.json['bitstreams']
    assert answer.status == 200
    properties = {key: value for key, value in bitstream.items() if value is not None}
    assert properties == {
        'image_uuid': IMAGE,
        'image_name': 'nlb',
        'size': 7,
        'name': 'nlb-0',
        'vendor': 'intel',
        'function_uuid': 'ab',
        'accepted': False,
        'reasons': ['It is for board u250, not pac.'],
    }
    assert {'region_uuid', 'shell_id', 'driver_path'} <= bitstream.keys()
    assert (second['accepted'], second['reasons']) == (True, [])


def test_list_bitstreams_filters_reach_conductor(newest: Client) -> None:
    query = 'vendor=intel&board=a&region=b&function=c'
    assert newest.get(f'/bitstreams?{query}').json == {'bitstreams': []}
    # An empty form field is sent as an empty value.
    assert newest.get('/bitstreams?vendor=&board=&region=&function=').status == 200
    filters = {'vendor': 'intel', 'board': 'a', 'region': 'b', 'function': 'c'}
    arguments = newest.conductor.list_arguments('list_bitstreams', 'filters')
    assert arguments == [filters, {}]


@pytest.mark.parametrize(
    ('path', 'status'),
    [
        ('/bitstreams?deployable=x', 400),
        ('/bitstreams?deployable=', 400),
        (f'/bitstreams?deployable={IMAGE}', 404),
        ('/bitstreams?vendor=a&vendor=b', 400),
    ],
)
def test_list_bitstreams_invalid_argument_is_refused(
    newest: Client, path: str, status: int
) -> None:
    assert newest.get(path).status == status
