# SPDX-License-Identifier: Apache-2.0
"""Deployables, as they are listed and programmed."""

import json
from typing import Any

import pytest

from cyborg_lite.exceptions import DriverError, ProgrammingTimedOut
from cyborg_lite.model.devices import Attribute
from tests.unit.api.conversation import HOST, MANAGER, Client, deployable

UNKNOWN = 'd5ca2f11-3108-4426-a11c-a959987565df'
IMAGE = '47840318-1387-4d41-8b72-61a23362641d'


def program(image: Any = IMAGE, **operation: Any) -> list[dict[str, Any]]:
    value = [{'image_uuid': image}]
    return [{'path': '/program', 'op': 'replace', 'value': value, **operation}]


def test_a_deployable_comes_bare(client: Client) -> None:
    conductor = client.conductor
    attributes = (
        Attribute(UNKNOWN, 1, 'rc', 'FPGA', conductor.now()),
        Attribute(IMAGE, 1, 'traits1', 'CUSTOM_FAKE_DEVICE', conductor.now()),
    )
    made = deployable(conductor, attributes=attributes)
    answer = client.as_(MANAGER).get(f'/deployables/{made.uuid}')
    assert answer.status == 200
    assert answer.json == {
        'uuid': made.uuid,
        'parent_id': None,
        'root_id': None,
        'name': 'compute-1_FakeDevice',
        'num_accelerators': 16,
        'device_id': 1,
        'attributes_list': '[{"rc": "FPGA"}, {"traits1": "CUSTOM_FAKE_DEVICE"}]',
        'rp_uuid': '853f07a6-19de-3dd6-b9f6-6c782daa3f7b',
        'driver_name': 'fake',
        'bitstream_id': None,
        'links': [
            {'href': f'{HOST}/v2/deployables/{made.uuid}', 'rel': 'self'},
            {'href': f'{HOST}/deployables/{made.uuid}', 'rel': 'bookmark'},
        ],
        'created_at': '2026-11-21T05:53:45.501846+00:00',
        'updated_at': None,
    }
    assert client.get('/deployables').json == {'deployables': [answer.json]}


def test_the_bookmark_can_be_followed(client: Client) -> None:
    made = deployable(client.conductor)
    shown = client.get(f'/deployables/{made.uuid}').json
    bookmark = shown['links'][1]['href'].removeprefix(HOST)
    client.prefix = ''
    assert client.get(bookmark).json == shown


def test_attributes_are_a_string_of_json(client: Client) -> None:
    made = deployable(client.conductor)
    text = client.get(f'/deployables/{made.uuid}').json['attributes_list']
    assert json.loads(text) == []


@pytest.mark.parametrize(
    ('field', 'value', 'picked'),
    [
        ('name', 'child', [1]),
        ('name', 'nobody', []),
        ('name', '', []),
        ('parent_uuid', '{0}', [1]),
        ('root_uuid', '{0}', [1]),
        ('root_uuid', '{1}', []),
        ('limit', '1', [0]),
        ('marker', '{0}', [1]),
    ],
)
def test_deployables_are_picked_by_filters(
    client: Client, field: str, value: str, picked: list[int]
) -> None:
    top = deployable(client.conductor, name='top')
    child = deployable(client.conductor, name='child', parent_id=1, root_id=1)
    uuids = [top.uuid, child.uuid]
    wanted = value.format(*uuids).upper() if 'uuid' in field else value.format(*uuids)
    answer = client.get(f'/deployables?filters.field={field}&filters.value={wanted}')
    assert answer.status == 200
    listed = [one['uuid'] for one in answer.json['deployables']]
    assert listed == [uuids[index] for index in picked]


@pytest.mark.parametrize(
    'query',
    [
        'filters.field=board&filters.value=x',
        'filters.field=availability&filters.value=x',
        'filters.field=interface_type&filters.value=x',
        'filters.field=instance_uuid&filters.value=x',
        'filters.field=parent_uuid&filters.value=x',
        'filters.field=name',
        'filters=x',
        'name=x',
        'limit=0',
    ],
)
def test_a_filter_that_would_be_ignored_is_refused(client: Client, query: str) -> None:
    assert client.get(f'/deployables?{query}').status == 400


@pytest.mark.parametrize(
    ('identifier', 'status'), [(UNKNOWN, 404), ('x', 400), ('%00', 400)]
)
def test_what_is_no_deployable_is_not_shown(
    client: Client, identifier: str, status: int
) -> None:
    assert client.get(f'/deployables/{identifier}').status == status
    answer = client.patch(f'/deployables/{identifier}/program', program())
    assert answer.status == status


@pytest.mark.parametrize('form', ['{0}/program', '{0}/program/{0}', '{0}/program/{1}'])
def test_a_programmed_deployable_comes_back(client: Client, form: str) -> None:
    """The SDK says the uuid twice."""
    uuid = deployable(client.conductor).uuid
    path = form.format(uuid, uuid.upper())
    answer = client.patch(f'/deployables/{path}', program(IMAGE.upper()))
    assert answer.status == 200
    assert answer.json['uuid'] == uuid
    assert answer.json['bitstream_id'] == IMAGE
    assert client.conductor.programmed == [(uuid, IMAGE)]


@pytest.mark.parametrize(
    'body',
    [
        None,
        {},
        [],
        5,
        'x',
        [5],
        [{}],
        program() * 2,
        program(path='/bitstream_id'),
        program(path='program'),
        program(op='add'),
        program(op='remove'),
        program(op=None),
        program(value=None),
        program(value=[]),
        program(value={}),
        program(value={'image_uuid': IMAGE}),
        program(value=[5]),
        program(value=[{}]),
        program(value=[{'image_uuid': IMAGE}] * 2),
        program(image=None),
        program(image=5),
        program(image=''),
        program(image='x'),
        [{'path': '/program', 'op': 'replace'}],
    ],
)
def test_programming_takes_one_image(client: Client, body: Any) -> None:
    uuid = deployable(client.conductor).uuid
    raw = b'null' if body is None else None
    answer = client.send('PATCH', f'/deployables/{uuid}/program', body, raw=raw)
    assert answer.status == 400
    assert not client.conductor.programmed


@pytest.mark.parametrize(
    ('refusal', 'status'),
    [
        (DriverError(reason='The region is busy.'), 500),
        (ProgrammingTimedOut(uuid=UNKNOWN), 504),
    ],
)
def test_a_failure_of_the_host_is_told(
    client: Client, refusal: Exception, status: int
) -> None:
    uuid = deployable(client.conductor).uuid
    client.conductor.refusal = refusal
    answer = client.patch(f'/deployables/{uuid}/program', program())
    assert (answer.status, answer.fault) == (status, str(refusal))


@pytest.mark.parametrize(
    ('method', 'path', 'status'),
    [
        ('POST', '', 405),
        ('DELETE', f'/{UNKNOWN}', 405),
        ('PATCH', f'/{UNKNOWN}', 405),
        ('GET', f'/{UNKNOWN}/program', 405),
        ('POST', f'/{UNKNOWN}/program', 405),
        ('PATCH', f'/{UNKNOWN}/explode', 404),
        ('PATCH', f'/{UNKNOWN}/program/{IMAGE}', 404),
        ('PATCH', f'/{UNKNOWN}/program/{UNKNOWN}/{UNKNOWN}', 404),
    ],
)
def test_nothing_else_can_be_done(
    client: Client, method: str, path: str, status: int
) -> None:
    answer = client.send(method, f'/deployables{path}', program())
    assert answer.status == status
