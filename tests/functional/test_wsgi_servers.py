# SPDX-License-Identifier: Apache-2.0
"""The API in a web server that is not ours: gunicorn, with workers and threads."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from devstack.launcher.processes import Child
from devstack.launcher.rest import Service
from tests.fakes import rabbitmq
from tests.fakes.stack import ADMIN, Cloud, expect

# Loaded before the workers are made, where an application may do least.
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
    made = Cloud(
        directory,
        transport_url=bus,
        connection=f'sqlite:///{directory}/db.sqlite',
    )
    with made:
        made.migrate()
        made.start('conductor')
        made.start('agent')
        gunicorn = serve(made)
        yield made
        assert gunicorn.end() == 0
        assert 'Traceback' not in made.log(gunicorn)


def serve(cloud: Cloud) -> Child:
    child = Child('gunicorn', cloud.directory / 'gunicorn.log')
    cloud.children.append(child)
    config = str(cloud.write_config('gunicorn', {}))
    command = [*_COMMAND, '--bind', f'127.0.0.1:{cloud.port}']
    child.start(command, {'CYBORG_LITE_CONFIG': config})
    child.until(cloud.api().answers)
    return child


def test_the_version_documents_are_served(cloud: Cloud) -> None:
    root = expect(cloud.api().ask('GET', '/'), 200)
    assert root['versions'][0]['id'] == 'v2'
    version = expect(cloud.api().ask('GET', '/v2'), 200)
    assert version['links'][0]['href'] == f'http://127.0.0.1:{cloud.port}/v2/'


def test_an_instance_gets_its_accelerators_and_gives_them_back(cloud: Cloud) -> None:
    instance = cloud.boot('FPGA', 2)
    cloud.until(instance.resolved, 'Nova hears of every request')
    assert instance.states() == {'Bound'}
    instance.delete()
    cloud.until(instance.gone)


def test_callers_at_once_are_answered_by_all_workers(cloud: Cloud) -> None:
    """Each has a connection of its own to the bus, made after the fork."""
    with ThreadPoolExecutor(8) as pool:
        ask = cloud.api(ADMIN).ask
        answers = list(
            pool.map(lambda _number: ask('GET', '/v2/device_profiles'), range(32))
        )
    assert {answer.status for answer in answers} == {200}


def test_what_is_wrong_is_said_as_by_our_own_server(cloud: Cloud) -> None:
    refused = cloud.api().ask('POST', '/v2/device_profiles', [{'name': 'x'}])
    assert (refused.status, refused.body['errors'][0]['status']) == (400, 400)
    stranger = Service(f'http://127.0.0.1:{cloud.port}')
    assert stranger.ask('GET', '/v2/devices').status == 401
