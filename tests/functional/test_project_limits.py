# SPDX-License-Identifier: Apache-2.0
"""Limits of projects in a real Keystone, checked by a whole conductor."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.daemons import conductor
from cyborg_lite.errors.arqs import ProjectLimitExceeded
from cyborg_lite.model.hosts.services import CONDUCTOR
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_conductor
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.interface import Conductor
from tests.servers.databases import create_sqlite_file
from tests.servers.keystone import RealKeystone, keystone

__all__ = ['keystone']

OPTIONS = """
[DEFAULT]
transport_url = local:///{bus}
host = controller-1
[database]
connection = {database}
[placement]
endpoint_override = http://127.0.0.1:1
connect_retries = 0
"""


@pytest.fixture(scope='module')
def limited_cloud(
    keystone: RealKeystone, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Conductor, str, str]]:
    """Return a client of a conductor with limits, a limited project, and another."""
    kind = f'accelerator-{uuid4().hex[:8]}'
    service = keystone.publish(kind, 'http://127.0.0.1:6666')
    projects = [keystone.project(f'limits-{name}') for name in ('a', 'b')]
    for name, default in (('accelerator_requests', -1), ('class:PGPU', 4)):
        keystone.register_limit(service, name, default)
    keystone.limit_project(service, projects[0], 'class:PGPU', 2)
    directory: Path = tmp_path_factory.mktemp('limits')
    file = directory / 'cyborg-lite.conf'
    file.write_text(
        OPTIONS.format(
            bus=uuid4(), database=create_sqlite_file(directory / 'db.sqlite')
        )
        + keystone.create_limits_reader(kind)
    )
    conf = configuration.parse(['--config-file', str(file)], CONDUCTOR)
    daemon = conductor.build(conf)
    daemon.start()
    yield connect_conductor(transport.connect(conf)), projects[0], projects[1]
    daemon.stop()
    daemon.wait()
    keystone.withdraw(service)


def add_profile(client: Conductor, resource_class: str) -> str:
    name = f'profile-{uuid4()}'
    groups = ({f'resources:{resource_class}': '2'},)
    admin = RequestContext(user_id='u', project_id='admin', is_admin=True)
    created = datetime(2026, 11, 22, tzinfo=UTC)
    profile = DeviceProfile(str(uuid4()), name, None, groups, created)
    client.create_device_profiles(admin, [profile])
    return name


def test_project_and_registered_limits_are_enforced(
    limited_cloud: tuple[Conductor, str, str],
) -> None:
    client, first, second = limited_cloud
    name = add_profile(client, 'PGPU')
    contexts = [
        RequestContext(user_id='u', project_id=project) for project in (first, second)
    ]
    assert len(client.create_arqs(contexts[0], name)) == 2
    with pytest.raises(ProjectLimitExceeded, match='the limit is 2') as caught:
        client.create_arqs(contexts[0], name)
    assert caught.value.code == 403
    # The other project has the registered limit.
    assert len(client.create_arqs(contexts[1], name)) == 2
    assert len(client.create_arqs(contexts[1], name)) == 2
    with pytest.raises(ProjectLimitExceeded, match='the limit is 4'):
        client.create_arqs(contexts[1], name)


def test_unregistered_class_is_refused(
    limited_cloud: tuple[Conductor, str, str],
) -> None:
    client, first, _ = limited_cloud
    name = add_profile(client, 'VGPU')
    context = RequestContext(user_id='u', project_id=first)
    with pytest.raises(ProjectLimitExceeded, match='class:VGPU would be 2'):
        client.create_arqs(context, name)
