# SPDX-License-Identifier: Apache-2.0
"""Metrics of a conductor in the format of Prometheus."""

import re
import socket
import threading
import urllib.request
from contextlib import closing
from dataclasses import replace
from unittest.mock import Mock

import pytest

from cyborg_lite import codec
from cyborg_lite.conductor.arqs.nova_events import NovaEventHandler
from cyborg_lite.conductor.hosts.heartbeat_batch import HeartbeatBatch
from cyborg_lite.conductor.inventory.inventory import InventoryService
from cyborg_lite.conductor.jobs.runner import (
    Handler,
    JobAttempts,
    JobRunner,
    Workers,
    create_owner,
)
from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.daemons import ConfigurationError, ServiceUnavailable
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.errors.jobs import JobLost
from cyborg_lite.model.jobs import Job, NewJob, NovaEventPayload
from cyborg_lite.model.operations import OperationKind
from devstack.launcher.configuration import free_port
from tests.builders.bound_arqs import create_bound_instance
from tests.builders.cloud_clients import create_nova_client, create_placement_client
from tests.builders.rows import OWNER
from tests.doubles.http_service import Answer, HttpService
from tests.doubles.job_handlers import ScriptedHandler, run_owned_job, wait_and_stop
from tests.doubles.nova import FakeNova


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def figure(metrics: Metrics, name: str, **labels: str) -> float:
    """Return the value of a metric, or 0 without a sample."""
    return read(metrics.format_text(), name, **labels)


def read(text: str, name: str, **labels: str) -> float:
    inner = ','.join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    full = f'cyborg_lite_{name}{{{inner}}}' if labels else f'cyborg_lite_{name}'
    match = re.search(f'^{re.escape(full)} (.*)$', text, re.MULTILINE)
    return float(match[1]) if match else 0.0


@pytest.fixture
def handler(database: Database) -> ScriptedHandler:
    return ScriptedHandler(database)


# --- jobs -----------------------------------------------------------------------------


def attempt(
    database: Database, handler: ScriptedHandler, metrics: Metrics, new: NewJob
) -> None:
    """Attempt a job that was added 20 seconds ago."""
    job = database.write(queue.add_running_job, new, OWNER)
    kinds = OperationKind.RELEASE, OperationKind.BIND, OperationKind.NOVA_EVENT
    attempts = JobAttempts(database, dict.fromkeys(kinds, handler), metrics)
    attempts.run(replace(job, age=20.0))


def results(metrics: Metrics) -> dict[str, float]:
    counts = {
        result: figure(metrics, 'job_results_total', kind='release', result=result)
        for result in ('done', 'put-off', 'expired')
    }
    return {result: number for result, number in counts.items() if number}


def test_metrics_count_done_job(
    handler: ScriptedHandler, database: Database, metrics: Metrics
) -> None:
    handlers: dict[str, Handler] = {OperationKind.RELEASE: handler}
    owner = create_owner(lease_seconds=30)
    runner = JobRunner(database, handlers, owner, Workers(1, 1), metrics)
    run_owned_job(runner, database)
    wait_and_stop(runner, handler)
    assert results(metrics) == {'done': 1}
    assert figure(metrics, 'job_attempts_total', kind='release') == 1
    assert figure(metrics, 'job_attempts_total', kind='bind') == 0


@pytest.mark.parametrize('limit_ms', [None, 1])
def test_metrics_count_failed_attempt_by_result(
    handler: ScriptedHandler,
    database: Database,
    metrics: Metrics,
    limit_ms: int | None,
) -> None:
    handler.act = Mock(side_effect=HostAway(host='compute-1'))
    new = NewJob(OperationKind.RELEASE, limit_ms=limit_ms)
    attempt(database, handler, metrics, new)
    assert results(metrics) == {'expired' if limit_ms else 'put-off': 1}


def test_metrics_count_lost_lease(
    handler: ScriptedHandler, database: Database, metrics: Metrics
) -> None:
    handler.act = Mock(side_effect=JobLost(job='a'))
    attempt(database, handler, metrics, NewJob(OperationKind.RELEASE))
    assert figure(metrics, 'job_leases_lost_total', kind='release') == 1
    assert results(metrics) == {}


@pytest.mark.parametrize('succeeded', [True, False])
def test_metrics_observe_bind_duration_by_result(
    handler: ScriptedHandler, database: Database, metrics: Metrics, succeeded: bool
) -> None:
    def become(job: Job) -> Job | None:
        if job.type == OperationKind.NOVA_EVENT:
            handler.finish(job)
            return None
        payload = codec.dump(NovaEventPayload('i', ('a',), succeeded))
        event = NewJob(OperationKind.NOVA_EVENT, payload)
        return database.write(queue.replace_job, job, event)

    handler.act = become
    attempt(database, handler, metrics, NewJob(OperationKind.BIND))
    result = 'succeeded' if succeeded else 'failed'
    assert figure(metrics, 'bind_seconds_count', result=result) == 1
    assert figure(metrics, 'bind_seconds_bucket', le='10.0', result=result) == 0
    assert figure(metrics, 'bind_seconds_bucket', le='60.0', result=result) == 1


