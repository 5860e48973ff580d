# SPDX-License-Identifier: Apache-2.0
"""Commands of this project in the ``openstack`` program, against a running service.

One service with a real Keystone and a real Glance serves all tests of this module.
``tests/ansible`` has the tests of hardware sets, which need ansible-runner.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

import pytest

from tests.builders import driver_packages
from tests.builders.bitstream_files import gbs, image
from tests.doubles.loadable_driver import LoadableDriver
from tests.doubles.operated_driver import RESOURCE_CLASS, OperatedDriver
from tests.servers.glance import RealGlance, real_glance
from tests.servers.keystone import RealKeystone, keystone
from tests.servers.keystone_cloud import KeystoneCloud
from tests.servers.openstack_desk import Desk, desk, programs
from tests.servers.openstack_program import OWN, PLUGIN
from tests.servers.stack import Instance, Options, expect

__all__ = ['desk', 'keystone', 'programs', 'real_glance']

Test = TypeVar('Test', bound=Callable[..., None])

WITH_OWN: Final = pytest.mark.parametrize('desk', [OWN], indirect=True)
CHECKED: Final[set[str]] = {'device hardware set list', 'device reconfigure'}


def covers(*commands: str) -> Callable[[Test], Test]:
    """Return a decorator that lists the commands of a test."""
    CHECKED.update(commands)
    return lambda test: test


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the state of the operated card."""
    return tmp_path_factory.mktemp('operated')


@pytest.fixture(scope='module')
def cloud(
    keystone: RealKeystone,
    real_glance: RealGlance,
    tmp_path_factory: pytest.TempPathFactory,
    folder: Path,
) -> Iterator[KeystoneCloud]:
    """Start one process with three devices, two of which come from packages."""
    directory = tmp_path_factory.mktemp('cloud')
    names = 'fake_driver,loadable_driver,operated_driver'
    options: Options = {
        'agent': {'enabled_drivers': names},
        'operated_driver': {'folder': folder},
    }
    cloud = KeystoneCloud(
        directory, keystone, glance=real_glance.endpoint, options=options
    )
    for driver in (LoadableDriver, OperatedDriver):
        site = directory / driver.NAME
        cloud.python_path.append(driver_packages.install(driver, site))
    with cloud:
        cloud.start('standalone')
        for resource_class in ('FPGA', RESOURCE_CLASS):
            cloud.provider_of(resource_class)
        yield cloud


@pytest.fixture
def refusals(folder: Path) -> Iterator[Callable[[str, bool], None]]:
    """Return a function that lets the card refuse an operation, or stop to."""

    def refuse(operation: str, refused: bool = True) -> None:
        file = folder / f'refuse-{operation}'
        if refused:
            file.touch()
        else:
            file.unlink(missing_ok=True)

    yield refuse
    for operation in ('mode', 'clean'):
        refuse(operation, False)


def test_every_command_has_a_test() -> None:
    points = metadata.distribution('cyborg-lite').entry_points
    group = points.select(group='openstack.accelerator_lite.v2').names
    commands = {name.replace('_', ' ').removeprefix('accelerator ') for name in group}
    assert len(commands) >= 33
    assert commands == CHECKED, 'write a test of the new command'


def find_operated(desk: Desk) -> str:
    """Return the device whose modes and cleans the tests change."""
    (uuid,) = (
        row['uuid'] for row in desk.read('device', 'list') if row['vendor'] == 'fa51'
    )
    return str(uuid)


@pytest.mark.parametrize('desk', [OWN, PLUGIN], indirect=True)
@covers('profile set', 'profile disable', 'profile enable', 'profile explain')
def test_profile_set_disable_and_explain(desk: Desk) -> None:
    name = desk.new_profile()['name']
    changed = desk.read('profile', 'set', name, '--description', 'text', '--private')
    expected = desk.query_api(f'device_profiles/{changed["uuid"]}')['device_profile']
    assert (changed['description'], changed['groups']) == ('text', expected['groups'])
    assert desk.run('profile', 'disable', name).status == 0
    refused = desk.run('arq', 'create', name)
    assert (refused.status, 'disabled' in refused.error) == (1, True)
    (warning,) = desk.read('profile', 'explain', name, '--warnings')
    assert (warning['Code'], warning['Group']) == ('disabled', None)
    printed = desk.run('profile', 'explain', name).error
    assert f'\nWarning: {warning["Warning"]}\n' in printed
    assert desk.run('profile', 'enable', name).status == 0
    explained = desk.run('profile', 'explain', name, '-f', 'json')
    assert {row['Host'] for row in explained.json} == {desk.cloud.host}
    assert explained.error.count('\n') == 1
    missing = desk.run('profile', 'set', 'nope', '--public')
    assert (missing.status, missing.error) == (
        1,
        'Device profile nope not found. (HTTP 404)\n',
    )


