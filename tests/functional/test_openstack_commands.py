# SPDX-License-Identifier: Apache-2.0
"""``openstack accelerator ...``: every command of both clients, before real services.

Both python-openstackclient and python-cyborgclient bring the same commands; all is
asked of both, as an administrator with a password that a real Keystone knows.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final, TypeVar
from uuid import uuid4

import pytest

from tests.fakes import openstack_program
from tests.fakes.bitstream_files import gbs, image
from tests.fakes.keystone_cloud import KeystoneCloud, cloud_with_cards
from tests.fakes.openstack_program import OWN, PLUGIN, Done, OpenStackProgram
from tests.fakes.real_glance import RealGlance, real_glance
from tests.fakes.real_keystone import Person, RealKeystone, keystone
from tests.fakes.stack import ADMIN, Instance, expect

__all__ = ['keystone', 'real_glance']

Test = TypeVar('Test', bound=Callable[..., None])

NEWER: Final = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.3'}
NOBODY: Final = 'dddddddd-dddd-4ddd-8ddd-dddddddddddd'
CHECKED: Final[set[str]] = set()


def tells(*commands: str) -> Callable[[Test], Test]:
    """Which commands a test is about."""
    CHECKED.update(commands)
    return lambda test: test


# Any: JSON.
def agrees(shown: dict[str, Any], known: dict[str, Any]) -> bool:
    """Whether all that a client shows is as the service says."""
    return shown == {name: known[name] for name in shown}


@dataclass(frozen=True)
class Desk:
    """Where the administrator sits."""

    cloud: KeystoneCloud
    program: OpenStackProgram
    glance: RealGlance

    @property
    def plugin(self) -> bool:
        return self.program.commands == PLUGIN

    def run(self, *arguments: str, **options: Any) -> Done:
        return self.program.run('accelerator', *arguments, **options)

    # Any: JSON of the form that the command has.
    def read(self, *arguments: str, **options: Any) -> Any:
        return self.run(*arguments, '-f', 'json', **options).json

    def run_as(self, person: Person, *arguments: str) -> Done:
        who = ('--os-username', person.user, '--os-project-id', person.project_id)
        return self.program.run(*who, 'accelerator', *arguments)

    def run_as_nova(self, *arguments: str) -> Done:
        token = self.cloud.token(self.cloud.service)
        return self.run(*arguments, '-f', 'json', service_token=token)

    def asked(self, path: str) -> Any:
        """What the service itself says."""
        return expect(self.cloud.api(NEWER).ask('GET', f'/v2/{path}'), 200)

    def new_profile(self) -> dict[str, Any]:
        name = f'p-{uuid4().hex[:8]}'
        made: dict[str, Any] = self.read(
            'device', 'profile', 'create', name, '[{"resources:FPGA": 1}]'
        )
        return made

    def new_arq(self) -> str:
        uuid: str = self.read('arq', 'create', self.new_profile()['name'])['uuid']
        return uuid

    def fake_device(self) -> str:
        devices = self.read('device', 'list')
        (uuid,) = (one['uuid'] for one in devices if one['vendor'] == '0xABCD')
        return str(uuid)

    def deployable(self, ending: str) -> str:
        found = self.read('deployable', 'list')
        (uuid,) = (one['uuid'] for one in found if one['name'].endswith(ending))
        return str(uuid)


@pytest.fixture(scope='module')
def cloud(
    keystone: RealKeystone,
    real_glance: RealGlance,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[KeystoneCloud]:
    directory = tmp_path_factory.mktemp('commands')
    with cloud_with_cards(keystone, real_glance, directory) as made:
        yield made


@pytest.fixture(scope='module')
def programs(cloud: KeystoneCloud) -> Iterator[dict[str, OpenStackProgram]]:
    who = openstack_program.environment(cloud.keystone, cloud.admin)
    with OpenStackProgram(who, OWN) as own, OpenStackProgram(who, PLUGIN) as plugin:
        yield {OWN: own, PLUGIN: plugin}


@pytest.fixture(params=[OWN, PLUGIN])
def desk(
    request: pytest.FixtureRequest,
    cloud: KeystoneCloud,
    programs: dict[str, OpenStackProgram],
    real_glance: RealGlance,
) -> Desk:
    return Desk(cloud, programs[request.param], real_glance)


@pytest.mark.parametrize('client', ['python-openstackclient', 'python-cyborgclient'])
def test_every_command_of_both_clients_is_checked_here(client: str) -> None:
    points = metadata.distribution(client).entry_points
    brought = points.select(group='openstack.accelerator.v2').names
    commands = {name.replace('_', ' ').removeprefix('accelerator ') for name in brought}
    assert len(commands) >= 21
    assert commands == CHECKED, 'write a test that tells of the new command'


# --- devices ---


@tells('device list', 'device show')
def test_devices_are_listed_and_shown(desk: Desk) -> None:
    listed = {one['uuid']: one for one in desk.read('device', 'list', '--long')}
    known = desk.asked('devices')['devices']
    assert set(listed) == {one['uuid'] for one in known}
    for device in known:
        shown = desk.read('device', 'show', device['uuid'])
        for seen in (shown, listed[device['uuid']]):
            # The other client asks for 2.0, which tells no status.
            assert seen.pop('status', None) == ('enabled' if desk.plugin else None)
            assert agrees(seen, device)


@tells('device disable', 'device enable')
def test_a_device_is_taken_out_of_service_and_back(desk: Desk) -> None:
    device, provider = desk.fake_device(), desk.cloud.provider_of('FPGA')
    for word, status, reserved in (
        ('disable', 'maintaining', 16),
        ('enable', 'enabled', 0),
    ):
        done = desk.run('device', word, device)
        assert (done.status, done.out, done.error) == (0, '', '')
        assert desk.asked(f'devices/{device}')['status'] == status
        assert desk.cloud.inventory(provider)['FPGA']['reserved'] == reserved


# --- device profiles ---


@tells(
    'device profile create',
    'device profile list',
    'device profile show',
    'device profile delete',
)
def test_a_profile_is_made_shown_and_deleted(desk: Desk) -> None:
    made = desk.new_profile()
    name, uuid = made['name'], made['uuid']
    assert made['groups'] == [{'resources:FPGA': '1'}]
    known = desk.asked(f'device_profiles/{uuid}')['device_profile']
    assert agrees(made, known)
    assert desk.read('device', 'profile', 'show', uuid) == made
    # Names are heard since 2.2; one of the clients says 2.0 when it is not told.
    version = ('--os-accelerator-api-version', '2.2')
    by_name = ('accelerator', 'device', 'profile', 'show', name, '-f', 'json')
    assert desk.program.run(*version, *by_name).json == made
    listed = {one['uuid']: one for one in desk.read('device', 'profile', 'list')}
    assert agrees(listed[uuid], made)
    assert desk.run('device', 'profile', 'delete', name).status == 0
    assert uuid not in [one['uuid'] for one in desk.read('device', 'profile', 'list')]


def test_why_a_profile_is_refused_is_said(desk: Desk) -> None:
    create = ('device', 'profile', 'create')
    name = desk.new_profile()['name']
    again = desk.run(*create, name, '[{"resources:FPGA": 1}]')
    assert again.status == 1
    assert f'Device profile {name} already exists.' in again.error
    wrong = desk.run(*create, 'wrong', '[{"resources:NOPE": 1}]')
    assert wrong.status == 1
    assert 'groups[0]: resources:NOPE must name FPGA' in wrong.error
    member = desk.run_as(desk.cloud.member, *create, 'p', '[{"resources:FPGA": 1}]')
    assert member.status == 1
    assert 'cyborg:device_profile:create' in member.error


def test_a_profile_in_use_stays(desk: Desk) -> None:
    name = desk.new_profile()['name']
    arq = desk.read('arq', 'create', name)['uuid']
    refused = desk.run('device', 'profile', 'delete', name)
    assert refused.status == 1
    assert f'Device profile {name} is in use by accelerator requests.' in refused.error
    assert desk.run('arq', 'delete', arq).status == 0
    assert desk.run('device', 'profile', 'delete', name).status == 0


@pytest.mark.parametrize('desk', [OWN], indirect=True)
def test_groups_may_be_options(desk: Desk) -> None:
    name = f'p-{uuid4().hex[:8]}'
    group = 'resources:FPGA=2,trait:CUSTOM_FAKE_DEVICE=required'
    made = desk.read('device', 'profile', 'create', name, '--group', group)
    assert made['groups'] == [
        {'resources:FPGA': '2', 'trait:CUSTOM_FAKE_DEVICE': 'required'}
    ]


# --- accelerator requests ---


@tells('arq create', 'arq list', 'arq show', 'arq delete')
def test_a_request_is_made_shown_and_deleted(desk: Desk) -> None:
    profile = desk.new_profile()['name']
    made = desk.read('arq', 'create', profile)
    uuid = made['uuid']
    assert (made['state'], made['device_profile_name']) == ('Initial', profile)
    assert desk.read('arq', 'show', uuid) == made
    (listed,) = (
        one for one in desk.read('arq', 'list', '--long') if one['uuid'] == uuid
    )
    assert listed == made
    assert desk.run('arq', 'delete', uuid).status == 0
    assert uuid not in [one['uuid'] for one in desk.read('arq', 'list')]


@tells('arq bind', 'arq unbind')
def test_a_request_is_bound_and_unbound(desk: Desk) -> None:
    cloud = desk.cloud
    instance = Instance(cloud, cloud.provider_of('FPGA'), {'FPGA': 1})
    uuid = desk.new_arq()
    instance.arqs.append(uuid)
    instance.allocate()
    cloud.nova.rules.servers[instance.uuid] = cloud.host
    bind = ['arq', 'bind', uuid, cloud.host, instance.uuid, instance.provider]
    if desk.plugin:
        bind.append(cloud.admin.project_id)  # asked for, and never sent
    refused = desk.run(*bind)
    assert refused.status == 1
    assert 'requires a service token' in refused.error
    assert desk.read('arq', 'show', uuid)['state'] == 'Initial'
    accepted = desk.run_as_nova(*bind).json
    assert accepted['instance_uuid'] == instance.uuid
    cloud.until(instance.resolved, 'Nova hears of the request')
    shown = desk.read('arq', 'show', uuid)
    assert (shown['state'], shown['attach_handle_type']) == ('Bound', 'TEST_PCI')
    assert set(shown['attach_handle_info']) == {'domain', 'bus', 'device', 'function'}
    again = desk.run_as_nova(*bind)
    assert again.status == 1
    assert uuid in again.error
    assert desk.run('arq', 'unbind', uuid).status == 1
    unbound = desk.run_as_nova('arq', 'unbind', uuid).json
    assert (unbound['state'], unbound['instance_uuid']) == ('Unbound', None)
    assert desk.run('arq', 'delete', uuid).status == 0


@pytest.mark.parametrize(
    ('arguments', 'told'),
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
def test_what_is_not_there_is_named(
    desk: Desk, arguments: tuple[str, ...], told: str
) -> None:
    done = desk.run(*arguments)
    assert (done.status, done.out) == (1, '')
    assert told in done.error
    assert 'Traceback' not in done.error


# --- deployables ---


@tells('deployable list', 'deployable show')
def test_deployables_are_listed_and_shown(desk: Desk) -> None:
    listed = {one['uuid']: one for one in desk.read('deployable', 'list', '--long')}
    known = desk.asked('deployables')['deployables']
    assert set(listed) == {one['uuid'] for one in known}
    for deployable in known:
        assert agrees(listed[deployable['uuid']], deployable)
        shown = desk.read('deployable', 'show', deployable['uuid'])
        assert agrees(shown, deployable)


@tells('deployable program')
def test_an_image_is_loaded_into_a_card(desk: Desk) -> None:
    loaded = desk.glance.upload(gbs(), image().tags, image().properties)
    card = desk.deployable('fa50:0c:00.0')
    done = desk.run('deployable', 'program', card, loaded)
    if desk.plugin:
        # It calls a method of the SDK that calls itself, and nothing is ever sent.
        assert done.status == 1
        assert 'recursion' in done.error
        return
    assert done.status == 0, done.error
    assert desk.asked(f'deployables/{card}')['bitstream_id'] == loaded


@pytest.mark.parametrize('desk', [OWN], indirect=True)
def test_why_a_card_takes_no_image_is_said(desk: Desk) -> None:
    loaded = desk.glance.upload(gbs(), image().tags, image().properties)
    fake = desk.deployable('FakeDevice')
    refused = desk.run('deployable', 'program', fake, loaded)
    assert refused.status == 1
    assert 'The device cannot be programmed.' in refused.error
    missing = desk.run('deployable', 'program', fake, NOBODY)
    assert (missing.status, missing.error) == (1, f'image not found: {NOBODY}\n')


# --- attributes ---


@tells(
    'device attribute create',
    'device attribute list',
    'device attribute show',
    'device attribute delete',
)
def test_an_attribute_is_made_shown_and_deleted(desk: Desk) -> None:
    key = f'rack-{uuid4().hex[:8]}'
    made = desk.read('device', 'attribute', 'create', '1', key, '7')
    uuid = made['uuid']
    assert (made['deployable_id'], made['key'], made['value']) == (1, key, '7')
    assert desk.read('device', 'attribute', 'show', uuid) == made
    listed = {one['uuid']: one for one in desk.read('device', 'attribute', 'list')}
    assert agrees(listed[uuid], made)
    assert {key: '7'} in json.loads(
        desk.asked('deployables')['deployables'][0]['attributes_list']
    )
    assert desk.run('device', 'attribute', 'delete', uuid).status == 0
    left = desk.read('device', 'attribute', 'list')
    assert uuid not in [one['uuid'] for one in left]


def test_why_an_attribute_is_refused_is_said(desk: Desk) -> None:
    refused = desk.run('device', 'attribute', 'create', '1', '', '7')
    assert refused.status == 1
    assert 'attribute.key must have at least 1 characters.' in refused.error


# --- the program itself ---


def test_the_program_as_a_person_starts_it(cloud: KeystoneCloud) -> None:
    who = openstack_program.environment(cloud.keystone, cloud.admin)
    arguments = ('accelerator', 'device', 'list', '-f', 'json')
    listed = openstack_program.once(who, *arguments)
    assert {one['hostname'] for one in listed.json} == {cloud.host}
    stranger = openstack_program.once({**who, 'OS_PASSWORD': 'wrong'}, *arguments)
    assert stranger.status == 1
    assert 'HTTP 401' in stranger.error
    member = openstack_program.environment(cloud.keystone, cloud.member)
    refused = openstack_program.once(member, *arguments)
    assert refused.status == 1
    assert 'cyborg:device:get_all' in refused.error
