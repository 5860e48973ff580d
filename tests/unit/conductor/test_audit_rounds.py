# SPDX-License-Identifier: Apache-2.0
"""The audit comes round by itself, tells what it found, and acts only if it may."""

import logging
import threading
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.audit_rounds import AuditHandler, AuditRounds
from cyborg_lite.db import jobs, services
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import FormerServer
from cyborg_lite.model.jobs import Job, JobCount, JobState, Kind, NewJob
from tests.fakes.daemons import call_down, speak
from tests.fakes.orphans import Cloud
from tests.fakes.rows import OWNER, owners, states

WAITING = JobCount(Kind.AUDIT, JobState.WAITING, 1)


def due(database: Database) -> Job:
    database.write(jobs.add, NewJob(Kind.AUDIT, key='orphans'))
    (job,) = database.write(jobs.take, OWNER, 10)
    return job


@pytest.mark.parametrize('reap', [False, True])
def test_orphans_are_told_and_released_only_where_that_is_allowed(
    database: Database, caplog: pytest.LogCaptureFixture, reap: bool
) -> None:
    cloud = Cloud(database)
    uuid, instance = cloud.bound()
    del cloud.servers.hosts[instance]
    with caplog.at_level(logging.INFO):
        assert AuditHandler(database, cloud.audit, reap).run(due(database)) is None
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == (
        f'Audit, server-gone: accelerator request {uuid}: '
        f'Nova has no server {instance}.'
    )
    assert said[1] == 'Audit: 1 findings.'
    assert states(database, [uuid]) == ([] if reap else ['Bound'])
    assert owners(database) == ([] if reap else [uuid])
    assert database.read(jobs.count) == ()


def test_what_only_a_person_can_decide_is_only_told(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    cloud = Cloud(database)
    uuid, instance = cloud.bound()
    cloud.consumers.forget(instance)
    AuditHandler(database, cloud.audit, reap=True).run(due(database))
    assert 'no-allocation' in caplog.text
    assert owners(database) == [uuid]


def test_an_audit_that_did_not_come_to_its_end_is_no_loss(database: Database) -> None:
    handler = AuditHandler(database, Cloud(database).audit, reap=True)
    assert handler.expire(due(database), 'cancelled') is None
    assert database.read(jobs.count) == ()


def test_many_conductors_call_for_one_audit(database: Database) -> None:
    woken = threading.Semaphore(0)
    stopping = threading.Event()
    rounds = [
        AuditRounds(database, woken.release, 0.01, stopping) for _conductor in range(2)
    ]
    loops = [threading.Thread(target=one.run) for one in rounds]
    for loop in loops:
        loop.start()
    for _ in range(4):
        assert woken.acquire(timeout=10)
    stopping.set()
    for loop in loops:
        loop.join(10)
        assert not loop.is_alive()
    assert database.read(jobs.count) == (WAITING,)


def test_the_more_conductors_the_seldomer_each_asks(database: Database) -> None:
    rounds = AuditRounds(database, lambda: None, 100.0, threading.Event())
    assert 80 <= rounds.pause() <= 120
    for host in ('ctl1', 'ctl2', 'ctl3'):
        speak(database, host, services.CONDUCTOR)
    speak(database, 'compute-1')
    assert 240 <= rounds.pause() <= 360
    database.write(services.beat, services.CONDUCTOR, 'ctl4', '0.1.0')
    call_down(database, 'compute-2')
    assert 320 <= rounds.pause() <= 480


def test_no_interval_means_no_audit(database: Database) -> None:
    AuditRounds(database, lambda: None, 0, threading.Event()).run()
    assert database.read(jobs.count) == ()


def test_the_rounds_outlive_a_database_that_is_away() -> None:
    stopping = threading.Event()
    broken = Database('sqlite:////nowhere/at/all.sqlite')
    loop = threading.Thread(
        target=AuditRounds(broken, stopping.set, 0.01, stopping).run
    )
    loop.start()
    loop.join(0.3)
    assert loop.is_alive()
    stopping.set()
    loop.join(10)
    assert not loop.is_alive()


# --- servers that may come back ----------------------------------------------------


def audit(database: Database, cloud: Cloud) -> None:
    AuditHandler(database, cloud.audit, reap=False).run(due(database))


def test_a_server_is_forgotten_when_nova_has_it_no_more(database: Database) -> None:
    cloud = Cloud(database)
    shelved, deleted = cloud.left(), cloud.left()
    del cloud.servers.hosts[deleted]
    audit(database, cloud)
    assert cloud.awaited() == [shelved]


def test_a_nova_that_is_away_has_nobody_forgotten(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    cloud = Cloud(database)
    deleted = cloud.left()
    del cloud.servers.hosts[deleted]
    cloud.servers.away = True
    audit(database, cloud)
    assert cloud.awaited() == [deleted]
    assert 'Which servers are gone is not known' in caplog.text


def test_without_a_nova_nobody_comes_back(database: Database) -> None:
    cloud = Cloud(database)
    cloud.left()
    cloud.servers.configured = False
    audit(database, cloud)
    assert cloud.awaited() == []


def test_who_left_a_moment_ago_is_not_asked_for(database: Database) -> None:
    cloud = Cloud(database)
    instance = cloud.left()
    del cloud.servers.hosts[instance]
    now = update(FormerServer).values(left_at=datetime.now(UTC))
    database.write(lambda session: session.execute(now))
    audit(database, cloud)
    assert cloud.awaited() == [instance]
