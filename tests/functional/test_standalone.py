# SPDX-License-Identifier: Apache-2.0
"""Single process with all services, a real Placement, and the life cycle of ARQs."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.hosts import sysfs_tree
from tests.servers.stack import (
    NOVA,
    Cloud,
    expect,
    lines_of,
)


@pytest.fixture(scope='module')
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """Yield a host with one NVIDIA card for passthrough, and the fake device."""
    directory = tmp_path_factory.mktemp('standalone')
    sysfs_tree.build('t4-mdev', directory / 'host')
    created = Cloud(
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
    with created:
        created.start('standalone')
        created.provider_of('PGPU')
        created.provider_of('FPGA')
        yield created


@pytest.mark.parametrize(
    ('resource_class', 'count', 'handle_type'),
    [('PGPU', 1, 'PCI'), ('FPGA', 3, 'TEST_PCI')],
)
def test_instance_binds_and_releases_its_accelerators(
    cloud: Cloud, resource_class: str, count: int, handle_type: str
) -> None:
    """Twice, because unreleased handles would be missing the second time."""
    for _boot in range(2):
        instance = cloud.boot_bound(resource_class, count)
        assert [event['status'] for event in instance.events()] == ['completed'] * count
        answer = cloud.api(NOVA).ask('GET', f'{instance.path}&bind_state=resolved')
        arqs = expect(answer, 200)['arqs']
        assert {arq['state'] for arq in arqs} == {'Bound'}
        assert {arq['attach_handle_type'] for arq in arqs} == {handle_type}
        assert len({arq['attach_handle_uuid'] for arq in arqs}) == count
        instance.end()


def test_passthrough_handle_is_address_of_card(cloud: Cloud) -> None:
    instance = cloud.boot_bound('PGPU')
    (arq,) = instance.list_arqs()
    assert arq['attach_handle_info'] == {
        'domain': '0000',
        'bus': '3b',
        'device': '00',
        'function': '0',
        'managed': 'true',
    }
    instance.end()


def test_log_warns_about_missing_authentication(cloud: Cloud) -> None:
    (child,) = cloud.children
    assert lines_of(child, 'AUTHENTICATION IS OFF')
    assert not lines_of(child, ' ERROR ')
    assert not lines_of(child, 'Traceback')


def test_repeated_report_changes_no_provider(cloud: Cloud) -> None:
    """A write to a provider would increment its generation."""

    def generations() -> dict[str, int]:
        return {name: entry['generation'] for name, entry in cloud.providers().items()}

    (child,) = cloud.children
    before = generations()
    reports = len(lines_of(child, 'Reported'))
    beats = _heartbeats(cloud)
    cloud.until(lambda: _heartbeats(cloud) > beats, 'the agent is up again')
    assert generations() == before
    assert len(lines_of(child, 'Reported')) == reports


def _heartbeats(cloud: Cloud) -> str:
    """Return the time of the agent's last heartbeat from the status command."""
    with closing(sqlite3.connect(cloud.directory / 'db.sqlite')) as database:
        query = "SELECT heartbeat_at FROM services WHERE binary = 'cyborg-lite-agent'"
        ((when,),) = database.execute(query).fetchall()
        return str(when)


def test_status_command_shows_daemons(cloud: Cloud) -> None:
    status, output = cloud.run('status')
    assert status == 0, output
    assert 'cyborg-lite-agent' in output
    assert 'cyborg-lite-conductor' in output


def test_restart_is_clean_and_keeps_data(tmp_path: Path) -> None:
    created = Cloud(
        tmp_path,
        transport_url='local://',
        connection=f'sqlite:///{tmp_path}/db.sqlite',
    )
    with created:
        first = created.start('standalone')
        instance = created.boot_bound('FPGA')
        assert first.end() == 0
        assert lines_of(first, 'Stopped.')
        first.log.unlink()
        second = created.start('standalone')
        assert instance.states() == {'Bound'}
        instance.end()
        assert second.end() == 0
