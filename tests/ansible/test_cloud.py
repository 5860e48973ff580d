# SPDX-License-Identifier: Apache-2.0
"""Test of the role ``cloud`` with real MariaDB, RabbitMQ and Keystone."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from tests.ansible.collection import PROGRAMS, Play
from tests.servers.keystone import PASSWORD, RealKeystone, keystone

__all__ = ['keystone']

REQUIRED: Final = 'CYBORG_LITE_TEST_REQUIRE_SERVERS'
_SQL: Final = ('mysql', '--batch', '--skip-column-names', '--execute')
_REGION: Final = 'RegionOne'
_AGENT_HOST: Final = 'compute-1.example'
_BROKER: Final = ('rabbitmqctl', '--quiet')


def _run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def name() -> Iterator[str]:
    """Name of a database, a virtual host and users, which are removed at the end."""
    if shutil.which(_SQL[0]) is None or shutil.which(_BROKER[0]) is None:
        reason = 'The commands mysql and rabbitmqctl are required.'
        if os.environ.get(REQUIRED):
            pytest.fail(reason)
        pytest.skip(reason)
    name = f'cyborg_lite_role_{uuid4().hex[:8]}'
    yield name
    _run(*_SQL, f"DROP DATABASE IF EXISTS {name}; DROP USER IF EXISTS '{name}'@'%'")
    _run(*_BROKER, 'delete_vhost', name)
    for user in (name, f'{name}-api', f'{name}-{_AGENT_HOST}'):
        _run(*_BROKER, 'delete_user', user)


def test_cloud_creates_entities_once(
    collections: Path, keystone: RealKeystone, name: str
) -> None:
    administrator = {
        'OS_AUTH_URL': keystone.url,
        'OS_USERNAME': 'admin',
        'OS_PASSWORD': PASSWORD,
        'OS_PROJECT_NAME': 'admin',
        'OS_USER_DOMAIN_ID': 'default',
        'OS_PROJECT_DOMAIN_ID': 'default',
        'OS_IDENTITY_API_VERSION': '3',
    }
    client = str(PROGRAMS / 'openstack')
    # A cloud has its region.
    assert _run(client, 'region', 'create', _REGION, **administrator).returncode == 0
    variables = {
        'cyborg_lite_openstack': client,
        'cyborg_lite_environment': administrator,
        'cyborg_lite_database_name': name,
        'cyborg_lite_database_user': name,
        'cyborg_lite_database_password': 'secret',
        'cyborg_lite_virtual_host': name,
        'cyborg_lite_rabbit_user': name,
        'cyborg_lite_rabbit_password': 'secret',
        'cyborg_lite_api_password': 'secret',
        'cyborg_lite_agent_passwords': {_AGENT_HOST: 'secret'},
        'cyborg_lite_keystone_user': name,
        'cyborg_lite_keystone_password': PASSWORD,
        'cyborg_lite_service_project': 'admin',
        'cyborg_lite_region': _REGION,
    }
    play = Play(collections, ('cyborg_lite_cloud',), variables)
    first = play.run('site')
    assert first.returncode == 0, first.output
    assert 'secret' not in first.output
    assert name in _run(*_SQL, 'SHOW DATABASES').stdout.split()
    permissions = _run(*_BROKER, 'list_permissions', '--vhost', name).stdout
    limits = {line.split('\t')[0]: line for line in permissions.splitlines()}
    assert limits[name].endswith('.*\t.*\t.*')
    assert '.*' not in limits[f'{name}-api']
    own_queue = r'cyborg_lite\.agent(_fanout|\.compute\-1\.example)?'
    assert own_queue in limits[f'{name}-{_AGENT_HOST}']
    keys = _run(*_BROKER, 'list_topic_permissions', '--vhost', name).stdout
    assert r'^cyborg_lite\.agent(\.compute\-1\.example)?$' in keys
    assert keystone.token(
        name, {'project': {'name': 'admin', 'domain': {'id': 'default'}}}
    )
    second = play.run('site')
    assert (second.returncode, second.change_count) == (0, 0), second.output
