# SPDX-License-Identifier: Apache-2.0
"""Tests of the largest page of collections, since microversion 2.5."""

from functools import partial
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from sqlalchemy import update

from cyborg_lite.db.core.tables import AttachHandle, Device
from cyborg_lite.db.devices import cleanings
from cyborg_lite.db.inventory import device_events
from cyborg_lite.model.arqs.usages import UnitUsage, UsageReport
from cyborg_lite.model.bitstreams.listing import ListedBitstream
from cyborg_lite.model.devices.cleaning import CleanState, UnitSelection
from cyborg_lite.model.devices.events import DeviceEventKind
from tests.builders.device_rows import add_device
from tests.builders.service_rows import add_service_row
from tests.builders.unclean_units import release_unit
from tests.support.api.conversation import Client


@pytest.fixture
def small() -> Client:
    """Return a client of a service with pages of two elements, and five devices."""
    client = Client().configure(max_limit=2)
    for _ in range(5):
        add_device(client.conductor.database)
    return client


@pytest.mark.parametrize(
    ('query', 'number'),
    [('', 2), ('limit=1', 1), ('limit=2', 2), ('limit=3', 2), ('limit=' + '9' * 40, 2)],
)
def test_page_has_at_most_maximum(small: Client, query: str, number: int) -> None:
    answer = small.at('2.5').get(f'/devices?{query}')
    assert len(answer.json['devices']) == number
    assert answer.json['devices_links'][0]['rel'] == 'next'


def walk(client: Client, path: str, query: str = '', key: str = '') -> list[Any]:
    """Return the elements of all pages; by default the path ends with the key."""
    key, elements = key or path.rpartition('/')[2], []
    following: str | None = query
    while following is not None:
        answer = client.get(f'{path}?{following}').json
        assert len(answer[key]) <= 2
        elements += answer[key]
        links = answer.get(f'{key}_links')
        following = urlsplit(links[0]['href']).query if links else None
    return elements


def test_next_links_keep_filter_and_order(small: Client) -> None:
    database = small.conductor.database
    gpus = [add_device(database, type='GPU').uuid for _ in range(3)]
    for host, state in (('a', 'up'), ('b', 'down'), ('c', 'up'), ('d', 'up')):
        add_service_row(database, host, state)
    query = 'limit=2&sort_dir=desc'
    devices = walk(small.at('2.4'), '/devices', f'{query}&type=GPU')
    assert [device['uuid'] for device in devices] == gpus[::-1]
    hosts = walk(small.at('2.7'), '/hosts', f'{query}&agent_state=up')
    assert [host['name'] for host in hosts] == ['d', 'c', 'a']


def test_cursor_is_refused_by_older_microversion(small: Client) -> None:
    (link,) = small.at('2.5').get('/devices').json['devices_links']
    path = f'/devices?{urlsplit(link["href"]).query}'
    assert small.at('2.5').get(path).status == 200
    assert small.at('2.4').get(path).status == 400


def test_device_events_are_paged_latest_first(small: Client) -> None:
    uuid = next(iter(small.conductor.devices))
    for number in range(5):
        add = partial(device_events.add_events, value=str(number))
        is_device = Device.uuid == uuid
        small.conductor.database.write(add, is_device, DeviceEventKind.MODE_CHANGED)
    events = walk(small.at('2.7'), f'/devices/{uuid}/events')
    assert [event['value'] for event in events] == list('43210')
    assert small.at('2.7').get(f'/devices/{uuid}/events?marker={uuid}').status == 400


def test_device_cleanings_are_paged_latest_first(small: Client) -> None:
    database = small.conductor.database
    uuid = release_unit(database)
    used = update(AttachHandle).values(clean_state=CleanState.USED)
    for actor in 'abcde':
        database.write(lambda session: session.execute(used))
        database.write(cleanings.accept_units, UnitSelection(uuid), actor)
    path = f'/devices/{uuid}/cleanings'
    assert [item['actor'] for item in walk(small.at('2.7'), path)] == list('edcba')
    answer = small.at('2.7').get(f'{path}?limit=1').json
    assert (len(answer['cleanings']), len(answer['units'])) == (1, 1)


def test_access_list_of_profile_is_paged(small: Client) -> None:
    small.create_profile('dp1')
    names = list('edcba')
    path = '/device_profiles/dp1/access'
    answer = small.at('2.5').post(path, {'projects': names})
    assert answer.json['projects'] == names[:2]
    assert walk(small.at('2.5'), path, key='projects') == names
    for text in (str(UUID(int=1)), 'x'):
        assert small.at('2.5').get(f'{path}?marker={text}').status == 400
    assert small.at('2.4').get(path).json == {'projects': names}
    assert small.at('2.4').get(f'{path}?limit=1').status == 400


def test_usages_are_paged_and_sorted(small: Client) -> None:
    usages = [
        UnitUsage(None if name == 'c' else name, 'PGPU', 'gpu', hours * 3_600_000)
        for hours, name in enumerate('dabce')
    ]
    small.conductor.answers['sum_usages'] = UsageReport(tuple(usages), 2**40)
    for query, expected in {
        '': ['d', 'a', 'b', None, 'e'],
        'sort_key=project_id': ['a', 'b', 'd', 'e', None],
        'sort_key=unit_hours&sort_dir=desc': ['e', None, 'b', 'a', 'd'],
    }.items():
        listed = walk(small.at('2.7'), '/usages', query)
        assert [item['project_id'] for item in listed] == expected
    for query in ('sort_key=milliseconds', f'marker={UUID(int=1)}', 'marker=x'):
        assert small.at('2.7').get(f'/usages?{query}').status == 400


def test_bitstreams_are_paged_since_2_5(small: Client) -> None:
    names = 'cab'
    small.conductor.answers['list_bitstreams'] = tuple(
        ListedBitstream(str(UUID(int=number)), name, 7, {}, ())
        for number, name in enumerate(names)
    )
    for query, expected in {'': 'cab', 'sort_key=image_name': 'abc'}.items():
        listed = walk(small.at('2.5'), '/bitstreams', query)
        assert ''.join(item['image_name'] for item in listed) == expected
    older = small.at('2.4').get('/bitstreams').json
    assert (len(older['bitstreams']), list(older)) == (3, ['bitstreams'])
    assert small.at('2.4').get('/bitstreams?limit=1').status == 400


def test_older_microversion_lists_all_elements(small: Client) -> None:
    for query in ('', 'limit=4'):
        answer = small.at('2.4').get(f'/devices?{query}')
        assert len(answer.json['devices']) == (4 if query else 5)
