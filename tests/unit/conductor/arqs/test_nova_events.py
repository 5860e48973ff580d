# SPDX-License-Identifier: Apache-2.0
"""Nova event jobs."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.arqs.nova_events import NovaEventHandler
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.jobs import Job, NewJob
from cyborg_lite.model.operations import OperationKind
from tests.builders.bound_arqs import create_bound_instance
from tests.builders.cloud_clients import create_nova_client
from tests.builders.rows import OWNER
from tests.doubles.nova import FakeNova
from tests.support.sql_statements import statements


@pytest.fixture
def nova() -> Iterator[FakeNova]:
    with FakeNova() as nova:
        yield nova


def event_job(database: Database, *, succeeded: bool = True, number: int = 8) -> Job:
    arqs, instance = create_bound_instance(database, number)
    if not succeeded:
        failed = update(Arq).values(state='BindFailed')
        database.write(lambda session: session.execute(failed))
    payload = {'instance_uuid': instance, 'arq_uuids': arqs, 'succeeded': succeeded}
    return database.write(
        queue.add_running_job, NewJob(OperationKind.NOVA_EVENT, payload), OWNER
    )


def test_event_failed_bind_has_status_failed(
    database: Database, nova: FakeNova
) -> None:
    job = event_job(database, succeeded=False)
    NovaEventHandler(database, create_nova_client(nova.endpoint)).run(job)
    assert {event['status'] for event in nova.events} == {'failed'}


def test_event_nova_down_is_retried(database: Database, nova: FakeNova) -> None:
    nova.rules.failures = 1
    job = event_job(database)
    handler = NovaEventHandler(database, create_nova_client(nova.endpoint))
    with pytest.raises(ServiceUnavailable):
        handler.run(job)
    assert nova.events == []
    handler.run(job)
    assert len(nova.events) == 8


def test_event_after_bind_reads_nothing(database: Database, nova: FakeNova) -> None:
    """The transaction before has bound all ARQs; a retry reads them again."""
    job = replace(event_job(database, number=2), is_replacement=True)
    handler = NovaEventHandler(database, create_nova_client(nova.endpoint))
    with statements(database) as sql:
        handler.run(job)
    assert [text for text in sql if text.startswith('SELECT')] == []
    assert [event['tag'] for event in nova.events] == job.payload['arq_uuids']


@pytest.mark.parametrize('code', [404, 422, 400])
def test_event_any_code_is_final(database: Database, nova: FakeNova, code: int) -> None:
    job = event_job(database)
    nova.rules.codes[job.payload['instance_uuid']] = code
    NovaEventHandler(database, create_nova_client(nova.endpoint)).run(job)
    assert database.read(queue.count_jobs) == ()


def test_event_expired_is_finished(database: Database) -> None:
    job = event_job(database)
    NovaEventHandler(database, create_nova_client(None)).expire(
        job, 'Nova does not answer.'
    )
    assert database.read(queue.count_jobs) == ()