@WITH_OWN
@covers('profile list', 'profile show')
def test_profile_list_has_state_and_show_has_description(desk: Desk) -> None:
    name = desk.new_profile()['name']
    desk.read('profile', 'set', name, '--description', 'text', '--private')
    assert desk.run('profile', 'disable', name).status == 0
    (row,) = desk.read('profile', 'list', '--disabled', '--name-prefix', name)
    assert (row['Name'], row['Enabled'], row['Public']) == (name, False, False)
    assert desk.read('profile', 'show', name)['description'] == 'text'


@WITH_OWN
@covers('service list', 'service show')
def test_service_list_fits_width_of_terminal(desk: Desk) -> None:
    rows = desk.read('service', 'list')
    assert {row['Host'] for row in rows} == {desk.cloud.host}
    service = desk.read('service', 'show', rows[0]['UUID'])
    assert service['binary'] == rows[0]['Binary']
    table = desk.run('service', 'list', '--max-width', '80').out
    assert max(map(len, table.splitlines())) <= 80
    refused = desk.run('service', 'delete', rows[0]['UUID'])
    assert (refused.status, 'HTTP 409' in refused.error) == (1, True)


@WITH_OWN
@covers('bitstream list', 'bitstream load', 'job show')
def test_bitstream_load_waits_with_progress(desk: Desk) -> None:
    loaded = desk.glance.upload(gbs(), image().tags, image().properties)
    card = desk.deployable('fa50:0c:00.0')
    (row,) = (
        row
        for row in desk.read('bitstream', 'list', '--deployable', card)
        if row['Image'] == loaded
    )
    assert row['Accepted'] is True
    result = desk.run('bitstream', 'load', card, loaded, '--wait', '-f', 'json')
    assert (result.json['state'], result.json['progress']) == ('done', 100)
    assert result.error.splitlines()[-1] == '100% loaded'
    assert desk.read('job', 'show', result.json['uuid'])['state'] == 'done'
    fake = desk.deployable('FakeDevice')
    refused = desk.run('bitstream', 'load', fake, loaded)
    assert (refused.status, refused.error.count('\n')) == (1, 1)


@WITH_OWN
@covers('request bind', 'request show', 'request unbind')
def test_request_bind_waits_until_bound(desk: Desk) -> None:
    cloud = desk.cloud
    instance = Instance(cloud, cloud.provider_of('FPGA'), {'FPGA': 1})
    uuid = desk.new_arq()
    instance.arqs.append(uuid)
    instance.allocate()
    cloud.nova.rules.servers[instance.uuid] = cloud.host
    token = ('--service-token', cloud.token(cloud.service))
    bind = (
        *('request', 'bind', uuid, '--host', cloud.host),
        *('--instance', instance.uuid, '--provider', instance.provider),
    )
    assert '--service-token' in desk.run(*bind).error
    bound = desk.read(*bind, *token, '--wait')
    assert (bound['state'], bound['instance_uuid']) == ('Bound', instance.uuid)
    events = desk.read('request', 'show', uuid, '--events')['events']
    assert events[-1]['step'] == 'Bound'
    assert desk.read('request', 'unbind', uuid, *token)['state'] == 'Unbound'
    assert desk.run('arq', 'delete', uuid).status == 0


@WITH_OWN
@covers('device set', 'device clean list')
def test_device_set_and_cleans(desk: Desk) -> None:
    device = desk.fake_device()
    row = desk.read('device', 'set', device, '--disable', '--reason', 'A fan.')
    assert row['status_reason'] == 'A fan.'
    assert desk.read('device', 'set', device, '--enable')['status'] == 'enabled'
    units = desk.read('device', 'clean', 'list', device)
    assert {unit['State'] for unit in units} == {'clean'}
    refused = desk.run('device', 'clean', 'retry', device)
    assert (refused.status, 'HTTP 409' in refused.error) == (1, True)


def count_free(cloud: KeystoneCloud) -> int:
    """Return the number of units of the fake FPGA that Placement can allocate."""
    provider = cloud.provider_of('FPGA')
    path = f'/resource_providers/{provider}/usages'
    used = expect(cloud.placement.ask('GET', path), 200)['usages']['FPGA']
    return int(cloud.inventory(provider)['FPGA']['total'] - used)


