# SPDX-License-Identifier: Apache-2.0
"""The figures of a conductor, as those who collect them read them."""

import re
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing

import pytest

from cyborg_lite.conductor.inventory import Inventory
from cyborg_lite.conductor.job_attempts import Handler
from cyborg_lite.conductor.jobs import JobRunner, owner_of_process
from cyborg_lite.conductor.metrics import Metrics
from cyborg_lite.conductor.nova_events import NovaEventHandler
from cyborg_lite.conductor.pulses import Pulses
from cyborg_lite.db import jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import (
    ConfigurationError,
    HostAway,
    JobLost,
    ServiceUnavailable,
)
from cyborg_lite.model.jobs import Job, Kind, NewJob
from tests.fakes.http_service import Answer, HttpService
from tests.fakes.nova import FakeNova
from tests.fakes.rows import OWNER
from tests.unit.clients.test_nova import nova_at
from tests.unit.clients.test_placement import configured
from tests.unit.conductor.test_jobs import Scripted, ended, run_here


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def figure(metrics: Metrics, name: str, **labels: str) -> float:
    """0 where nothing of the kind has happened yet."""
    return read(metrics.text(), name, **labels)


def read(text: str, name: str, **labels: str) -> float:
    inner = ','.join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    full = f'cyborg_lite_{name}{{{inner}}}' if labels else f'cyborg_lite_{name}'
    found = re.search(f'^{re.escape(full)} (.*)$', text, re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.fixture
def handler(database: Database) -> Scripted:
    return Scripted(database)


@pytest.fixture
def runner(
    database: Database, handler: Scripted, metrics: Metrics
) -> Iterator[JobRunner]:
    handlers: dict[str, Handler] = {
        Kind.RELEASE: handler,
        Kind.BIND: handler,
        Kind.NOVA_EVENT: handler,
    }
    owner = owner_of_process(lease_seconds=30)
    runner = JobRunner(database, handlers, owner, 2, metrics)
    yield runner
    runner.stop()


# --- jobs -----------------------------------------------------------------------------


def results(metrics: Metrics) -> dict[str, float]:
    found = {
        result: figure(metrics, 'job_results_total', kind='release', result=result)
        for result in ('done', 'put-off', 'expired')
    }
    return {result: number for result, number in found.items() if number}


def test_a_job_that_is_done_is_counted(
    runner: JobRunner, handler: Scripted, database: Database, metrics: Metrics
) -> None:
    run_here(runner, database)
    ended(runner, handler)
    assert results(metrics) == {'done': 1}
    assert figure(metrics, 'job_attempts_total', kind='release') == 1
    assert figure(metrics, 'job_attempts_total', kind='bind') == 0


@pytest.mark.parametrize('limit_ms', [None, 1])
def test_an_attempt_in_vain_is_counted_by_what_came_of_it(
    runner: JobRunner,
    handler: Scripted,
    database: Database,
    metrics: Metrics,
    limit_ms: int | None,
) -> None:
    def away(job: Job) -> None:
        raise HostAway(host='compute-1')

    handler.act = away
    job = database.write(
        jobs.add_owned, NewJob(Kind.RELEASE, limit_ms=limit_ms), runner.owner
    )
    runner.start()
    runner.run(job)
    ended(runner, handler)
    assert results(metrics) == {'expired' if limit_ms else 'put-off': 1}


def test_a_lease_that_was_lost_is_counted(
    runner: JobRunner, handler: Scripted, database: Database, metrics: Metrics
) -> None:
    def lose(job: Job) -> None:
        raise JobLost(job=job.uuid)

    handler.act = lose
    run_here(runner, database)
    ended(runner, handler)
    assert figure(metrics, 'job_leases_lost_total', kind='release') == 1
    assert results(metrics) == {}


@pytest.mark.parametrize('succeeded', [True, False])
def test_a_bind_is_counted_by_its_end_with_the_time_since_it_was_accepted(
    runner: JobRunner,
    handler: Scripted,
    database: Database,
    metrics: Metrics,
    succeeded: bool,
) -> None:
    def become(job: Job) -> Job | None:
        if job.kind == Kind.NOVA_EVENT:
            handler.finish(job)
            return None
        told = NewJob(Kind.NOVA_EVENT, {'succeeded': succeeded})
        return database.write(jobs.become, job, told)

    handler.act = become
    database.write(jobs.add, NewJob(Kind.BIND))
    (job,) = database.write(jobs.take, runner.owner, 1)
    runner.start()
    runner.run(Job(job.uuid, job.kind, {}, job.owner, job.lease, age=20.0))
    ended(runner, handler)
    result = 'succeeded' if succeeded else 'failed'
    assert figure(metrics, 'bind_seconds_count', result=result) == 1
    assert figure(metrics, 'bind_seconds_bucket', le='10.0', result=result) == 0
    assert figure(metrics, 'bind_seconds_bucket', le='60.0', result=result) == 1


def test_a_job_that_is_taken_knows_its_age(database: Database) -> None:
    database.write(jobs.add, NewJob(Kind.RELEASE))
    (job,) = database.write(jobs.take, OWNER, 1)
    assert 0 <= job.age < 60


def test_the_queue_is_shown_as_it_is(database: Database, metrics: Metrics) -> None:
    metrics.watch(database)
    assert figure(metrics, 'jobs', kind='release', state='waiting') == 0
    for _ in range(2):
        database.write(jobs.add, NewJob(Kind.RELEASE))
    database.write(jobs.take, OWNER, 1)
    text = metrics.text()
    assert read(text, 'jobs', kind='release', state='waiting') == 1
    assert read(text, 'jobs', kind='release', state='running') == 1
    assert 'cyborg_lite_job_queue_age_seconds{kind="release"}' in text
    assert 0 <= read(text, 'job_queue_age_seconds', kind='release') < 60


def test_a_database_that_is_away_costs_only_its_own_figures(metrics: Metrics) -> None:
    metrics.watch(Database('sqlite:////nowhere/at/all.sqlite'))
    metrics.heartbeat_heard()
    assert figure(metrics, 'agent_heartbeats_total') == 1


# --- others ---------------------------------------------------------------------------


def test_events_are_counted_by_the_code_that_nova_gave(
    database: Database, metrics: Metrics
) -> None:
    payload = {'instance': '11111111-2222-3333-4444-555555555555', 'succeeded': True}
    with FakeNova() as nova:
        nova.rules.codes = {'arq-2': 422}
        handler = NovaEventHandler(database, nova_at(nova.endpoint), metrics)
        new = NewJob(Kind.NOVA_EVENT, {**payload, 'arqs': ['arq-1', 'arq-2']})
        handler.run(database.write(jobs.add_owned, new, OWNER))
    handler = NovaEventHandler(database, nova_at(None), metrics)
    new = NewJob(Kind.NOVA_EVENT, {**payload, 'arqs': ['arq-1']})
    handler.run(database.write(jobs.add_owned, new, OWNER))
    codes = {
        code: figure(metrics, 'nova_events_total', code=code)
        for code in ('200', '422', 'dropped')
    }
    assert codes == {'200': 1, '422': 1, 'dropped': 1}


def test_calls_of_placement_are_counted_answered_or_not(metrics: Metrics) -> None:
    with HttpService() as service:
        placement = configured(service.url)
        placement.watch(metrics.placement_answered)
        service.answers['GET /resource_providers/a/usages'] = Answer(
            200, {'usages': {}}
        )
        placement.usages('a')
        placement.provider('b')
        service.answers['GET /resource_providers/c'] = Answer(503)
        with pytest.raises(ServiceUnavailable):
            placement.provider('c')
    nobody = configured(f'http://127.0.0.1:{free_port()}')
    nobody.watch(metrics.placement_answered)
    with pytest.raises(ServiceUnavailable):
        nobody.provider('d')
    statuses = {
        status: figure(metrics, 'placement_calls_total', method='GET', status=status)
        for status in ('200', '404', '503', 'none')
    }
    assert statuses == {'200': 1, '404': 1, '503': 1, 'none': 1}


def test_heartbeats_are_counted(database: Database, metrics: Metrics) -> None:
    pulses = Pulses(database, threading.Event())
    inventory = Inventory(database, lambda: None, pulses, metrics.heartbeat_heard)
    for _ in range(3):
        inventory.heartbeat('compute-1', 'digest', '0.1.0')
    assert figure(metrics, 'agent_heartbeats_total') == 3


def test_two_conductors_in_one_process_count_apart(metrics: Metrics) -> None:
    metrics.heartbeat_heard()
    assert figure(Metrics(), 'agent_heartbeats_total') == 0


# --- over HTTP ------------------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(('127.0.0.1', 0)) as listener:
        number: int = listener.getsockname()[1]
    return number


def test_figures_are_fetched_over_http(metrics: Metrics) -> None:
    metrics.heartbeat_heard()
    port = metrics.serve('127.0.0.1', [free_port()])
    with closing(urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics')) as answer:
        text = answer.read().decode()
    assert read(text, 'agent_heartbeats_total') == 1


def test_each_process_takes_a_port_of_its_own(metrics: Metrics) -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        first = taken.getsockname()[1]
        second = free_port()
        assert metrics.serve('127.0.0.1', [first, second]) == second
        with pytest.raises(ConfigurationError, match='metrics_port'):
            Metrics().serve('127.0.0.1', [first])
