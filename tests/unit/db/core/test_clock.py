# SPDX-License-Identifier: Apache-2.0
"""Clock of the database in milliseconds."""

import time

from sqlalchemy import insert, select

from cyborg_lite.db.core.clock import now_ms
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job


def test_now_ms_is_milliseconds_since_epoch(database: Database) -> None:
    now = database.read(lambda session: session.scalar(select(now_ms())))
    assert isinstance(now, int)
    # An hour would be a mistake of time zones; the clocks themselves may differ.
    assert abs(now / 1000 - time.time()) < 1800


def test_now_ms_is_constant_within_statement(database: Database) -> None:
    query = select(now_ms(), now_ms() + 5000, now_ms() - now_ms())
    now, later, null = database.read(lambda session: session.execute(query).one())
    assert later - now == 5000
    assert null == 0


def test_now_ms_can_be_stored_and_compared(database: Database) -> None:
    row = {'uuid': 'u', 'kind': 'bind', 'payload': {}, 'created_at': now_ms()}
    job = insert(Job).values(**row, run_after=now_ms() + 60_000)
    database.write(lambda session: session.execute(job))
    due = select(Job.uuid).where(Job.run_after <= now_ms())
    later = select(Job.uuid).where(Job.run_after <= now_ms() + 120_000)
    assert database.read(lambda session: session.scalars(due).all()) == []
    assert database.read(lambda session: session.scalars(later).all()) == ['u']