@WITH_OWN
@covers('profile create', 'profile unset', 'profile capacity')
def test_profile_create_unset_and_capacity(desk: Desk) -> None:
    name = f'p-{uuid4().hex[:8]}'
    group = 'resources:FPGA=1,trait:CUSTOM_NOWHERE=required'
    created = desk.read(
        *('profile', 'create', name, '--group', group, '--description', 'text')
    )
    assert created['groups'] == [
        {'resources:FPGA': '1', 'trait:CUSTOM_NOWHERE': 'required'}
    ]
    none = desk.run('profile', 'capacity', name, '-f', 'json')
    assert none.error.startswith('0 more servers fit.')
    unset = ('profile', 'unset', name, '--description', '--group-key')
    stale = desk.run(*unset, '0:trait:CUSTOM_NOWHERE', '--generation', '999')
    assert (stale.status, 'HTTP 409' in stale.error) == (1, True)
    changed = desk.read(*unset, '0:trait:CUSTOM_NOWHERE')
    assert (changed['description'], changed['groups']) == (
        None,
        [{'resources:FPGA': '1'}],
    )
    (row,) = desk.read('profile', 'capacity', name, '--host', desk.cloud.host)
    assert (row['Host'], row['Servers']) == (desk.cloud.host, count_free(desk.cloud))


@WITH_OWN
@covers('profile access add', 'profile access list', 'profile access remove')
def test_profile_access_permits_project(desk: Desk) -> None:
    cloud, name = desk.cloud, desk.new_profile()['name']
    desk.read('profile', 'set', name, '--private')
    # The member is of the project of the administrator, which always sees the profile.
    project = cloud.service.project_id
    assert desk.read('profile', 'access', 'list', name) == []
    assert desk.run('profile', 'access', 'add', name, project).status == 0
    assert desk.read('profile', 'access', 'list', name) == [{'Project ID': project}]
    assert desk.run('profile', 'access', 'remove', name, project).status == 0
    assert desk.read('profile', 'access', 'list', name) == []
    refused = desk.run('profile', 'access', 'add', 'nope', project)
    assert (refused.status, 'nope not found' in refused.error) == (1, True)


@WITH_OWN
@covers('host topology')
def test_host_topology_lists_units_and_users(desk: Desk) -> None:
    instance = desk.cloud.boot('FPGA')
    desk.cloud.until(instance.is_resolved, 'Nova receives the event')
    rows = desk.read('host', 'topology', desk.cloud.host, '--bridges')
    (used,) = (row for row in rows if row['Instance'] == instance.uuid)
    assert (used['Availability'], used['Resource Class']) == ('used', 'FPGA')
    assert used['PCIe Bridges'] is None  # the device is no PCI function
    table = desk.run('host', 'topology', desk.cloud.host, '--max-width', '140').out
    assert max(map(len, table.splitlines())) <= 140
    instance.delete()
    missing = desk.run('host', 'topology', 'nowhere')
    assert (missing.status, missing.out) == (1, '')
    assert 'nowhere' in missing.error


@WITH_OWN
@covers('device mode list', 'device mode set', 'device mode apply')
def test_device_mode_set_waits_for_change(desk: Desk) -> None:
    device = find_operated(desk)
    before = desk.read('device', 'mode', 'list', device)
    (target,) = (row['Mode'] for row in before if not row['Current'])
    assert {row['Mode'] for row in before} == {'a', 'b'}
    (plan,) = (row for row in before if row['Mode'] == target)
    assert (plan['Appears'], plan['Vanishes']) == (
        [f'1 {RESOURCE_CLASS}'],
        [f'1 {RESOURCE_CLASS}'],
    )
    changed = desk.run('device', 'mode', 'set', device, target, '--wait', '-f', 'json')
    assert changed.json['current'] == target
    assert changed.error.splitlines()[-1].startswith('100%')
    rows = desk.read('device', 'mode', 'list', device)
    assert [row['Mode'] for row in rows if row['Current']] == [target]
    # The option that declares a mode is not set.
    assert desk.read('device', 'mode', 'apply', desk.cloud.host) == []
    refused = desk.run('device', 'mode', 'set', device, 'nope')
    assert (refused.status, refused.error.count('\n')) == (1, 1)


