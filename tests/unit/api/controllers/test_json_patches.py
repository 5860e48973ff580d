# SPDX-License-Identifier: Apache-2.0
"""Tests of JSON Patch (RFC 6902) as the body of every PATCH of one object."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.modes import DevicePlan, ModePlan
from cyborg_lite.model.devices.reconfiguration import (
    DeviceConfiguration,
    Reconfiguration,
    ReconfigurationState,
)
from tests.builders.device_rows import add_deployable, add_device
from tests.builders.patches import IMAGE, build_replace_patch
from tests.support.api.conversation import Answer, Client

GPU: Final = {'resources:PGPU': '1'}
FPGA: Final = {'resources:FPGA': '2', 'trait:CUSTOM_A': 'required'}
PROFILE: Final = '/device_profiles/dp1'
PATCH: Final = {'Content-Type': 'application/json-patch+json'}


@pytest.fixture
def newest(client: Client) -> Client:
    """Return a client of a service with a profile of two groups."""
    body = [{'name': 'dp1', 'groups': [GPU, FPGA]}]
    assert client.at('2.7').post('/device_profiles', body).status == 201
    return client.at('2.7')


# Any: JSON.
def build(op: str, path: str, *value: Any, **members: Any) -> dict[str, Any]:
    """Return an operation."""
    operation = {'op': op, 'path': path, **members}
    return {**operation, 'value': value[0]} if value else operation


def move(op: str, source: str, path: str) -> dict[str, Any]:
    return build(op, path, **{'from': source})


def send(client: Client, path: str, *operations: Any, match: str = '*') -> Answer:
    media = {**PATCH, 'If-Match': match}
    if path.startswith(('/hosts', '/deployables')):
        del media['If-Match']
    return client.send('PATCH', path, list(operations), headers=media)


def read_profile(client: Client) -> dict[str, Any]:
    profile: dict[str, Any] = client.get(PROFILE).json['device_profile']
    return profile


def read_error(answer: Answer) -> tuple[int, str, str]:
    """Return status, code and pointer of an error."""
    (error,) = answer.json['errors']
    return error['status'], error['code'], error['pointer']


# --- the operations, on the lists and maps of a profile ---


@pytest.mark.parametrize(
    ('operations', 'groups'),
    [
        ([build('add', '/groups/1', GPU)], [GPU, GPU, FPGA]),
        ([build('add', '/groups/-', GPU)], [GPU, FPGA, GPU]),
        ([build('add', '/groups/0/trait:CUSTOM_B', 'forbidden')],
         [{**GPU, 'trait:CUSTOM_B': 'forbidden'}, FPGA]),
        ([build('replace', '/groups/1/resources:FPGA', 1)],
         [GPU, {**FPGA, 'resources:FPGA': '1'}]),
        ([build('remove', '/groups/1/trait:CUSTOM_A')], [GPU, {'resources:FPGA': '2'}]),
        ([build('remove', '/groups/0')], [FPGA]),
        ([move('move', '/groups/0', '/groups/-')], [FPGA, GPU]),
        ([move('copy', '/groups/0', '/groups/-')], [GPU, FPGA, GPU]),
        ([move('copy', '/groups/1/trait:CUSTOM_A', '/groups/0/trait:CUSTOM_A')],
         [{**GPU, 'trait:CUSTOM_A': 'required'}, FPGA]),
        ([build('test', '/groups/1/resources:FPGA', '2'), build('remove', '/groups/0')],
         [FPGA]),
    ],
)  # fmt: skip
def test_every_operation_changes_groups(
    newest: Client, operations: list[Any], groups: list[Any]
) -> None:
    answer = send(newest, PROFILE, *operations)
    assert (answer.status, answer.json['device_profile']['groups']) == (200, groups)
    assert read_profile(newest) == answer.json['device_profile']


def test_operations_apply_one_after_the_other(newest: Client) -> None:
    operations = [
        move('copy', '/name', '/description'),
        build('test', '/description', 'dp1'),
        build('replace', '/name', 'dp2'),
        build('replace', '/enabled', False),
    ]
    changed = send(newest, PROFILE, *operations).json['device_profile']
    assert (changed['name'], changed['description']) == ('dp2', 'dp1')
    assert (changed['enabled'], changed['generation']) == (False, 1)
    removed = send(newest, '/device_profiles/dp2', build('remove', '/description'))
    assert removed.json['device_profile']['description'] is None


def test_whole_object_may_be_replaced(newest: Client) -> None:
    profile = {**read_profile(newest), 'groups': [GPU]}
    assert send(newest, PROFILE, build('replace', '', profile)).status == 200
    assert read_profile(newest)['groups'] == [GPU]
    answer = send(newest, PROFILE, build('replace', '', {**profile, 'uuid': 'x'}))
    assert answer.status == 400


@pytest.mark.parametrize('operations', [[], [build('test', '/name', 'dp1')]])
def test_patch_without_change_keeps_generation(
    newest: Client, operations: list[Any]
) -> None:
    before = read_profile(newest)
    answer = send(newest, PROFILE, *operations)
    assert (answer.status, answer.json['device_profile']) == (200, before)


# --- refusals ---


@pytest.mark.parametrize(
    ('path', 'value'),
    [
        ('/name', 'dp2'),
        ('/groups/0/resources:PGPU', 1),  # groups have text
        ('/groups/2', GPU),
        ('/enabled', 1),  # unlike in Python, 1 is not true
        ('/colour', None),
        ('/generation', 1),
        ('', {}),
    ],
)
def test_failed_test_changes_nothing(newest: Client, path: str, value: Any) -> None:
    before = read_profile(newest)
    change = build('replace', '/is_public', False)
    answer = send(newest, PROFILE, change, build('test', path, value))
    code = 'cyborg_lite.request.patch_test_failed'
    assert read_error(answer) == (409, code, '/1/path')
    assert (path or 'the object') in answer.fault
    assert read_profile(newest) == before


_INVALID: Final = 'cyborg_lite.request.invalid_json_patch'
_SCHEMA: Final = 'cyborg_lite.request.invalid_body'


@pytest.mark.parametrize(
    ('operation', 'code', 'pointer'),
    [
        (build('append', '/name', 'x'), _SCHEMA, '/1/op'),
        (build('Add', '/name', 'x'), _SCHEMA, '/1/op'),
        ({'op': 'remove'}, _SCHEMA, '/1/path'),
        (build('add', '/name'), _SCHEMA, '/1/value'),
        (build('copy', '/name'), _SCHEMA, '/1/from'),
        (build('add', 'name', 'x'), _SCHEMA, '/1/path'),
        (build('add', '/name~2', 'x'), _SCHEMA, '/1/path'),
        (move('move', '/~', '/name'), _SCHEMA, '/1/from'),
        (build('add', f'/{"a" * 1024}', 'x'), _SCHEMA, '/1/path'),
        (build('remove', '/colour'), _INVALID, '/1/path'),
        (build('replace', '/colour', 1), _INVALID, '/1/path'),
        (build('add', '/groups/01', GPU), _INVALID, '/1/path'),
        (build('add', '/groups/-1', GPU), _INVALID, '/1/path'),
        (build('add', '/groups/3', GPU), _INVALID, '/1/path'),
        (build('add', f'/groups/{"9" * 900}', GPU), _INVALID, '/1/path'),
        (build('remove', f'/groups/{"9" * 900}'), _INVALID, '/1/path'),
        (build('remove', '/groups/-'), _INVALID, '/1/path'),
        (build('replace', '/name/0', 'x'), _INVALID, '/1/path'),
        (build('remove', ''), _INVALID, '/1/path'),
        (build('replace', '', []), _INVALID, '/1/path'),
        (move('move', '/groups', '/groups/0'), _INVALID, '/1/path'),
        (move('copy', '/colour', '/name'), _INVALID, '/1/path'),
    ],
)  # fmt: skip
def test_invalid_operation_is_named(
    newest: Client, operation: Any, code: str, pointer: str
) -> None:
    before = read_profile(newest)
    change = build('replace', '/enabled', False)
    answer = send(newest, PROFILE, change, operation)
    assert read_error(answer) == (400, code, pointer)
    assert read_profile(newest) == before


@pytest.mark.parametrize(
    'operation',
    [
        build('remove', '/groups'),
        build('remove', '/name'),
        build('replace', '/enabled', 1),
        build('replace', '/groups/0/resources:PGPU', 0),
    ],
)
def test_invalid_result_is_refused(newest: Client, operation: Any) -> None:
    before = read_profile(newest)
    assert send(newest, PROFILE, operation).status == 400
    assert read_profile(newest) == before


@pytest.mark.parametrize(
    'operation',
    [
        build('add', '/colour', 'red'),
        build('replace', '/generation', 7),
        build('remove', '/uuid'),
        build('move', '/links', **{'from': '/name'}),
    ],
)
def test_field_that_cannot_change_is_named(newest: Client, operation: Any) -> None:
    change = build('replace', '/enabled', False)
    answer = send(newest, PROFILE, change, operation)
    assert read_error(answer) == (400, _INVALID, '/1/path')
    assert f'{operation["path"]}: cannot be changed' in answer.fault


def test_number_of_operations_is_limited(newest: Client) -> None:
    test = build('test', '/name', 'dp1')
    assert send(newest, PROFILE, *[test] * 100).status == 200
    assert read_error(send(newest, PROFILE, *[test] * 101))[0] == 400


def test_copies_cannot_grow_without_limit(newest: Client) -> None:
    doubling = [build('add', '/a', ['x']), *[move('copy', '/a', '/a/-')] * 99]
    for operations in (doubling, [move('copy', '', '/a')] * 99):
        answer = send(newest, PROFILE, *operations)
        assert read_error(answer)[:2] == (400, _INVALID)
        assert 'nested deeper' in answer.fault
    flat = [build('add', '/a', ['x' * 1000]), *[move('copy', '/a/0', '/a/-')] * 99]
    assert 'cannot be changed' in send(newest, PROFILE, *flat).fault
    text = [build('add', '/a', ['x' * 9000]), *[move('copy', '/a/0', '/a/-')] * 99]
    assert 'more than 262144 characters' in send(newest, PROFILE, *text).fault


# --- one generation ---


def test_patch_applies_to_the_generation_that_it_read(newest: Client) -> None:
    conductor, path = newest.conductor, PROFILE
    listing = conductor.client.list_device_profiles

    def change_meanwhile(*arguments: Any) -> Any:
        profiles = listing(*arguments)
        vars(conductor.client)['list_device_profiles'] = listing
        newest.patch(path, [build('replace', '/description', 'faster')])
        return profiles

    vars(conductor.client)['list_device_profiles'] = change_meanwhile
    answer = send(newest, path, build('replace', '/description', 'slower'))
    assert (answer.status, 'is not 0' in answer.fault) == (409, True)
    assert read_profile(newest)['description'] == 'faster'


def test_stale_header_is_refused_before_the_test(newest: Client) -> None:
    test = build('test', '/name', 'dp2')
    answer = send(newest, PROFILE, test, match='"5"')
    assert (answer.status, 'is not 5' in answer.fault) == (409, True)
    assert send(newest, PROFILE, build('test', '/generation', 0)).status == 200


# --- the other objects ---


def test_device_status_and_reason(newest: Client) -> None:
    path = f'/devices/{add_device(newest.conductor.database).uuid}'
    operations = [
        build('test', '/status', 'enabled'),
        build('replace', '/status', 'maintaining'),
        build('replace', '/reason', 'hot'),
    ]
    device = send(newest, path, *operations).json
    assert (device['status'], device['status_reason']) == ('maintaining', 'hot')
    assert send(newest, path, *operations).status == 409
    # The reason alone changes, or goes, and the maintenance goes on.
    device = send(newest, path, build('replace', '/reason', 'old fan')).json
    assert (device['status'], device['status_reason']) == ('maintaining', 'old fan')
    device = send(newest, path, build('remove', '/reason')).json
    assert (device['status'], device['status_reason']) == ('maintaining', '')
    enabled = send(newest, path, build('replace', '/status', 'enabled'))
    assert enabled.json['status'] == 'enabled'
    refused = send(newest, path, build('replace', '/type', 'GPU'))
    assert (read_error(refused), '/type: cannot be changed' in refused.fault) == (
        (400, _INVALID, '/0/path'),
        True,
    )
    answer = send(newest, path, build('replace', '/status', 5))
    assert '/status: must be of type string' in answer.fault


def test_device_mode_is_tested_and_changed(newest: Client) -> None:
    device = add_device(newest.conductor.database)
    modes = tuple(ModePlan(name, is_current=name == 'dc') for name in ('dc', 'sym'))
    plan = DevicePlan(device.uuid, 'compute-1', '0000:e8:00.0', modes)
    newest.conductor.answers.update(plan_modes=plan, change_mode=plan)
    path, change = f'/devices/{device.uuid}', build('replace', '/mode', 'sym')
    assert send(newest, path, build('test', '/mode', 'sym'), change).status == 409
    assert send(newest, path, build('test', '/mode', 'dc'), change).status == 202
    (mode,) = newest.conductor.list_arguments('change_mode', 'mode')
    (generation,) = newest.conductor.list_arguments('change_mode', 'generation')
    assert (mode, generation) == ('sym', 0)
    status = build('replace', '/status', 'maintaining')
    assert 'together' in send(newest, path, change, status).fault
    assert send(newest.at('2.6'), path, change).status == 400


def test_device_configuration_is_changed_in_part(newest: Client) -> None:
    device = add_device(newest.conductor.database)
    change = Reconfiguration(
        uuid=IMAGE,
        hardware_set='nvidia',
        settings={'vgpus': 4, 'ecc': True},
        state=ReconfigurationState.SUCCEEDED,
        actor='ann',
        created_at=device.created_at,
    )
    configuration = DeviceConfiguration(device.uuid, 'compute-1', (), (), (change,))
    newest.conductor.answers.update(
        show_configuration=configuration, change_configuration=configuration
    )
    path = f'/devices/{device.uuid}'
    operation = build('replace', '/configuration/settings/vgpus', 8)
    assert send(newest, path, operation).status == 202
    (request,) = newest.conductor.list_arguments('change_configuration', 'request')
    assert request.settings == {'vgpus': 8, 'ecc': True}
    answer = send(newest, path, build('add', '/configuration/set', 5))
    assert (answer.status, '/configuration/set: must be' in answer.fault) == (400, True)


def test_host_status_is_tested_and_changed(newest: Client) -> None:
    database = newest.conductor.database
    for _ in range(2):
        add_device(database, hostname='b')
    operations = [
        build('test', '/devices_count', 2),
        build('test', '/status', 'enabled'),
        build('replace', '/status', 'maintaining'),
        build('add', '/reason', 'fan'),
    ]
    host = send(newest, '/hosts/b', *operations).json
    assert (host['status'], host['maintaining_count']) == ('maintaining', 2)
    assert send(newest, '/hosts/b', *operations).status == 409
    repetition = send(newest, '/hosts/b', build('replace', '/status', 'maintaining'))
    assert repetition.status == 200
    tested = send(newest, '/hosts/b', build('test', '/maintaining_count', 2))
    assert tested.json == repetition.json
    assert send(newest, '/hosts/c', *operations).status == 404


def test_host_that_has_changed_meanwhile_is_refused(newest: Client) -> None:
    conductor = newest.conductor
    add_device(conductor.database, hostname='b')
    listing = conductor.client.list_hosts

    def add_meanwhile(*arguments: Any) -> Any:
        hosts = listing(*arguments)
        vars(conductor.client)['list_hosts'] = listing
        add_device(conductor.database, hostname='b', status=DeviceStatus.MAINTAINING)
        return hosts

    vars(conductor.client)['list_hosts'] = add_meanwhile
    answer = send(newest, '/hosts/b', build('replace', '/status', 'maintaining'))
    assert (answer.status, 'have changed' in answer.fault) == (409, True)
    assert newest.get('/hosts/b').json['maintaining_count'] == 1


def test_program_is_a_list_with_the_loaded_image(newest: Client) -> None:
    uuid = add_deployable(newest.conductor.database, bitstream_id=IMAGE).uuid
    path = f'/deployables/{uuid}/program'
    loaded = build('test', '/program', [{'image_uuid': IMAGE}])
    assert send(newest, path, loaded).json['bitstream_id'] == IMAGE
    second = build('add', '/program/-', {'image_uuid': uuid})
    assert send(newest, path, second).status == 400
    assert send(newest, path, build('remove', '/program/0')).status == 400
    empty = build('test', '/program', [])
    change = build('replace', '/program/0/image_uuid', uuid)
    assert send(newest, path, empty, change).status == 409


def test_patch_media_type_is_refused_before_2_5(client: Client) -> None:
    client.create_profile('dp1')
    older, patch = client.at('2.4'), build_replace_patch(enabled=False)
    answer = older.send('PATCH', '/device_profiles/dp1', patch, headers=PATCH)
    assert answer.status == 415


def test_patch_media_type_is_refused_for_other_bodies(client: Client) -> None:
    body = {'projects': ['a' * 32]}
    client.create_profile('dp1')
    path = '/device_profiles/dp1/access'
    assert client.at('2.5').send('POST', path, body, headers=PATCH).status == 415


@pytest.mark.parametrize(
    'build_path',
    [
        lambda client: PROFILE,
        lambda client: f'/devices/{add_device(client.conductor.database).uuid}',
    ],
)
def test_other_media_type_keeps_its_list_of_changes(
    newest: Client, build_path: Callable[[Client], str]
) -> None:
    path = build_path(newest)
    for version in ('2.4', '2.7'):
        client = newest.at(version)
        for operation in (build('test', '/name', 'dp1'), build('remove', '/name')):
            assert client.patch(path, [operation]).status == 400
