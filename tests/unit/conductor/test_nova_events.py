# SPDX-License-Identifier: Apache-2.0
"""Nova hears of a bind once, in one request, as long as it may be waiting."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest

from cyborg_lite.conductor.nova_events import NovaEventHandler
from cyborg_lite.db import jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import Job, Kind, NewJob
from tests.fakes.nova import FakeNova
from tests.fakes.rows import OWNER
from tests.unit.clients.test_nova import nova_at
from tests.unit.db.test_release import bound

INSTANCE = str(uuid4())


@pytest.fixture
def nova() -> Iterator[FakeNova]:
    with FakeNova() as nova:
        yield nova


def event_job(database: Database, *, succeeded: bool = True, number: int = 8) -> Job:
    arqs = [str(uuid4()) for _ in range(number)]
    payload = {'instance': INSTANCE, 'arqs': arqs, 'succeeded': succeeded}
    return database.write(jobs.add_owned, NewJob(Kind.NOVA_EVENT, payload), OWNER)


def test_all_requests_of_an_instance_are_told_in_one_post(
    database: Database, nova: FakeNova
) -> None:
    job = event_job(database)
    NovaEventHandler(database, nova_at(nova.endpoint)).run(job)
    assert len(nova.posts) == 1
    assert [event['tag'] for event in nova.events] == job.payload['arqs']
    assert {event['server_uuid'] for event in nova.events} == {INSTANCE}
    assert {event['status'] for event in nova.events} == {'completed'}
    assert database.read(jobs.count) == ()


def test_a_failure_is_told_as_one(database: Database, nova: FakeNova) -> None:
    job = event_job(database, succeeded=False)
    NovaEventHandler(database, nova_at(nova.endpoint)).run(job)
    assert {event['status'] for event in nova.events} == {'failed'}


def test_a_nova_in_trouble_is_told_later(database: Database, nova: FakeNova) -> None:
    nova.rules.failures = 1
    job = event_job(database)
    handler = NovaEventHandler(database, nova_at(nova.endpoint))
    with pytest.raises(ServiceUnavailable):
        handler.run(job)
    assert nova.events == []
    handler.run(job)
    assert len(nova.events) == 8


def test_what_is_not_so_any_more_is_not_told_late(
    database: Database, nova: FakeNova
) -> None:
    """Nova may have heard meanwhile of what came after it."""
    uuids, instance = bound(database, 2)
    payload = {'instance': instance, 'arqs': uuids, 'succeeded': True}
    job = database.write(jobs.add_owned, NewJob(Kind.NOVA_EVENT, payload), OWNER)
    database.write(release.unbind, uuids[:1], Scope(project_id=None), None)
    handler = NovaEventHandler(database, nova_at(nova.endpoint))
    handler.run(replace(job, attempts=2))
    assert [event['tag'] for event in nova.events] == uuids[1:]
    assert database.read(jobs.count) == ()


@pytest.mark.parametrize('code', [404, 422, 400])
def test_an_answer_for_one_event_is_final(
    database: Database, nova: FakeNova, code: int
) -> None:
    nova.rules.codes[INSTANCE] = code
    NovaEventHandler(database, nova_at(nova.endpoint)).run(event_job(database))
    assert database.read(jobs.count) == ()


def test_when_nobody_listens_any_more_it_is_dropped(database: Database) -> None:
    job = event_job(database)
    NovaEventHandler(database, nova_at(None)).expire(job, 'Nova does not answer.')
    assert database.read(jobs.count) == ()
