# SPDX-License-Identifier: Apache-2.0
"""Bitstreams, as an operator looks for the one to load."""

import pytest

from cyborg_lite.model.bitstream_list import ListedBitstream
from tests.unit.api.conversation import MANAGER, Client, deployable

IMAGE = '47840318-1387-4d41-8b72-61a23362641d'


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.4')


def test_an_image_says_what_it_is_and_why_it_is_refused(newest: Client) -> None:
    uuid = deployable(newest.conductor).uuid
    newest.conductor.bitstreams[uuid] = ListedBitstream(
        IMAGE,
        'nlb',
        7,
        {'bs-name': 'nlb-0', 'vendor': 'intel', 'function_uuid': 'ab'},
        ('It is for board u250, not pac.',),
    )
    answer = newest.get(f'/bitstreams?deployable={uuid.upper()}')
    (shown,) = answer.json['bitstreams']
    assert answer.status == 200
    said = {key: value for key, value in shown.items() if value is not None}
    assert said == {
        'image_uuid': IMAGE,
        'image_name': 'nlb',
        'size': 7,
        'name': 'nlb-0',
        'vendor': 'intel',
        'function_uuid': 'ab',
        'accepted': False,
        'reasons': ['It is for board u250, not pac.'],
    }
    assert {'region_uuid', 'shell_id', 'driver_path'} <= shown.keys()


def test_filters_reach_who_knows_the_images(newest: Client) -> None:
    query = 'vendor=intel&board=a&region=b&function=c'
    assert newest.get(f'/bitstreams?{query}').json == {'bitstreams': []}
    # As an operator's form sends it that was not filled in.
    assert newest.get('/bitstreams?vendor=&board=&region=&function=').status == 200
    asked = {'vendor': 'intel', 'board': 'a', 'region': 'b', 'function': 'c'}
    assert newest.conductor.bitstream_filters == [asked, {}]


@pytest.mark.parametrize(
    ('path', 'status'),
    [
        ('/bitstreams?deployable=x', 400),
        ('/bitstreams?deployable=', 400),
        (f'/bitstreams?deployable={IMAGE}', 404),
        ('/bitstreams?colour=red', 400),
        ('/bitstreams?vendor=a&vendor=b', 400),
        (f'/bitstreams/{IMAGE}', 404),
    ],
)
def test_what_makes_no_sense_is_said(newest: Client, path: str, status: int) -> None:
    assert newest.get(path).status == status


def test_others_do_not_see_them(newest: Client) -> None:
    """Images of all projects are among them."""
    assert newest.as_(MANAGER).get('/bitstreams').status == 403
    assert newest.at('2.3').get('/bitstreams').status == 406
