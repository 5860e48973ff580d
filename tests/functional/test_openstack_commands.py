# SPDX-License-Identifier: Apache-2.0
"""Commands ``openstack accelerator ...`` of both clients against real services.

Both python-openstackclient and python-cyborgclient have these commands. Each test runs
with both, as an administrator with a password in a real Keystone.
"""

import json
from collections.abc import Callable
from importlib import metadata
from typing import Any, Final, TypeVar
from uuid import uuid4

import pytest

from tests.builders.bitstream_files import gbs, image
from tests.servers import openstack_program
from tests.servers.glance import real_glance
from tests.servers.keystone import keystone
from tests.servers.keystone_cloud import KeystoneCloud, cloud
from tests.servers.openstack_desk import Desk, desk, programs
from tests.servers.stack import Instance

__all__ = ['cloud', 'desk', 'keystone', 'programs', 'real_glance']

Test = TypeVar('Test', bound=Callable[..., None])

NOBODY: Final = 'dddddddd-dddd-4ddd-8ddd-dddddddddddd'
CHECKED: Final[set[str]] = set()


def covers(*commands: str) -> Callable[[Test], Test]:
    """Return a decorator that lists the commands of a test."""
    CHECKED.update(commands)
    return lambda test: test


# Any: JSON.
def is_consistent(output: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Check whether all values that a client shows are those of the service."""
    return output == {name: expected[name] for name in output}


@pytest.mark.parametrize('client', ['python-openstackclient', 'python-cyborgclient'])
def test_every_command_has_a_test(client: str) -> None:
    points = metadata.distribution(client).entry_points
    brought = points.select(group='openstack.accelerator.v2').names
    commands = {name.replace('_', ' ').removeprefix('accelerator ') for name in brought}
    assert len(commands) >= 21
    assert commands == CHECKED, 'write a test that tells of the new command'


# --- devices ---


@covers('device list', 'device show')
def test_device_list_and_show_match_api(desk: Desk) -> None:
    rows_by_uuid = {row['uuid']: row for row in desk.read('device', 'list', '--long')}
    expected = desk.query_api('devices')['devices']
    assert set(rows_by_uuid) == {row['uuid'] for row in expected}
    for device in expected:
        output = desk.read('device', 'show', device['uuid'])
        for row_shown in (output, rows_by_uuid[device['uuid']]):
            # python-cyborgclient requests 2.0, which has no status.
            assert row_shown.pop('status', None) == ('enabled' if desk.plugin else None)
            assert is_consistent(row_shown, device)


@covers('device disable', 'device enable')
def test_device_disable_and_enable_change_status(desk: Desk) -> None:
    device, provider = desk.fake_device(), desk.cloud.provider_of('FPGA')
    for word, status, reserved in (
        ('disable', 'maintaining', 16),
        ('enable', 'enabled', 0),
    ):
        completed = desk.run('device', word, device)
        assert (completed.status, completed.out, completed.error) == (0, '', '')
        assert desk.query_api(f'devices/{device}')['status'] == status
        assert desk.cloud.inventory(provider)['FPGA']['reserved'] == reserved


# --- device profiles ---


@covers(
    'device profile create',
    'device profile list',
    'device profile show',
    'device profile delete',
)
def test_profile_create_show_delete(desk: Desk) -> None:
    created = desk.new_profile()
    name, uuid = created['name'], created['uuid']
    assert created['groups'] == [{'resources:FPGA': '1'}]
    expected = desk.query_api(f'device_profiles/{uuid}')['device_profile']
    assert is_consistent(created, expected)
    assert desk.read('device', 'profile', 'show', uuid) == created
    # Names are accepted since 2.2; one of the clients requests 2.0 by default.
    version = ('--os-accelerator-api-version', '2.2')
    by_name = ('accelerator', 'device', 'profile', 'show', name, '-f', 'json')
    assert desk.program.run(*version, *by_name).json == created
    rows_by_uuid = {row['uuid']: row for row in desk.read('device', 'profile', 'list')}
    assert is_consistent(rows_by_uuid[uuid], created)
    assert desk.run('device', 'profile', 'delete', name).status == 0
    assert uuid not in [row['uuid'] for row in desk.read('device', 'profile', 'list')]


# --- ARQs ---


@covers('arq create', 'arq list', 'arq show', 'arq delete')
def test_arq_create_show_delete(desk: Desk) -> None:
    profile = desk.new_profile()['name']
    created = desk.read('arq', 'create', profile)
    uuid = created['uuid']
    assert (created['state'], created['device_profile_name']) == ('Initial', profile)
    assert desk.read('arq', 'show', uuid) == created
    (rows_by_uuid,) = (
        row for row in desk.read('arq', 'list', '--long') if row['uuid'] == uuid
    )
    assert rows_by_uuid == created
    assert desk.run('arq', 'delete', uuid).status == 0
    assert uuid not in [row['uuid'] for row in desk.read('arq', 'list')]


@covers('arq bind', 'arq unbind')
def test_arq_bind_and_unbind(desk: Desk) -> None:
    cloud = desk.cloud
    instance = Instance(cloud, cloud.provider_of('FPGA'), {'FPGA': 1})
    uuid = desk.new_arq()
    instance.arqs.append(uuid)
    instance.allocate()
    cloud.nova.rules.servers[instance.uuid] = cloud.host
    bind = ['arq', 'bind', uuid, cloud.host, instance.uuid, instance.provider]
    if desk.plugin:
        bind.append(cloud.admin.project_id)  # required by the client, but never sent
    refused = desk.run(*bind)
    assert refused.status == 1
    assert 'requires a service token' in refused.error
    assert desk.read('arq', 'show', uuid)['state'] == 'Initial'
    accepted = desk.run_as_nova(*bind).json
    assert accepted['instance_uuid'] == instance.uuid
    cloud.until(instance.is_resolved, 'Nova receives the event')
    output = desk.read('arq', 'show', uuid)
    assert (output['state'], output['attach_handle_type']) == ('Bound', 'TEST_PCI')
    assert set(output['attach_handle_info']) == {'domain', 'bus', 'device', 'function'}
    repeated_bind = desk.run_as_nova(*bind)
    assert repeated_bind.status == 1
    assert uuid in repeated_bind.error
    assert desk.run('arq', 'unbind', uuid).status == 1
    unbound = desk.run_as_nova('arq', 'unbind', uuid).json
    assert (unbound['state'], unbound['instance_uuid']) == ('Unbound', None)
    assert desk.run('arq', 'delete', uuid).status == 0


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (('arq', 'create', 'nope'), 'nope not found'),
        (('arq', 'show', NOBODY), NOBODY),
        (('arq', 'delete', NOBODY), NOBODY),
        (('device', 'show', NOBODY), NOBODY),
        (('device', 'profile', 'show', NOBODY), NOBODY),
        (('device', 'profile', 'delete', 'nope'), 'nope not found'),
        (('deployable', 'show', NOBODY), NOBODY),
        (('deployable', 'program', NOBODY, NOBODY), NOBODY),
        (('device', 'attribute', 'show', NOBODY), NOBODY),
        (('device', 'attribute', 'delete', NOBODY), NOBODY),
    ],
    ids=lambda value: ' '.join(value[:-1]) if isinstance(value, tuple) else '',
)
def test_unknown_resource_is_named(
    desk: Desk, arguments: tuple[str, ...], message: str
) -> None:
    completed = desk.run(*arguments)
    assert (completed.status, completed.out) == (1, '')
    assert message in completed.error
    assert 'Traceback' not in completed.error


# --- deployables ---


@covers('deployable list', 'deployable show')
def test_deployable_list_and_show_match_api(desk: Desk) -> None:
    rows_by_uuid = {
        row['uuid']: row for row in desk.read('deployable', 'list', '--long')
    }
    expected = desk.query_api('deployables')['deployables']
    assert set(rows_by_uuid) == {row['uuid'] for row in expected}
    for deployable in expected:
        assert is_consistent(rows_by_uuid[deployable['uuid']], deployable)
        output = desk.read('deployable', 'show', deployable['uuid'])
        assert is_consistent(output, deployable)


@covers('deployable program')
def test_deployable_program_loads_image(desk: Desk) -> None:
    loaded = desk.glance.upload(gbs(), image().tags, image().properties)
    card = desk.deployable('fa50:0c:00.0')
    completed = desk.run('deployable', 'program', card, loaded)
    if desk.plugin:
        # It calls a method of the SDK that calls itself, so nothing is sent.
        assert completed.status == 1
        assert 'recursion' in completed.error
        return
    assert completed.status == 0, completed.error
    assert desk.query_api(f'deployables/{card}')['bitstream_id'] == loaded


# --- attributes ---


@covers(
    'device attribute create',
    'device attribute list',
    'device attribute show',
    'device attribute delete',
)
def test_attribute_create_show_delete(desk: Desk) -> None:
    key = f'rack-{uuid4().hex[:8]}'
    created = desk.read('device', 'attribute', 'create', '1', key, '7')
    uuid = created['uuid']
    assert (created['deployable_id'], created['key'], created['value']) == (1, key, '7')
    assert desk.read('device', 'attribute', 'show', uuid) == created
    rows_by_uuid = {
        row['uuid']: row for row in desk.read('device', 'attribute', 'list')
    }
    assert is_consistent(rows_by_uuid[uuid], created)
    assert {key: '7'} in json.loads(
        desk.query_api('deployables')['deployables'][0]['attributes_list']
    )
    assert desk.run('device', 'attribute', 'delete', uuid).status == 0
    remaining = desk.read('device', 'attribute', 'list')
    assert uuid not in [row['uuid'] for row in remaining]


# --- the program itself ---


def test_program_started_by_person_lists_devices(cloud: KeystoneCloud) -> None:
    person_environment = openstack_program.environment(cloud.keystone, cloud.admin)
    arguments = ('accelerator', 'device', 'list', '-f', 'json')
    rows_by_uuid = openstack_program.once(person_environment, *arguments)
    assert {row['hostname'] for row in rows_by_uuid.json} == {cloud.host}
    outsider = openstack_program.once(
        {**person_environment, 'OS_PASSWORD': 'wrong'}, *arguments
    )
    assert outsider.status == 1
    assert 'HTTP 401' in outsider.error
    member = openstack_program.environment(cloud.keystone, cloud.member)
    refused = openstack_program.once(member, *arguments)
    assert refused.status == 1
    assert 'cyborg:device:get_all' in refused.error
