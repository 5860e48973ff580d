# SPDX-License-Identifier: Apache-2.0
"""Commands of this project in the ``openstack`` program, against a running service.

One service with a real Keystone and a real Glance serves all tests of this module. Unit
tests have the tests of all commands.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

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
from tests.servers.stack import Instance, Options

__all__ = ['desk', 'keystone', 'programs', 'real_glance']


WITH_OWN: Final = pytest.mark.parametrize('desk', [OWN], indirect=True)


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


def find_operated(desk: Desk) -> str:
    """Return the device whose modes and cleaning runs the tests change."""
    (uuid,) = (
        row['uuid'] for row in desk.read('device', 'list') if row['vendor'] == 'fa51'
    )
    return str(uuid)


@pytest.mark.parametrize('desk', [OWN, PLUGIN], indirect=True)
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
    assert (result.json['state'], result.json['progress']) == ('succeeded', 100)
    assert result.error.splitlines()[-1] == '100% succeeded'
    operation = desk.read('operation', 'show', result.json['uuid'])
    assert operation['state'] == 'succeeded'
    fake = desk.deployable('FakeDevice')
    refused = desk.run('bitstream', 'load', fake, loaded)
    assert (refused.status, refused.error.count('\n')) == (1, 1)


@WITH_OWN
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
    events = desk.read('request', 'event', 'list', '--instance', instance.uuid)
    assert events[0]['Step'] == 'Bound'
    assert desk.read('request', 'unbind', uuid, *token)['state'] == 'Unbound'
    assert desk.run('arq', 'delete', uuid).status == 0


@WITH_OWN
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
def test_failed_operation_is_listed_retried_and_cancelled(
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
        (operation,) = (
            row
            for row in desk.read('operation', 'list', '--state', 'failed')
            if 'The card refuses the mode.' in row['Reason']
        )
        listed = desk.read('operation', 'list', '--kind', 'mode')
        assert operation['UUID'] in [row['UUID'] for row in listed]
        assert state_of(operation['UUID']) == 'failed'
        return str(operation['UUID'])

    def state_of(operation: str) -> str:
        return str(desk.read('operation', 'show', operation)['state'])

    first = fail()
    refusals('mode', False)
    assert desk.run('operation', 'retry', first).status == 0
    waited = desk.run('operation', 'wait', first)
    assert (waited.status, state_of(first)) == (0, 'succeeded')
    refusals('mode')
    second = fail()
    assert desk.run('operation', 'cancel', second).status == 0
    assert state_of(second) == 'failed'
    repeated = desk.run('operation', 'retry', second)
    assert (repeated.status, second in repeated.error) == (1, True)


@WITH_OWN
def test_failed_clean_is_retried_and_accepted(
    desk: Desk, refusals: Callable[..., None]
) -> None:
    cloud, device = desk.cloud, find_operated(desk)

    def list_states() -> list[str]:
        return [row['State'] for row in desk.read('device', 'clean', 'list', device)]

    def fail() -> None:
        refusals('clean')
        instance = cloud.boot_bound(RESOURCE_CLASS)
        instance.delete()
        cloud.until(lambda: list_states() == ['clean_failed'], 'the cleaning run fails')

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
