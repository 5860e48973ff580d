# SPDX-License-Identifier: Apache-2.0
"""The mark of a database that has lost commits, and its quarantine."""

from typing import Any

import pytest
from sqlalchemy import delete, insert

from cyborg_lite.db.arqs import history, release, usages
from cyborg_lite.db.core import incarnations
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import ArqEvent, Incarnation, UsagePeriod, now
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.daemons import DatabaseQuarantined
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark
from cyborg_lite.model.jobs import HELD_IN_QUARANTINE, NewJob
from cyborg_lite.model.operations import OperationKind
from tests.builders.bind_jobs import ANY_PROJECT, accept_bind, claim_for_bind
from tests.builders.bound_arqs import create_bound_instance
from tests.builders.rows import OWNER, add_arqs, add_card, bindings
from tests.builders.table_rows import count_rows, execute


def read_mark(database: Database) -> DatabaseMark:
    return database.read(incarnations.read_state).mark


def has_lost(database: Database, remembered: DatabaseMark) -> bool:
    return database.read(incarnations.read_state, remembered).has_lost(remembered)


def lose(database: Database, table: Any, after: int) -> None:
    """Delete the rows of later commits."""
    execute(database, delete(table).where(table.id > after))


@pytest.fixture
def untrusted_database(database: Database) -> Database:
    database.write(incarnations.begin_quarantine, NO_MARK, 'the reason')
    return database


def test_mark_grows_with_bind_and_with_release(database: Database) -> None:
    marks = [read_mark(database)]
    _, instance = create_bound_instance(database, 1)
    marks.append(read_mark(database))
    database.write(release.delete_arqs_of_instance, instance, ANY_PROJECT)
    marks.append(read_mark(database))
    assert marks[0] == NO_MARK
    assert marks[0].step < marks[1].step
    assert marks[1].period < marks[2].period
    for remembered in marks:
        assert not has_lost(database, remembered)


def test_lost_commits_are_noticed(database: Database) -> None:
    create_bound_instance(database, 1)
    backup = read_mark(database)
    _, instance = create_bound_instance(database, 1)
    bound = read_mark(database)
    database.write(release.delete_arqs_of_instance, instance, ANY_PROJECT)
    remembered = read_mark(database)
    lose(database, UsagePeriod, backup.period)
    assert has_lost(database, remembered)
    assert not has_lost(database, bound)
    lose(database, ArqEvent, backup.step)
    assert has_lost(database, bound)
    assert not has_lost(database, backup)


def test_database_that_has_grown_again_is_noticed(database: Database) -> None:
    create_bound_instance(database, 1)
    remembered = read_mark(database)
    lose(database, ArqEvent, remembered.step - 1)

    row = {'arq_uuid': 'another', 'at': now(), 'step': 'Bound', 'actor': 'agent'}
    ids = range(remembered.step, remembered.step + 3)
    execute(database, insert(ArqEvent), [{**row, 'id': number} for number in ids])
    assert read_mark(database).step > remembered.step
    assert has_lost(database, remembered)


def test_purge_keeps_the_mark(database: Database) -> None:
    _, instance = create_bound_instance(database, 1)
    database.write(release.delete_arqs_of_instance, instance, ANY_PROJECT)
    before = read_mark(database)
    assert database.write(history.delete_old_histories, now())
    database.write(usages.delete_old_periods, -60)
    assert read_mark(database) == before
    for table in (ArqEvent, UsagePeriod):
        assert count_rows(database, table) == 1


def test_new_incarnation_follows_all_that_are_remembered(database: Database) -> None:
    begin = incarnations.begin_quarantine
    for remembered, expected in ((0, 1), (0, 1), (4, 5), (2, 5)):
        database.write(begin, DatabaseMark(remembered), f'{remembered}')
        quarantine = database.read(incarnations.find_quarantine)
        assert quarantine is not None
        assert quarantine.incarnation == expected
    assert read_mark(database).incarnation == 0
    assert database.write(incarnations.end_quarantine) == 5
    assert database.write(incarnations.end_quarantine) is None
    assert database.read(incarnations.find_quarantine) is None
    assert read_mark(database).incarnation == 5
    assert not has_lost(database, DatabaseMark(4, 1_000))
    assert has_lost(database, DatabaseMark(6))
    # The copy is put back a second time.
    lose(database, Incarnation, 0)
    assert has_lost(database, DatabaseMark(5))


def test_quarantine_hands_out_nothing(untrusted_database: Database) -> None:
    uuids, card = add_arqs(untrusted_database, 1), add_card(untrusted_database, 1)
    requested = bindings(uuids, card)
    with pytest.raises(DatabaseQuarantined):
        accept_bind(untrusted_database, requested)
    untrusted_database.write(incarnations.end_quarantine)
    job = accept_bind(untrusted_database, requested)
    untrusted_database.write(incarnations.begin_quarantine, NO_MARK, 'again')
    with pytest.raises(DatabaseQuarantined):
        claim_for_bind(untrusted_database, job, uuids)


def test_quarantine_leases_no_changes(untrusted_database: Database) -> None:
    for kind in OperationKind:
        untrusted_database.write(queue.add_job, NewJob(kind))
    untrusted_database.write(queue.add_job, NewJob(OperationKind.BIND, limit_ms=-1))
    leased = untrusted_database.write(queue.lease_jobs, OWNER, 100)
    kinds = {job.type for job in leased if not job.expired}
    assert kinds == set(OperationKind) - HELD_IN_QUARANTINE
    assert [job.type for job in leased if job.expired] == [OperationKind.BIND]
    untrusted_database.write(incarnations.end_quarantine)
    leased = untrusted_database.write(queue.lease_jobs, OWNER, 100)
    assert {job.type for job in leased} == HELD_IN_QUARANTINE
