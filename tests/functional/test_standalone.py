# SPDX-License-Identifier: Apache-2.0
"""One process with everything in it, a real Placement, and the life of accelerators."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.fakes import sysfs_tree
from tests.fakes.stack import ADMIN, NOVA, ROOT, USER, Cloud, Instance, expect, lines_of


@pytest.fixture(scope='module')
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A host with one NVIDIA card for passthrough, and the fake card."""
    directory = tmp_path_factory.mktemp('standalone')
    sysfs_tree.build('t4-mdev', directory / 'host')
    made = Cloud(
        directory,
        transport_url='local://',
        connection=f'sqlite:///{directory}/db.sqlite',
        options={
            'agent': {
                'enabled_drivers': 'fake_driver,nvidia_gpu_driver',
                'sysfs_root': directory / 'host',
            }
        },
    )
    with made:
        made.start('standalone')
        made.provider_of('PGPU')
        made.provider_of('FPGA')
        yield made


def test_placement_is_told_what_can_be_scheduled(cloud: Cloud) -> None:
    providers = cloud.providers()
    assert set(providers) == {f'{cloud.host}_0000:3b:00.0', f'{cloud.host}_FakeDevice'}
    card = providers[f'{cloud.host}_0000:3b:00.0']['uuid']
    fake = providers[f'{cloud.host}_FakeDevice']['uuid']
    assert cloud.inventory(card)['PGPU']['total'] == 1
    assert cloud.inventory(fake)['FPGA']['total'] == 16
    path = f'/resource_providers/{card}/traits'
    traits = expect(cloud.placement.ask('GET', path), 200)['traits']
    assert set(traits) == {'OWNER_CYBORG', 'CUSTOM_NVIDIA_1EB8'}


def test_devices_are_shown(cloud: Cloud) -> None:
    devices = expect(cloud.api().ask('GET', '/v2/devices'), 200)['devices']
    assert {(one['type'], one['hostname']) for one in devices} == {
        ('GPU', cloud.host),
        ('FPGA', cloud.host),
    }


@pytest.mark.parametrize(
    ('resource_class', 'count', 'handle_type'),
    [('PGPU', 1, 'PCI'), ('FPGA', 3, 'TEST_PCI')],
)
def test_an_instance_gets_its_accelerators_and_gives_them_back(
    cloud: Cloud, resource_class: str, count: int, handle_type: str
) -> None:
    """Twice: what was not given back would be missing the second time."""
    for _boot in range(2):
        instance = cloud.boot(resource_class, count)
        cloud.until(instance.resolved, 'Nova hears of every request')
        assert [event['status'] for event in instance.events()] == ['completed'] * count
        shown = cloud.api(NOVA).ask('GET', f'{instance.path}&bind_state=resolved')
        arqs = expect(shown, 200)['arqs']
        assert {arq['state'] for arq in arqs} == {'Bound'}
        assert {arq['attach_handle_type'] for arq in arqs} == {handle_type}
        assert len({arq['attach_handle_uuid'] for arq in arqs}) == count
        instance.delete()
        cloud.until(instance.gone, 'the requests are gone')


def test_the_passthrough_handle_is_the_address_of_the_card(cloud: Cloud) -> None:
    instance = cloud.boot('PGPU')
    cloud.until(instance.resolved)
    (arq,) = instance.shown()
    assert arq['attach_handle_info'] == {
        'domain': '0000',
        'bus': '3b',
        'device': '00',
        'function': '0',
    }
    instance.delete()
    cloud.until(instance.gone)


def test_all_sixteen_can_be_had_at_once_and_a_seventeenth_fails(cloud: Cloud) -> None:
    full = cloud.boot('FPGA', 16)
    cloud.until(full.resolved)
    assert full.states() == {'Bound'}
    late = _bound_without_allocation(cloud, 'FPGA')
    assert late == {'BindFailed'}
    full.delete()
    cloud.until(full.gone)


def _bound_without_allocation(cloud: Cloud, resource_class: str) -> set[str]:
    """Nova never does so; the states that the requests end in."""
    instance = Instance(cloud, cloud.provider_of(resource_class), {resource_class: 1})
    instance.create_arqs(cloud.create_profile(resource_class))
    expect(instance.bind(), 202)
    cloud.until(instance.resolved)
    assert [event['status'] for event in instance.events()] == ['failed']
    states = instance.states()
    expect(cloud.api(NOVA).ask('DELETE', instance.path), 204)
    return states


def test_a_user_needs_no_service_token_to_look_and_needs_one_to_bind(
    cloud: Cloud,
) -> None:
    path = '/v2/accelerator_requests'
    expect(cloud.api(USER).ask('GET', path), 200)
    answer = cloud.api(ADMIN).ask('DELETE', f'{path}?instance={ADMIN["X-User-Id"]}')
    assert answer.status == 403
    assert 'requires a service token' in json.dumps(answer.body)


def test_one_request_id_leads_from_the_api_to_the_event(cloud: Cloud) -> None:
    (child,) = cloud.children
    instance = cloud.boot('FPGA')
    cloud.until(instance.resolved)
    instance.delete()
    (told,) = lines_of(child, f'binds of {instance.uuid}')
    request = next(word for word in told.split() if word.startswith('req-'))
    (accepted,) = [line for line in lines_of(child, request) if 'PATCH' in line]
    assert 'cyborg_lite.api' in accepted
    assert 'cyborg_lite.conductor' in told


def test_the_log_is_loud_about_trust_and_silent_about_errors(cloud: Cloud) -> None:
    (child,) = cloud.children
    assert lines_of(child, 'AUTHENTICATION IS OFF')
    assert not lines_of(child, ' ERROR ')
    assert not lines_of(child, 'Traceback')


def test_an_identical_report_changes_nothing(cloud: Cloud) -> None:
    """The generation of a provider counts every write to it."""

    def generations() -> dict[str, int]:
        return {name: one['generation'] for name, one in cloud.providers().items()}

    (child,) = cloud.children
    before = generations()
    reports = len(lines_of(child, 'Reported'))
    beats = _heartbeats(cloud)
    cloud.until(lambda: _heartbeats(cloud) > beats, 'the agent is heard again')
    assert generations() == before
    assert len(lines_of(child, 'Reported')) == reports


def _heartbeats(cloud: Cloud) -> str:
    """The time of the agent's last one, as the status command reads it."""
    with closing(sqlite3.connect(cloud.directory / 'db.sqlite')) as database:
        query = "SELECT heartbeat_at FROM services WHERE binary = 'cyborg-lite-agent'"
        ((when,),) = database.execute(query).fetchall()
        return str(when)


def test_status_shows_the_daemons(cloud: Cloud) -> None:
    config = str(cloud.directory / 'standalone.conf')
    done = subprocess.run(
        [sys.executable, '-m', 'cyborg_lite.cmd.status', '--config-file', config],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'cyborg-lite-agent' in done.stdout
    assert 'cyborg-lite-conductor' in done.stdout


def test_it_ends_cleanly_and_goes_on_with_its_data(tmp_path: Path) -> None:
    made = Cloud(
        tmp_path,
        transport_url='local://',
        connection=f'sqlite:///{tmp_path}/db.sqlite',
    )
    with made:
        first = made.start('standalone')
        instance = made.boot('FPGA')
        made.until(instance.resolved)
        assert first.end() == 0
        assert lines_of(first, 'Stopped.')
        first.log.unlink()
        second = made.start('standalone')
        assert instance.states() == {'Bound'}
        instance.delete()
        made.until(instance.gone)
        assert second.end() == 0
