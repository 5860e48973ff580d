# SPDX-License-Identifier: Apache-2.0
"""Tests of data migrations that run in batches beside the daemons."""

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.online_migrations import MIGRATIONS, list_unfinished
from cyborg_lite.db.tables import AttachHandle, Job
from cyborg_lite.model.jobs import JobType, NewJob
from tests.builders.rows import HOST, add_card

RELEASES = MIGRATIONS[0]


def add_jobs(session: Session) -> None:
    """Add a release job per handle as an earlier release does, and another job."""
    for uuid in session.scalars(select(AttachHandle.uuid)).all():
        queue.add_job(session, NewJob(JobType.RELEASE, key=uuid))
        queue.add_job(session, NewJob(JobType.CONNECT, key=uuid))
    session.execute(update(Job).values(host=None))


def list_hosts(session: Session) -> list[tuple[str, str | None]]:
    rows = session.execute(select(Job.kind, Job.host).order_by(Job.id))
    return [(row.kind, row.host) for row in rows]


def test_migration_changes_at_most_limit(database: Database) -> None:
    add_card(database, 3)
    database.write(add_jobs)
    assert database.read(list_unfinished) == (RELEASES.name,)
    assert database.write(RELEASES.migrate, 2) == 2
    assert database.read(RELEASES.has_rows)
    assert database.write(RELEASES.migrate, 2) == 1
    assert database.read(list_unfinished) == ()
    assert database.write(RELEASES.migrate, 2) == 0


def test_migration_leaves_other_jobs_unchanged(database: Database) -> None:
    add_card(database, 1)
    database.write(add_jobs)
    database.write(RELEASES.migrate, 100)
    assert database.read(list_hosts) == [
        (JobType.RELEASE, HOST),
        (JobType.CONNECT, None),
    ]


def test_empty_database_needs_no_migration(database: Database) -> None:
    assert database.read(list_unfinished) == ()
    assert [database.write(item.migrate, 10) for item in MIGRATIONS] == [0, 0]
