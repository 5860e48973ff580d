# SPDX-License-Identifier: Apache-2.0
"""Commands of hardware sets in the ``openstack`` program, against a running service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.hardware_sets import write_hardware_set
from tests.servers import openstack_program
from tests.servers.keystone import RealKeystone, keystone
from tests.servers.keystone_cloud import KeystoneCloud
from tests.servers.openstack_program import OWN, Done, OpenStackProgram

__all__ = ['keystone']


@pytest.fixture(scope='module')
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the hardware set."""
    return tmp_path_factory.mktemp('sets') / 'ansible'


@pytest.fixture(scope='module')
def cloud(
    keystone: RealKeystone, tmp_path_factory: pytest.TempPathFactory, root: Path
) -> Iterator[KeystoneCloud]:
    """Start one process whose conductor has a hardware set for the fake FPGA."""
    cloud = KeystoneCloud(tmp_path_factory.mktemp('cloud'), keystone)
    sets = write_hardware_set(root, cloud.host)
    cloud.configure({'conductor': {'hardware_sets': sets}})
    with cloud:
        cloud.start('standalone')
        cloud.provider_of('FPGA')
        yield cloud


@pytest.fixture(scope='module')
def program(cloud: KeystoneCloud) -> Iterator[OpenStackProgram]:
    """Start the program as an administrator."""
    variables = openstack_program.environment(cloud.keystone, cloud.admin)
    with OpenStackProgram(variables, OWN) as program:
        yield program


@pytest.fixture
def device(program: OpenStackProgram) -> str:
    """Return the uuid of the fake FPGA."""
    listing = program.run('accelerator', 'device', 'list', '-f', 'json').json
    (uuid,) = (row['uuid'] for row in listing)
    return str(uuid)


def reconfigure(program: OpenStackProgram, device: str, *arguments: str) -> Done:
    command = ('accelerator', 'device', 'reconfigure', device, 'boards')
    return program.run(*command, *arguments)


def test_hardware_sets_are_listed(program: OpenStackProgram, device: str) -> None:
    command = ('accelerator', 'device', 'hardware', 'set', 'list', device)
    assert program.run(*command, '-f', 'json').json == [
        {
            'Set': 'boards',
            'Required Settings': ['count'],
            'Settings': {'count': {'type': 'integer', 'maximum': 8}},
        }
    ]
    table = program.run(*command, '--max-width', '80').out
    assert max(map(len, table.splitlines())) <= 80


def test_device_reconfigure_waits_for_playbooks(
    program: OpenStackProgram, device: str, root: Path
) -> None:
    (root / 'loaded').touch()
    options = ('--setting', 'count=4', '--wait', '-f', 'json')
    changed = reconfigure(program, device, *options)
    assert (changed.json['state'], changed.json['settings']) == (
        'succeeded',
        {'count': 4},
    )
    assert changed.error.splitlines()[-1].startswith('100%')
    assert (root / 'runs').read_text().splitlines() == ['teardown', 'set up 4']


@pytest.mark.parametrize(
    ('setting', 'text'), [('count=9', 'maximum'), ('number=1', 'number')]
)
def test_device_reconfigure_invalid_setting_is_refused(
    program: OpenStackProgram, device: str, setting: str, text: str
) -> None:
    refused = reconfigure(program, device, '--setting', setting)
    assert (refused.status, refused.out) == (1, '')
    assert text in refused.error
    assert refused.error.count('\n') == 1