@pytest.mark.parametrize(
    ('kind', 'label'),
    [
        (OperationKind.RELEASE, 'release'),
        (OperationKind.RECONCILE, 'placement-sync'),
        (OperationKind.CLEANING, 'clean'),
        (OperationKind.CONFIGURATION, 'reconfigure'),
    ],
)
def test_metrics_show_job_table(
    database: Database, metrics: Metrics, kind: OperationKind, label: str
) -> None:
    metrics.add_database_metrics(database)
    assert figure(metrics, 'jobs', kind=label, state='waiting') == 0
    for _ in range(2):
        database.write(queue.add_job, NewJob(kind))
    database.write(queue.lease_jobs, OWNER, 1)
    text = metrics.format_text()
    assert read(text, 'jobs', kind=label, state='waiting') == 1
    assert read(text, 'jobs', kind=label, state='running') == 1
    assert f'cyborg_lite_job_queue_age_seconds{{kind="{label}"}}' in text
    assert 0 <= read(text, 'job_queue_age_seconds', kind=label) < 60


def test_metrics_database_down_serves_other_metrics(metrics: Metrics) -> None:
    metrics.add_database_metrics(Database('sqlite:////nowhere/at/all.sqlite'))
    metrics.count('agent_heartbeats')
    assert figure(metrics, 'agent_heartbeats_total') == 1


# --- other counters -------------------------------------------------------------------


def test_metrics_count_nova_events_by_code(
    database: Database, metrics: Metrics
) -> None:
    (first, second), instance = create_bound_instance(database, 2)
    payload = {'instance_uuid': instance, 'succeeded': True}
    with FakeNova() as nova:
        nova.rules.codes = {second: 422}
        handler = NovaEventHandler(database, create_nova_client(nova.endpoint), metrics)
        new = NewJob(
            OperationKind.NOVA_EVENT, {**payload, 'arq_uuids': [first, second]}
        )
        handler.run(database.write(queue.add_running_job, new, OWNER))
    handler = NovaEventHandler(database, create_nova_client(None), metrics)
    new = NewJob(OperationKind.NOVA_EVENT, {**payload, 'arq_uuids': [first]})
    handler.run(database.write(queue.add_running_job, new, OWNER))
    codes = {
        code: figure(metrics, 'nova_events_total', code=code)
        for code in ('200', '422', 'dropped')
    }
    assert codes == {'200': 1, '422': 1, 'dropped': 1}


def test_metrics_nova_unreachable_counts_failure(
    database: Database, metrics: Metrics
) -> None:
    (arq,), instance = create_bound_instance(database, 1)
    payload = codec.dump(NovaEventPayload(instance, (arq,), succeeded=True))
    nova = create_nova_client(f'http://127.0.0.1:{free_port()}')
    new = NewJob(OperationKind.NOVA_EVENT, payload)
    job = database.write(queue.add_running_job, new, OWNER)
    with pytest.raises(ServiceUnavailable):
        NovaEventHandler(database, nova, metrics).run(job)
    assert figure(metrics, 'nova_events_total', code='none') == 1
    assert figure(metrics, 'bind_stage_seconds_count', stage='nova-event') == 1


def test_metrics_count_placement_calls_by_status(metrics: Metrics) -> None:
    with HttpService() as service:
        placement = create_placement_client(service.url)
        placement.observe_requests(metrics.count_placement_call)
        service.answers['GET /resource_providers/a/usages'] = Answer(
            200, {'usages': {}}
        )
        placement.get_usages('a')
        service.answers['GET /resource_providers/b'] = Answer(404, {'errors': []})
        placement.find_provider('b')
        service.answers['GET /resource_providers/c'] = Answer(503)
        with pytest.raises(ServiceUnavailable):
            placement.find_provider('c')
    unreachable = create_placement_client(f'http://127.0.0.1:{free_port()}')
    unreachable.observe_requests(metrics.count_placement_call)
    with pytest.raises(ServiceUnavailable):
        unreachable.find_provider('d')
    statuses = {
        status: figure(metrics, 'placement_calls_total', method='GET', status=status)
        for status in ('200', '404', '503', 'none')
    }
    assert statuses == {'200': 1, '404': 1, '503': 1, 'none': 1}


def test_metrics_count_heartbeats(database: Database, metrics: Metrics) -> None:
    batch = HeartbeatBatch(database, threading.Event())
    inventory = InventoryService(
        database, lambda: None, batch, lambda: metrics.count('agent_heartbeats')
    )
    for _ in range(3):
        inventory.record_heartbeat('compute-1', 'digest', '0.1.0')
    assert figure(metrics, 'agent_heartbeats_total') == 3


# --- over HTTP ------------------------------------------------------------------------


def test_metrics_are_served_over_http(metrics: Metrics) -> None:
    metrics.count('agent_heartbeats')
    port = metrics.serve('127.0.0.1', [free_port()])
    with closing(urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics')) as answer:
        text = answer.read().decode()
    assert read(text, 'agent_heartbeats_total') == 1


def test_serve_port_taken_uses_next(metrics: Metrics) -> None:
    with socket.create_server(('127.0.0.1', 0)) as listener:
        first = listener.getsockname()[1]
        second = free_port()
        assert metrics.serve('127.0.0.1', [first, second]) == second
        with pytest.raises(ConfigurationError, match='metrics_port'):
            Metrics().serve('127.0.0.1', [first])