@WITH_OWN
@covers('job list', 'job retry', 'job cancel')
def test_failed_job_is_listed_retried_and_cancelled(
    desk: Desk, refusals: Callable[..., None]
) -> None:
    device = find_operated(desk)
    refusals('mode')

    def fail() -> str:
        rows = desk.read('device', 'mode', 'list', device)
        (target,) = (row['Mode'] for row in rows if not row['Current'])
        failed = desk.run('device', 'mode', 'set', device, target, '--wait')
        assert failed.status == 1
        assert 'The card refuses the mode.' in failed.error
        (job,) = (
            row
            for row in desk.read('job', 'list', '--state', 'failed')
            if 'The card refuses the mode.' in row['Reason']
        )
        listed = desk.read('job', 'list', '--kind', job['Kind'])
        assert job['UUID'] in [row['UUID'] for row in listed]
        job_view = desk.read('job', 'show', job['UUID'])
        assert (job_view['state'], job_view['kind']) == ('failed', job['Kind'])
        return str(job['UUID'])

    first = fail()
    refusals('mode', False)
    assert desk.run('job', 'retry', first).status == 0
    waited = desk.run('job', 'show', first, '--wait')
    assert '100%' in waited.error or 'not found' in waited.error
    refusals('mode')
    second = fail()
    assert desk.run('job', 'cancel', second).status == 0
    desk.cloud.until(
        lambda: desk.run('job', 'show', second).status == 1, 'the job is deleted'
    )
    repeated = desk.run('job', 'retry', second)
    assert (repeated.status, second in repeated.error) == (1, True)


@WITH_OWN
@covers('job create')
def test_job_create_waits_for_end(desk: Desk) -> None:
    for arguments in (
        ['audit'],
        ['reconcile', '--host', desk.cloud.host],
        ['refresh', '--host', desk.cloud.host],
    ):
        created = desk.run('job', 'create', *arguments, '--wait', '-f', 'json')
        assert created.json['state'] == 'completed', created.error
    refused = desk.run('job', 'create', 'reconcile')
    assert (refused.status, 'requires a hostname' in refused.error) == (1, True)


@WITH_OWN
@covers('device clean list', 'device clean retry', 'device clean accept')
def test_failed_clean_is_retried_and_accepted(
    desk: Desk, refusals: Callable[..., None]
) -> None:
    cloud, device = desk.cloud, find_operated(desk)

    def list_states() -> list[str]:
        return [row['State'] for row in desk.read('device', 'clean', 'list', device)]

    def fail() -> None:
        refusals('clean')
        instance = cloud.boot(RESOURCE_CLASS)
        cloud.until(instance.is_resolved, 'Nova receives the event')
        instance.delete()
        cloud.until(lambda: list_states() == ['clean_failed'], 'the clean fails')

    fail()
    retry = ('device', 'clean', 'retry', device, '--wait')
    failed = desk.run(*retry)
    assert failed.status == 1
    assert 'The card refuses to be cleaned.' in failed.error
    refusals('clean', False)
    (row,) = desk.read(*retry)
    assert row['State'] == 'clean'
    history = desk.read('device', 'clean', 'list', device, '--history')
    assert [row['State'] for row in history][:3] == ['succeeded', 'failed', 'failed']
    fail()
    accept = ('device', 'clean', 'accept', device, '--name', 'R. Jones')
    completed = desk.run(*accept)
    assert (completed.status, completed.out, completed.error) == (0, '', '')
    assert list_states() == ['clean']
    refused = desk.run(*accept)
    assert (refused.status, 'HTTP 409' in refused.error) == (1, True)


def add_silent_agent(cloud: KeystoneCloud, host: str) -> str:
    """Write an agent that is down into the database; return its uuid."""
    uuid = str(uuid4())
    with closing(sqlite3.connect(cloud.directory / 'db.sqlite')) as database, database:
        database.execute(
            'INSERT INTO services (uuid, binary, host, version, state, started_at, '
            'heartbeat_at, audited_at, last_event, report_number) '
            'SELECT ?, binary, ?, version, ?, '
            'started_at, started_at, audited_at, 0, 0 FROM services '
            "WHERE binary = 'cyborg-lite-agent'",
            (uuid, host, 'down'),
        )
    return uuid


@WITH_OWN
@covers('service delete')
def test_service_delete_removes_daemon_that_is_down(desk: Desk) -> None:
    uuid = add_silent_agent(desk.cloud, 'compute-gone')
    (row,) = desk.read('service', 'list', '--host', 'compute-gone')
    assert (row['UUID'], row['State']) == (uuid, 'down')
    assert desk.run('service', 'delete', uuid).status == 0
    assert desk.read('service', 'list', '--host', 'compute-gone') == []
    repeated = desk.run('service', 'delete', uuid)
    assert (repeated.status, uuid in repeated.error) == (1, True)
