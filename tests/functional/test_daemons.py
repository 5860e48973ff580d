# SPDX-License-Identifier: Apache-2.0
"""Separate daemons over RabbitMQ: several of each, with both concurrency backends.

``tests/chaos/history`` runs daemons on both database servers.
"""

import functools
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from tests.servers import rabbitmq
from tests.servers.databases import fresh_database
from tests.servers.stack import NOVA, USER, Cloud, expect, lines_of

# eventlet needs drivers that it can patch, and psycopg 3 is not one of them.
KINDS: Final = [('mariadb', 'threading'), ('mariadb', 'eventlet')]


@pytest.fixture(scope='module')
def bus() -> Iterator[str]:
    with rabbitmq.virtual_host() as url:
        yield url


@pytest.fixture(scope='module', params=KINDS, ids='-'.join)
def cloud(
    request: pytest.FixtureRequest, bus: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    """Yield two conductors, an API with two workers, and an agent."""
    backend, concurrency = request.param
    database = fresh_database(backend)
    with ExitStack() as cleanup:
        connection = next(database)
        cleanup.callback(next, database, None)
        created = Cloud(
            tmp_path_factory.mktemp(f'{backend}-{concurrency}'),
            transport_url=bus,
            connection=connection,
            concurrency=concurrency,
        )
        cleanup.enter_context(created)
        created.migrate()
        created.start('conductor', name='conductor-1', host='conductor-1')
        created.start('conductor', name='conductor-2', host='conductor-2')
        created.start('agent')
        created.start('api', workers=2)
        yield created


def test_instance_binds_and_releases_its_accelerators(cloud: Cloud) -> None:
    for _boot in range(2):
        instance = cloud.boot_bound('FPGA', 2)
        assert [event['status'] for event in instance.events()] == ['completed'] * 2
        assert instance.states() == {'Bound'}
        instance.end()


def test_log_lines_follow_arq_and_request_of_nova(cloud: Cloud) -> None:
    """Lines at INFO name the ARQ from the bind to the event, with the ids of Nova."""
    request = f'req-{uuid4()}'
    instance = cloud.request('FPGA')
    answer = instance.bind({**NOVA, 'X-OpenStack-Request-Id': request})
    assert answer.status == 202
    cloud.until(instance.is_resolved)
    (arq,) = instance.arqs
    ids = (request, NOVA['X-User-Id'], NOVA['X-Project-Id'])

    def is_logged(step: str) -> bool:
        lines = [line for child in cloud.children for line in lines_of(child, step)]
        return any(all(word in line for word in (arq, *ids)) for line in lines)

    for step in ('Accepted the bind', 'Bound ARQs', 'Sent 1 events'):
        cloud.until(functools.partial(is_logged, step), f'{step} is logged')
    (api,) = [child for child in cloud.children if child.log.name == 'api.log']
    assert any('PATCH' in line for line in lines_of(api, request))
    instance.end()


def test_concurrent_binds_get_one_handle_each(cloud: Cloud) -> None:
    """Sixteen instances compete for sixteen handles."""
    cloud.provider_of('FPGA')
    with ThreadPoolExecutor(8) as pool:
        instances = list(pool.map(lambda _number: cloud.boot('FPGA'), range(16)))
    for instance in instances:
        cloud.until(instance.is_resolved)
    handles = Counter(
        arq['attach_handle_uuid']
        for instance in instances
        for arq in instance.list_arqs()
    )
    assert len(handles) == 16
    assert set(handles.values()) == {1}
    for instance in instances:
        assert len(instance.events()) == 1
        instance.delete()
    for instance in instances:
        cloud.until(instance.are_arqs_deleted)


def test_work_is_distributed_over_conductors_and_workers(cloud: Cloud) -> None:
    """Conductors execute RPC calls, and API workers answer requests."""

    def are_two_processes_active(prefix: str, word: str) -> bool:
        expect(cloud.api(USER).ask('GET', '/v2/accelerator_requests'), 200)
        children = [
            child for child in cloud.children if child.log.name.startswith(prefix)
        ]
        processes = {
            line.split()[2]
            for child in children
            for line in lines_of(child, word)
            if line[:2] == '20'
        }
        return len(processes) >= 2

    cloud.until(
        lambda: are_two_processes_active('api', 'cyborg_lite.api.middleware'),
        'both workers answer',
    )


def test_daemons_log_their_version_and_configuration(cloud: Cloud) -> None:
    for child in cloud.children[1:]:
        (line,) = lines_of(child, ' on host ')
        assert 'transport rabbit://' in line
        assert 'guest:' not in line
        # The API and the agent open no database and need no password.
        opens = 'conductor' in child.name
        assert ('database ' in line) == opens


def test_sighup_reloads_without_interruption(cloud: Cloud) -> None:
    child = next(
        child for child in cloud.children if child.log.name == 'conductor-1.log'
    )
    config = child.log.with_suffix('.conf')
    text = config.read_text()
    config.write_text(text.replace('[DEFAULT]\n', '[DEFAULT]\ndebug = true\n'))
    child.signal(signal.SIGHUP)
    cloud.until(lambda: lines_of(child, 'Reloaded the configuration'))
    config.write_text(text)
    child.signal(signal.SIGHUP)
    cloud.until(lambda: len(lines_of(child, 'Reloaded the configuration')) == 2)
    instance = cloud.boot_bound('FPGA')
    instance.end()


def test_stop_of_one_conductor_interrupts_nothing(cloud: Cloud) -> None:
    """SIGTERM stops a conductor quickly and cleanly, and binds continue."""
    leaving = next(
        child for child in cloud.children if child.log.name == 'conductor-2.log'
    )
    with ThreadPoolExecutor(4) as pool:
        booted = [pool.submit(cloud.boot, 'FPGA') for _number in range(8)]
        assert leaving.end() == 0
        instances = [future.result() for future in booted]
    for instance in instances:
        instance.wait_until_bound()
        assert len(instance.events()) == 1
        instance.delete()
    assert lines_of(leaving, 'Stopped.')
    assert not lines_of(leaving, 'Traceback')
    cloud.restart(leaving, 'conductor', name='conductor-2', host='conductor-2')


def test_stop_of_api_loses_no_answer(cloud: Cloud) -> None:
    """Accepted requests are answered; refused clients may retry elsewhere."""
    api = next(child for child in cloud.children if child.log.name == 'api.log')
    answers: Counter[int] = Counter()

    def ask_until_refused() -> None:
        with suppress(OSError):
            while True:
                answer = cloud.api(NOVA).ask('GET', '/v2/accelerator_requests')
                answers[answer.status] += 1

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask_until_refused) for _thread in range(4)]
        cloud.until(lambda: answers[200] > 20)
        assert api.end() == 0
        for future in asking:
            future.result()
    assert set(answers) == {200}
    assert not lines_of(api, 'Traceback')
    cloud.restart(api, 'api', workers=2)
    assert cloud.api(NOVA).ask('GET', '/v2/devices').status == 200


def test_agent_restart_is_clean(cloud: Cloud) -> None:
    agent = next(child for child in cloud.children if child.log.name == 'agent.log')
    assert agent.end() == 0
    assert lines_of(agent, 'Stopped.')
    cloud.restart(agent, 'agent')
    instance = cloud.boot_bound('FPGA')
    instance.end()


def test_logs_have_no_traceback(cloud: Cloud, tmp_path: Path) -> None:
    for child in cloud.children:
        assert not lines_of(child, 'Traceback'), child.log
