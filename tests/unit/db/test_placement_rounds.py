# SPDX-License-Identifier: Apache-2.0
"""Each host has its turn once in an interval, and never all of them at once."""

from collections import Counter
from datetime import UTC, datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import jobs, placement_rounds, services
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Job, Service
from cyborg_lite.model.jobs import Owner
from tests.fakes.daemons import speak
from tests.fakes.provider_rows import add_device, change_device

HOUR = 3600.0
MINUTE = 60.0


def fleet(database: Database, hosts: int) -> None:
    """All of them audited long ago, at the same moment."""
    for number in range(hosts):
        speak(database, f'compute-{number}')
    speak(database, 'controller', 'cyborg-lite-conductor')
    database.write(_age)


def _age(session: Session) -> None:
    long_ago = datetime(2020, 2, 29, tzinfo=UTC)
    session.execute(update(Service).values(audited_at=long_ago))


def called(database: Database) -> dict[str, bool]:
    """By host, whether it is to be read again in full; the jobs are done then."""
    found = database.read(lambda session: session.scalars(select(Job.payload)).all())
    for job in database.write(jobs.take, Owner('me', 30_000), 1000):
        database.write(jobs.finish, job)
    return {payload['host']: payload.get('deep', False) for payload in found}


def test_hosts_have_their_turn_in_small_lots_and_once(database: Database) -> None:
    fleet(database, 120)
    turns: Counter[str] = Counter()
    for _ in range(80):
        assert database.write(placement_rounds.call, HOUR, MINUTE) <= 2
        found = called(database)
        assert set(found.values()) <= {True}
        turns.update(found)
    assert turns == {f'compute-{number}': 1 for number in range(120)}


def test_a_host_that_is_new_waits_for_its_turn(database: Database) -> None:
    speak(database, 'compute-1')
    assert database.write(placement_rounds.call, HOUR, MINUTE) == 0


def test_the_turn_outlives_heartbeats_and_reports(database: Database) -> None:
    fleet(database, 1)
    database.write(services.keep_digest, 'compute-0', 'd', 'b')
    database.write(services.beat_agent, 'compute-0', '0.1.0', 'd')
    assert database.write(placement_rounds.call, HOUR, MINUTE) == 1


def test_no_hosts_are_no_jobs(database: Database) -> None:
    assert database.write(placement_rounds.call, HOUR, MINUTE) == 0
    assert database.write(placement_rounds.call_contested) == 0


def test_contested_hosts_are_looked_at_each_time(database: Database) -> None:
    for host in ('a', 'b'):
        rp_uuid = add_device(database, host, 'x')
        change_device(database, rp_uuid, conflict='nova')
    add_device(database, 'c', 'x')
    for _ in range(2):
        assert database.write(placement_rounds.call_contested) == 2
        assert called(database) == {'a': False, 'b': False}


def test_a_turn_counts_although_a_job_of_the_host_waits_already(
    database: Database,
) -> None:
    """A job that came first reads only what may have changed, unless it is told."""
    fleet(database, 1)
    change_device(database, add_device(database, 'compute-0', 'x'), conflict='nova')
    database.write(placement_rounds.call_contested)
    database.write(placement_rounds.call, HOUR, MINUTE)
    assert called(database) == {'compute-0': True}
