# SPDX-License-Identifier: Apache-2.0
"""Operations of each kind end where ``Location`` says, also over a killed conductor.

Programs, modes, configurations and cleanings need cards of their own; their tests are
in the modules of their subjects.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final
from uuid import uuid4

import pytest

from devstack.launcher.rest import Answer
from tests.chaos.faulty_cloud import FaultyCloud, run_cloud
from tests.servers import rabbitmq
from tests.servers.stack import ADMIN, NOVA, Instance

_VERSION: Final = {'OpenStack-API-Version': 'accelerator 2.7'}
_NOVA: Final = {**NOVA, **_VERSION}
_GONE: Final = 'gone-host'


@pytest.fixture(scope='module')
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyCloud]:
    directory = tmp_path_factory.mktemp('operations')
    connection = f'sqlite:///{directory}/db.sqlite'
    with (
        rabbitmq.virtual_host() as url,
        run_cloud(FaultyCloud(directory, url, connection, pause=1.0)) as running,
    ):
        running.start('conductor')
        yield running


def create_instance(cloud: FaultyCloud) -> Instance:
    instance = Instance(cloud, cloud.provider_of('VGPU'), {'VGPU': 1})
    instance.create_arqs(cloud.create_profile('VGPU', 1))
    cloud.until(instance.has_candidate, 'Placement offers a unit')
    instance.allocate()
    return instance


def bind(cloud: FaultyCloud) -> Answer:
    return create_instance(cloud).bind(_NOVA)


def unbind(cloud: FaultyCloud) -> Answer:
    instance = create_instance(cloud)
    instance.bind()
    cloud.until(instance.is_resolved, 'Nova receives the event')
    names = 'hostname', 'device_rp_uuid', 'instance_uuid'
    patch = [{'path': f'/{name}', 'op': 'remove'} for name in names]
    body = dict.fromkeys(instance.arqs, patch)
    return cloud.api(_NOVA).ask('PATCH', '/v2/accelerator_requests', body)


def request(kind: str) -> Callable[[FaultyCloud], Answer]:
    def ask(cloud: FaultyCloud) -> Answer:
        host = {} if kind == 'audit' else {'hostname': cloud.host}
        body = {'kind': kind, **host}
        return cloud.api({**ADMIN, **_VERSION}).ask('POST', '/v2/operations', body)

    return ask


def forget(cloud: FaultyCloud) -> Answer:
    columns = 'version, started_at, heartbeat_at, audited_at'
    with closing(sqlite3.connect(cloud.directory / 'db.sqlite')) as database, database:
        database.execute(
            f'INSERT INTO services (uuid, binary, host, state, {columns}, last_event, '
            f"report_number) SELECT ?, binary, ?, 'down', {columns}, 0, 0 "
            "FROM services WHERE binary = 'cyborg-lite-agent' LIMIT 1",
            (str(uuid4()), _GONE),
        )
    path = f'/v2/hosts/{_GONE}'
    return cloud.api({**ADMIN, **_VERSION}).ask('DELETE', path)


REQUESTS: Final[dict[str, Callable[[FaultyCloud], Answer]]] = {
    'bind': bind,
    'release': unbind,
    'audit': request('audit'),
    'reconcile': request('reconcile'),
    'refresh': request('refresh'),
    'forget': forget,
}


def follow(cloud: FaultyCloud, answer: Answer, kind: str) -> None:
    """Read the operation of an answer until it has succeeded."""
    assert answer.status == 202, answer.body
    path = f'/v2{answer.location.partition("/v2")[2]}'

    def read_end() -> object:
        response = cloud.api({**ADMIN, **_VERSION}).ask('GET', f'{path}?wait=5')
        assert response.status in (200, 503), response.body
        return response.body if response.body.get('ended_at') else None

    operation = cloud.until(read_end, f'the operation {kind} ends')
    assert (operation['kind'], operation['state']) == (kind, 'succeeded'), operation


@pytest.mark.parametrize('kind', REQUESTS)
def test_location_leads_to_end(cloud: FaultyCloud, kind: str) -> None:
    follow(cloud, REQUESTS[kind](cloud), kind)


@pytest.mark.parametrize('kind', REQUESTS)
def test_restarted_conductor_ends_operation(cloud: FaultyCloud, kind: str) -> None:
    answer = REQUESTS[kind](cloud)
    (conductor,) = (child for child in cloud.children if 'conductor' in child.name)
    conductor.kill()
    cloud.restart(conductor, 'conductor')
    follow(cloud, answer, kind)
