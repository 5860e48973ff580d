# SPDX-License-Identifier: Apache-2.0
"""Separate daemons over RabbitMQ: several of each, on both database servers, in both
ways of running things side by side."""

import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.fakes import rabbitmq
from tests.fakes.databases import fresh_database
from tests.fakes.stack import NOVA, USER, Cloud, expect, lines_of

# eventlet goes with drivers that it can patch: psycopg 3 is none.
KINDS: Final = [
    ('mariadb', 'threading'),
    ('postgresql', 'threading'),
    ('mariadb', 'eventlet'),
]


@pytest.fixture(scope='module')
def bus() -> Iterator[str]:
    with rabbitmq.virtual_host() as url:
        yield url


@pytest.fixture(scope='module', params=KINDS, ids='-'.join)
def cloud(
    request: pytest.FixtureRequest, bus: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    """Two conductors, an API with two workers, an agent."""
    kind, concurrency = request.param
    database = fresh_database(kind)
    with ExitStack() as cleanup:
        connection = next(database)
        cleanup.callback(next, database, None)
        made = Cloud(
            tmp_path_factory.mktemp(f'{kind}-{concurrency}'),
            transport_url=bus,
            connection=connection,
            concurrency=concurrency,
        )
        cleanup.enter_context(made)
        made.migrate()
        made.start('conductor', name='conductor-1', host='conductor-1')
        made.start('conductor', name='conductor-2', host='conductor-2')
        made.start('agent')
        made.start('api', workers=2)
        yield made


def test_an_instance_gets_its_accelerators_and_gives_them_back(cloud: Cloud) -> None:
    for _boot in range(2):
        instance = cloud.boot('FPGA', 2)
        cloud.until(instance.resolved, 'Nova hears of every request')
        assert [event['status'] for event in instance.events()] == ['completed'] * 2
        assert instance.states() == {'Bound'}
        instance.delete()
        cloud.until(instance.gone)


def test_many_at_once_get_one_handle_each(cloud: Cloud) -> None:
    """Sixteen instances, sixteen handles, two conductors, two API workers."""
    cloud.provider_of('FPGA')
    with ThreadPoolExecutor(8) as pool:
        instances = list(pool.map(lambda _number: cloud.boot('FPGA'), range(16)))
    for instance in instances:
        cloud.until(instance.resolved)
    handles = Counter(
        arq['attach_handle_uuid'] for one in instances for arq in one.shown()
    )
    assert len(handles) == 16
    assert set(handles.values()) == {1}
    for instance in instances:
        assert len(instance.events()) == 1
        instance.delete()
    for instance in instances:
        cloud.until(instance.gone)


def test_the_work_is_shared(cloud: Cloud) -> None:
    """Each conductor takes calls, and each API worker takes requests."""

    def both(prefix: str, word: str) -> bool:
        expect(cloud.api(USER).ask('GET', '/v2/accelerator_requests'), 200)
        children = [one for one in cloud.children if one.log.name.startswith(prefix)]
        processes = {
            line.split()[2]
            for child in children
            for line in lines_of(child, word)
            if line[:2] == '20'
        }
        return len(processes) >= 2

    cloud.until(lambda: both('api', 'cyborg_lite.api.frame'), 'both workers answer')


def test_each_daemon_says_what_it_is(cloud: Cloud) -> None:
    for child in cloud.children[1:]:
        (line,) = lines_of(child, ' on host ')
        assert 'transport rabbit://' in line
        assert 'guest:' not in line
        # The API and the agent open no database, and need no password of one.
        opens = 'conductor' in child.name
        assert ('database ' in line) == opens


def test_a_reload_is_heard_and_ends_nothing(cloud: Cloud) -> None:
    child = next(one for one in cloud.children if one.log.name == 'conductor-1.log')
    config = child.log.with_suffix('.conf')
    text = config.read_text()
    config.write_text(text.replace('[DEFAULT]\n', '[DEFAULT]\ndebug = true\n'))
    child.signal(signal.SIGHUP)
    cloud.until(lambda: lines_of(child, 'Reloaded the configuration'))
    config.write_text(text)
    child.signal(signal.SIGHUP)
    cloud.until(lambda: len(lines_of(child, 'Reloaded the configuration')) == 2)
    instance = cloud.boot('FPGA')
    cloud.until(instance.resolved)
    instance.delete()
    cloud.until(instance.gone)


def test_one_conductor_is_enough(cloud: Cloud) -> None:
    """SIGTERM ends the other at once and cleanly; nobody notices."""
    leaving = next(one for one in cloud.children if one.log.name == 'conductor-2.log')
    with ThreadPoolExecutor(4) as pool:
        booted = [pool.submit(cloud.boot, 'FPGA') for _number in range(8)]
        assert leaving.end() == 0
        instances = [one.result() for one in booted]
    for instance in instances:
        cloud.until(instance.resolved)
        assert instance.states() == {'Bound'}
        assert len(instance.events()) == 1
        instance.delete()
    assert lines_of(leaving, 'Stopped.')
    assert not lines_of(leaving, 'Traceback')
    cloud.restart(leaving, 'conductor', name='conductor-2', host='conductor-2')


def test_an_api_that_ends_spoils_no_answer(cloud: Cloud) -> None:
    """Whoever is let in is answered; whoever is not may try elsewhere."""
    api = next(one for one in cloud.children if one.log.name == 'api.log')
    answers: Counter[int] = Counter()

    def ask_until_refused() -> None:
        with suppress(OSError):
            while True:
                asked = cloud.api(NOVA).ask('GET', '/v2/accelerator_requests')
                answers[asked.status] += 1

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask_until_refused) for _thread in range(4)]
        cloud.until(lambda: answers[200] > 20)
        assert api.end() == 0
        for one in asking:
            one.result()
    assert set(answers) == {200}
    assert not lines_of(api, 'Traceback')
    cloud.restart(api, 'api', workers=2)
    assert cloud.api(NOVA).ask('GET', '/v2/devices').status == 200


def test_an_agent_ends_cleanly_and_comes_back(cloud: Cloud) -> None:
    agent = next(one for one in cloud.children if one.log.name == 'agent.log')
    assert agent.end() == 0
    assert lines_of(agent, 'Stopped.')
    cloud.restart(agent, 'agent')
    instance = cloud.boot('FPGA')
    cloud.until(instance.resolved)
    instance.delete()
    cloud.until(instance.gone)


def test_no_log_has_a_traceback(cloud: Cloud, tmp_path: Path) -> None:
    for child in cloud.children:
        assert not lines_of(child, 'Traceback'), child.log
