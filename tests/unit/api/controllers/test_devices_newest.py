# SPDX-License-Identifier: Apache-2.0
"""Devices at microversion 2.4: how they are, who uses them, and why they rest."""

from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.api.app import assemble
from cyborg_lite.model.devices import DeviceStatus
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.usage import Usage
from tests.unit.api.conversation import (
    HOST,
    MANAGER,
    Client,
    configuration,
    deployable,
    device,
)

UNKNOWN = 'd5ca2f11-3108-4426-a11c-a959987565df'
ADDED = {'status_reason', 'health', 'health_reason', 'arqs_count', 'arqs', 'usage'}


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.4')


def replace(path: str, value: Any) -> dict[str, Any]:
    return {'op': 'replace', 'path': path, 'value': value}


def test_a_device_says_how_it_is_and_who_uses_it(newest: Client) -> None:
    made = device(
        newest.conductor,
        health=Health.FAILED,
        health_reason='XID 79',
        status_reason='to be replaced',
        arqs=(UNKNOWN,),
    )
    shown = newest.get(f'/devices/{made.uuid}').json
    assert {name: shown[name] for name in ADDED} == {
        'status_reason': 'to be replaced',
        'health': 'failed',
        'health_reason': 'XID 79',
        'arqs_count': 1,
        'arqs': [UNKNOWN],
        'usage': None,
    }
    assert newest.get('/devices').json['devices'] == [shown]
    older = newest.at('2.3').get(f'/devices/{made.uuid}').json
    assert shown.keys() - older.keys() == ADDED


def test_a_device_tells_its_figures(newest: Client) -> None:
    usage = Usage(busy_percent=12.5, memory_used=2**40, counters={'ecc': 3})
    made = device(newest.conductor, usage=usage)
    shown = newest.get(f'/devices/{made.uuid}').json['usage']
    known = {name: value for name, value in shown.items() if value is not None}
    assert known == {
        'busy_percent': 12.5,
        'memory_used': 2**40,
        'counters': {'ecc': 3},
    }


def test_a_manager_sees_how_many_use_a_device_and_not_who(newest: Client) -> None:
    made = device(newest.conductor, arqs=(UNKNOWN,))
    answer = newest.as_(MANAGER).get(f'/devices/{made.uuid}')
    assert answer.json['arqs_count'] == 1
    assert 'arqs' not in answer.json
    assert UNKNOWN.encode() not in answer.body


@pytest.mark.parametrize(
    ('query', 'count'), [('health=failed', 1), ('model=FakeDevice', 2), ('model=x', 0)]
)
def test_newer_filters(newest: Client, query: str, count: int) -> None:
    device(newest.conductor)
    device(newest.conductor, health=Health.FAILED)
    assert len(newest.get(f'/devices?{query}').json['devices']) == count
    assert newest.at('2.3').get(f'/devices?{query}').status == 400


@pytest.mark.parametrize('query', ['limit=1', 'filters.field=limit&filters.value=1'])
def test_a_full_page_links_to_the_next(newest: Client, query: str) -> None:
    first, second = device(newest.conductor), device(newest.conductor)
    page = newest.get(f'/devices?{query}&type=FPGA').json
    (link,) = page['devices_links']
    assert link['rel'] == 'next'
    following = newest.get(link['href'].removeprefix(f'{HOST}/v2')).json
    assert [one['uuid'] for one in following['devices']] == [second.uuid]
    assert page['devices'][0]['uuid'] == first.uuid
    assert 'devices_links' not in newest.at('2.3').get(f'/devices?{query}').json


def test_deployables_are_picked_by_plain_arguments_and_paged(newest: Client) -> None:
    made = [deployable(newest.conductor, name=name) for name in ('a', 'b')]
    picked = newest.get('/deployables?name=b&driver_name=fake').json['deployables']
    assert [one['uuid'] for one in picked] == [made[1].uuid]
    assert newest.at('2.3').get('/deployables?name=b').status == 400
    assert newest.get('/deployables?parent_uuid=x').status == 400
    (link,) = newest.get('/deployables?limit=1').json['deployables_links']
    assert link['href'] == f'{HOST}/v2/deployables?limit=1&marker={made[0].uuid}'


def test_attributes_are_paged(newest: Client) -> None:
    deployable(newest.conductor)
    for key in 'ab':
        body = {'deployable_id': 1, 'key': key, 'value': 'x'}
        assert newest.post('/attributes', body).status == 201
    (link,) = newest.get('/attributes?limit=1').json['attributes_links']
    following = newest.get(link['href'].removeprefix(f'{HOST}/v2')).json
    assert [one['key'] for one in following['attributes']] == ['b']


# --- maintenance ---


def test_maintenance_has_a_reason_until_it_ends(newest: Client) -> None:
    path = f'/devices/{device(newest.conductor).uuid}'
    patch = [replace('/status', 'maintaining'), replace('/reason', 'hot')]
    answer = newest.patch(path, patch)
    assert answer.status == 200
    assert (answer.json['status'], answer.json['status_reason']) == (
        'maintaining',
        'hot',
    )
    assert newest.get(path).json == answer.json
    ended = newest.patch(path, [replace('/status', 'enabled')]).json
    assert (ended['status'], ended['status_reason']) == ('enabled', '')


@pytest.mark.parametrize(
    'patch',
    [
        [],
        {},
        [replace('/reason', 'hot')],
        [replace('/status', 'gone')],
        [replace('/status', 5)],
        [replace('/status', 'enabled'), replace('/reason', 'hot')],
        [replace('/status', 'enabled'), replace('/status', 'enabled')],
        [replace('/status', 'maintaining'), replace('/reason', 'a\x00')],
        [replace('/status', 'maintaining'), replace('/reason', 'x' * 256)],
        [replace('/type', 'GPU')],
        [{'op': 'remove', 'path': '/status', 'value': ''}],
        [{'op': 'replace', 'path': '/status'}],
    ],
)
def test_a_patch_that_makes_no_sense_changes_nothing(
    newest: Client, patch: Any
) -> None:
    made = device(newest.conductor)
    assert newest.patch(f'/devices/{made.uuid}', patch).status == 400
    assert newest.conductor.devices[made.uuid] == made


def test_an_older_client_and_an_unknown_device(newest: Client) -> None:
    patch = [replace('/status', 'maintaining')]
    made = device(newest.conductor)
    assert newest.at('2.3').patch(f'/devices/{made.uuid}', patch).status == 405
    assert newest.patch(f'/devices/{UNKNOWN}', patch).status == 404
    assert made.status is DeviceStatus.ENABLED


def test_who_may_not_disable_may_not_patch_so(newest: Client, tmp_path: Path) -> None:
    rules = tmp_path / 'policy.yaml'
    rules.write_text('"cyborg:device:disable": "!"')
    conf = configuration()
    assemble(conf, newest.conductor)
    conf.set_override('policy_file', str(rules), group='oslo_policy')
    ruled = Client(newest.conductor, assemble(conf, newest.conductor), version='2.4')
    path = f'/devices/{device(newest.conductor).uuid}'
    assert ruled.patch(path, [replace('/status', 'maintaining')]).status == 403
    assert ruled.patch(path, [replace('/status', 'enabled')]).status == 200
