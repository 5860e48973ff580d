# SPDX-License-Identifier: Apache-2.0
"""Tests of the argument fields of lists and objects, since microversion 2.5."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from cyborg_lite.model.bitstreams.listing import ListedBitstream
from cyborg_lite.model.devices.events import DeviceEvent, DeviceEventKind
from cyborg_lite.model.hosts.services import CONDUCTOR
from cyborg_lite.model.hosts.topology import HostTopology
from tests.builders.device_rows import add_deployable, add_device
from tests.builders.service_rows import add_service_row
from tests.support.api.conversation import MEMBER, Client


@pytest.fixture
def newest(client: Client) -> Client:
    """Return a client of a service with an object of each kind."""
    client.create_profile()
    client.as_(MEMBER).create_arqs()
    add_device(client.conductor.database)
    add_deployable(client.conductor.database)
    return client.at('2.7')


KINDS = [
    ('/device_profiles', 'device_profiles', 'groups'),
    ('/accelerator_requests', 'arqs', 'state'),
    ('/devices', 'devices', 'std_board_info'),
    ('/deployables', 'deployables', 'attributes'),
]


def read(client: Client, path: str, key: str, query: str) -> tuple[Any, Any]:
    """Return the only object of a list, and the same object alone."""
    (uuid,) = [item['uuid'] for item in client.get(path).json[key]]
    (element,) = client.get(f'{path}?{query}').json[key]
    single = client.get(f'{path}/{uuid}?{query}').json
    return element, single.get('device_profile', single)


@pytest.mark.parametrize(('path', 'key', 'field'), KINDS)
def test_fields_select_fields_and_links(
    newest: Client, path: str, key: str, field: str
) -> None:
    (complete,) = newest.get(path).json[key]
    expected = {name: complete[name] for name in ('uuid', field, 'links')}
    for query in (f'fields=uuid,{field}', f'fields=uuid&fields={field}'):
        assert read(newest, path, key, query) == (expected, expected)


@pytest.mark.parametrize(('path', 'key', 'field'), KINDS)
def test_unknown_field_names_nearest(
    newest: Client, path: str, key: str, field: str
) -> None:
    uuid = newest.get(path).json[key][0]['uuid']
    for target in (path, f'{path}/{uuid}'):
        answer = newest.get(f'{target}?fields=uuid,{field}z')
        assert (answer.status, f'mean {field}?' in answer.fault) == (400, True)
        assert newest.get(f'{target}?fields=').status == 400


@pytest.mark.parametrize(('path', 'key', 'field'), KINDS)
def test_older_microversion_does_not_know_fields(
    newest: Client, path: str, key: str, field: str
) -> None:
    uuid = newest.get(path).json[key][0]['uuid']
    for target in (path, f'{path}/{uuid}'):
        answer = newest.at('2.4').get(f'{target}?fields=uuid')
        assert (answer.status, 'argument fields' in answer.fault) == (400, True)


def test_fields_of_operation(newest: Client) -> None:
    operation = newest.post('/operations', {'kind': 'audit'}).json
    expected = {'kind': 'audit', 'links': operation['links']}
    assert newest.get('/operations?fields=kind').json['operations'] == [expected]
    path = f'/operations/{operation["uuid"]}?fields=kind'
    assert newest.get(path).json == expected


def test_unlike_field_is_refused_with_valid_fields(newest: Client) -> None:
    answer = newest.get('/devices?fields=UUID')
    assert answer.fault.startswith('Unknown field UUID. Valid fields: arqs, arqs_count')
    assert newest.at('2.5').get('/devices?fields=usage_age').status == 200


def test_next_link_keeps_fields(newest: Client) -> None:
    path = '/devices?limit=1&fields=uuid&fields=type'
    (link,) = newest.get(path).json['devices_links']
    query = parse_qs(urlsplit(link['href']).query)
    assert query['fields'] == ['uuid,type']
    assert newest.get(f'/devices?{urlsplit(link["href"]).query}').status == 200


def test_fields_of_change_are_refused(newest: Client) -> None:
    uuid = newest.get('/devices').json['devices'][0]['uuid']
    body = [{'op': 'replace', 'path': '/status', 'value': 'maintaining'}]
    assert newest.patch(f'/devices/{uuid}?fields=uuid', body).status == 400


def test_times_of_arqs_are_read_only_if_requested(newest: Client) -> None:
    for query in ('', '?fields=state_times', '?fields=state'):
        assert newest.get(f'/accelerator_requests{query}').status == 200
    queries = newest.conductor.list_arguments('list_arqs', 'query')
    assert [query.detailed for query in queries[-3:]] == [True, True, False]


UUID = '00000000-0000-4000-8000-000000000001'
LISTS = [
    ('/services', 'services', 'state'),
    ('/bitstreams', 'bitstreams', 'vendor'),
    ('/devices/{device}/events', 'events', 'kind'),
]


@pytest.fixture
def latest(newest: Client) -> Client:
    """Return a client; each of its lists has an element."""
    now = datetime(2026, 11, 21, tzinfo=UTC)
    add_service_row(newest.conductor.database, 'ctl-1', binary=CONDUCTOR)
    newest.conductor.answers |= {
        'list_bitstreams': (ListedBitstream(UUID, 'image', 5, {'vendor': 'x'}, ()),),
        'list_device_events': (DeviceEvent(DeviceEventKind.ADDED, now, 'compute-1'),),
    }
    return newest


@pytest.mark.parametrize(('path', 'key', 'field'), LISTS)
def test_fields_of_lists(latest: Client, path: str, key: str, field: str) -> None:
    path = path.format(device=next(iter(latest.conductor.devices)))
    (complete,) = latest.get(path).json[key]
    assert latest.get(f'{path}?fields={field}').json[key] == [{field: complete[field]}]
    assert latest.get(f'{path}?fields={field}z').status == 400


def test_fields_of_topology(latest: Client) -> None:
    topology = HostTopology('compute-1', None, ())
    latest.conductor.answers['show_host_topology'] = topology
    path = '/hosts/compute-1/topology'
    links = latest.get(path).json['links']
    answer = latest.get(f'{path}?fields=agent_state').json
    assert answer == {'agent_state': None, 'links': links}
    assert 'numa_nodes' in latest.get(f'{path}?fields=numa_nodes').json
