# SPDX-License-Identifier: Apache-2.0
"""Tests of listing and programming deployables."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from cyborg_lite import codec
from cyborg_lite.errors.bitstreams import ProgrammingTimedOut
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.inventory import typed_attributes
from tests.builders.device_rows import add_deployable
from tests.builders.patches import IMAGE, build_program_patch
from tests.support.api.conversation import HOST, MANAGER, Client

UNKNOWN = 'd5ca2f11-3108-4426-a11c-a959987565df'


def test_show_deployable_has_no_wrapper(client: Client) -> None:
    deployable = add_deployable(
        client.conductor.database,
        attributes={'rc': 'FPGA', 'traits1': 'CUSTOM_FAKE_DEVICE'},
        rp_uuid='853f07a6-19de-3dd6-b9f6-6c782daa3f7b',
        created_at=datetime(2026, 11, 21, 5, 53, 45, 501846, tzinfo=UTC),
    )
    answer = client.as_(MANAGER).get(f'/deployables/{deployable.uuid}')
    assert answer.status == 200
    assert answer.json == {
        'uuid': deployable.uuid,
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
            {'href': f'{HOST}/v2/deployables/{deployable.uuid}', 'rel': 'self'},
            {'href': f'{HOST}/deployables/{deployable.uuid}', 'rel': 'bookmark'},
        ],
        'created_at': '2026-11-21T05:53:45.501846+00:00',
        'updated_at': None,
    }
    assert client.get('/deployables').json == {'deployables': [answer.json]}


def test_deployable_newest_names_relatives_by_uuid(client: Client) -> None:
    database = client.conductor.database
    top = add_deployable(database, name='top')
    child = add_deployable(database, name='child', parent_id=1, root_id=1)
    newest = client.at('2.7')
    (device,) = newest.get('/devices').json['devices']
    for deployable, parent in ((top, None), (child, top.uuid)):
        view = newest.get(f'/deployables/{deployable.uuid}').json
        names = ('device_uuid', 'parent_uuid', 'root_uuid')
        assert [view[name] for name in names] == [device['uuid'], parent, parent]
        removed = {'device_id', 'parent_id', 'root_id'}
        assert removed.isdisjoint(view)
        older = client.at('2.6').get(f'/deployables/{deployable.uuid}').json
        assert removed <= older.keys()
        assert older.keys().isdisjoint(names)


def test_filter_of_deployables_by_device(client: Client) -> None:
    add_deployable(client.conductor.database)
    newest = client.at('2.7')
    (device,) = newest.get('/devices').json['devices']
    for uuid, count in ((device['uuid'].upper(), 1), (UNKNOWN, 0)):
        matches = newest.get(f'/deployables?device_uuid={uuid}').json['deployables']
        assert len(matches) == count
    for query in ('device_uuid=1', 'device_id=1'):
        assert newest.get(f'/deployables?{query}').status == 400
    assert client.at('2.6').get('/deployables?device_id=1').status == 200
    assert client.at('2.6').get(f'/deployables?device_uuid={UNKNOWN}').status == 400


def test_show_deployable_bookmark_can_be_followed(client: Client) -> None:
    deployable = add_deployable(client.conductor.database)
    view = client.get(f'/deployables/{deployable.uuid}').json
    bookmark = view['links'][1]['href'].removeprefix(HOST)
    client.prefix = ''
    assert client.get(bookmark).json == view


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
def test_list_deployables_filters(
    client: Client, field: str, value: str, picked: list[int]
) -> None:
    top = add_deployable(client.conductor.database, name='top')
    child = add_deployable(
        client.conductor.database, name='child', parent_id=1, root_id=1
    )
    uuids = [top.uuid, child.uuid]
    filter_value = (
        value.format(*uuids).upper() if 'uuid' in field else value.format(*uuids)
    )
    answer = client.get(
        f'/deployables?filters.field={field}&filters.value={filter_value}'
    )
    assert answer.status == 200
    listed = [view['uuid'] for view in answer.json['deployables']]
    assert listed == [uuids[index] for index in picked]


@pytest.mark.parametrize(
    'query',
    [
        'filters.field=board&filters.value=x',
        'filters.field=parent_uuid&filters.value=x',
        'name=x',
    ],
)
def test_list_deployables_unknown_filter_returns_400(
    client: Client, query: str
) -> None:
    assert client.get(f'/deployables?{query}').status == 400


@pytest.mark.parametrize('identifier', ['x', '%00'])
def test_program_malformed_uuid_returns_400(client: Client, identifier: str) -> None:
    answer = client.patch(f'/deployables/{identifier}/program', build_program_patch())
    assert answer.status == 400


@pytest.mark.parametrize('form', ['{0}/program', '{0}/program/{0}', '{0}/program/{1}'])
def test_program_deployable_returns_deployable(client: Client, form: str) -> None:
    """The SDK repeats the uuid in the path."""
    deployable = add_deployable(client.conductor.database, bitstream_id=IMAGE)
    client.conductor.answers['program_deployable'] = deployable
    uuid = deployable.uuid
    path = form.format(uuid, uuid.upper())
    answer = client.patch(f'/deployables/{path}', build_program_patch(IMAGE.upper()))
    assert answer.status == 200
    assert answer.json['uuid'] == uuid
    assert answer.json['bitstream_id'] == IMAGE
    for name, value in (('uuid', uuid), ('image_uuid', IMAGE)):
        arguments = client.conductor.list_arguments('program_deployable', name)
        assert arguments == [value]


@pytest.mark.parametrize(
    'body',
    [
        {},
        [],
        [5],
        [{}],
        build_program_patch() * 2,
        build_program_patch(path='/bitstream_id'),
        build_program_patch(op='add'),
        build_program_patch(value=[]),
        build_program_patch(value={'image_uuid': IMAGE}),
        build_program_patch(value=[5]),
        build_program_patch(value=[{}]),
        build_program_patch(value=[{'image_uuid': IMAGE}] * 2),
        build_program_patch(image=5),
        build_program_patch(image='x'),
        [{'path': '/program', 'op': 'replace'}],
    ],
)
def test_program_deployable_requires_one_image(client: Client, body: Any) -> None:
    uuid = add_deployable(client.conductor.database).uuid
    answer = client.patch(f'/deployables/{uuid}/program', body)
    assert answer.status == 400
    assert not client.conductor.list_arguments('program_deployable', 'uuid')


@pytest.mark.parametrize(
    ('refusal', 'status'),
    [
        (DriverError(reason='The region is busy.'), 500),
        (ProgrammingTimedOut(uuid=UNKNOWN), 504),
    ],
)
def test_program_deployable_agent_failure_is_reported(
    client: Client, refusal: Exception, status: int
) -> None:
    uuid = add_deployable(client.conductor.database).uuid
    client.conductor.answers['program_deployable'] = refusal
    answer = client.patch(f'/deployables/{uuid}/program', build_program_patch())
    assert (answer.status, answer.fault) == (status, str(refusal))


@pytest.mark.parametrize(
    'path', ['explode', f'program/{IMAGE}', f'program/{UNKNOWN}/{UNKNOWN}']
)
def test_program_other_path_returns_404(client: Client, path: str) -> None:
    answer = client.patch(f'/deployables/{UNKNOWN}/{path}', build_program_patch())
    assert answer.status == 404


def test_attributes_are_one_list_and_text_before(client: Client) -> None:
    pairs = {'memory_mib': 'large', 'rack': '7', 'trait': 'CUSTOM_"A"'}
    typed = (typed_attributes.MEMORY.of(81920), typed_attributes.SAME_CARD.of(False))
    uuid = add_deployable(
        client.conductor.database,
        attributes=pairs,
        typed_attributes=[codec.dump(attribute) for attribute in typed],
    ).uuid
    for path in ('/deployables', f'/deployables/{uuid}'):
        for version in ('2.4', '2.0'):
            body = client.at(version).get(path).json
            (deployable,) = body.get('deployables', [body])
            text = json.dumps([{key: value} for key, value in pairs.items()])
            assert deployable['attributes_list'] == text
            assert 'attributes' not in deployable
        for version in ('2.5', '2.7'):
            body = client.at(version).get(path).json
            (deployable,) = body.get('deployables', [body])
            assert 'attributes_list' not in deployable
            values = {item['name']: item['value'] for item in deployable['attributes']}
            # ``0 == False`` in Python.
            expected = {**pairs, 'memory_mib': 81920, 'same_card': False}
            assert json.dumps(values, sort_keys=True) == json.dumps(
                expected, sort_keys=True
            )
