# SPDX-License-Identifier: Apache-2.0
"""API in a foreign web server: gunicorn with workers and threads."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from devstack.launcher.processes import Child
from devstack.launcher.rest import Service
from tests.servers import rabbitmq
from tests.servers.stack import ADMIN, Cloud, expect

# Loaded before the fork, where an application is most restricted.
_COMMAND: Final = (
    *(sys.executable, '-m', 'gunicorn', '--preload'),
    *('--workers', '2', '--threads', '4', '--graceful-timeout', '20'),
    'cyborg_lite.wsgi.api:application',
)


@pytest.fixture(scope='module')
def bus() -> Iterator[str]:
    with rabbitmq.virtual_host() as url:
        yield url


@pytest.fixture(scope='module')
def cloud(bus: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    directory = tmp_path_factory.mktemp('wsgi')
    created = Cloud(
        directory,
        transport_url=bus,
        connection=f'sqlite:///{directory}/db.sqlite',
    )
    with created:
        created.migrate()
        created.start('conductor')
        created.start('agent')
        gunicorn = serve(created)
        yield created
        assert gunicorn.end() == 0
        assert 'Traceback' not in created.log(gunicorn)


def serve(cloud: Cloud) -> Child:
    child = Child('gunicorn', cloud.directory / 'gunicorn.log')
    cloud.children.append(child)
    config = str(cloud.write_config('gunicorn', {}))
    command = [*_COMMAND, '--bind', f'127.0.0.1:{cloud.port}']
    child.start(command, {'CYBORG_LITE_CONFIG': config})
    child.until(cloud.api().answers)
    return child


def test_version_documents_are_served(cloud: Cloud) -> None:
    root = expect(cloud.api().ask('GET', '/'), 200)
    assert root['versions'][0]['id'] == 'v2'
    version = expect(cloud.api().ask('GET', '/v2'), 200)
    assert version['links'][0]['href'] == f'http://127.0.0.1:{cloud.port}/v2/'


def test_instance_binds_and_releases_its_accelerators(cloud: Cloud) -> None:
    instance = cloud.boot_bound('FPGA', 2)
    instance.end()


def test_concurrent_requests_use_all_workers(cloud: Cloud) -> None:
    """A worker has its own connection to the bus, opened after the fork."""
    with ThreadPoolExecutor(8) as pool:
        ask = cloud.api(ADMIN).ask
        answers = list(
            pool.map(lambda _number: ask('GET', '/v2/device_profiles'), range(32))
        )
    assert {answer.status for answer in answers} == {200}


def test_errors_equal_those_of_own_server(cloud: Cloud) -> None:
    refused = cloud.api().ask('POST', '/v2/device_profiles', [{'name': 'x'}])
    assert (refused.status, refused.body['errors'][0]['status']) == (400, 400)
    anonymous = Service(f'http://127.0.0.1:{cloud.port}')
    assert anonymous.ask('GET', '/v2/devices').status == 401
