# SPDX-License-Identifier: Apache-2.0
"""Statements of the life cycle of ARQs, in empty and in full databases."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event, insert, text
from sqlalchemy.orm import ORMExecuteState, Session

from cyborg_lite.db.arqs import arqs, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import JobOperation
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.model.jobs import NewJob
from cyborg_lite.model.operations import NewOperation, OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import ANY_PROJECT, accept_bind, claim_for_bind
from tests.builders.bound_arqs import add_bound_arqs
from tests.builders.rows import OWNER, PROJECT, add_card, add_profile, bindings
from tests.builders.table_rows import execute
from tests.support.sql_statements import statements

OTHER_ARQS = 10_000


def run_cycle(
    database: Database,
    profile: str,
    card: str,
    number: int,
    *,
    has_operation: bool = False,
) -> list[str]:
    """Create, bind, list and delete ARQs; return the statements."""
    instance = str(uuid4())
    of_instance = Query({'instance_uuid': (instance,)})
    operation = NewOperation(OperationKind.BIND) if has_operation else None
    new = NewJob(OperationKind.BIND, operation=operation)
    with statements(database) as sql:
        uuids = [arq.uuid for arq in database.write(arqs.create_arqs, profile, PROJECT)]
        assert len(uuids) == number
        job = accept_bind(database, bindings(uuids, card, instance), new)
        database.write(queue.finish_job, claim_for_bind(database, job, uuids).job)
        assert len(database.read(arqs.list_arqs, of_instance, ANY_PROJECT)) == number
        database.write(release.delete_arqs_of_instance, instance, ANY_PROJECT, None)
    return sql


@pytest.mark.parametrize('number', [1, 8])
def test_cycle_cost_does_not_depend_on_other_arqs(
    database: Database, number: int
) -> None:
    profile = add_profile(database, [{'resources:PGPU': str(number)}])
    card = add_card(database, 16)
    alone = run_cycle(database, profile, card, number)
    database.write(add_bound_arqs, profile, OTHER_ARQS)
    among_others = run_cycle(database, profile, card, number)
    assert among_others == alone
    # 2 to create, 4 to accept, 7 to bind, 1 to end the job, 1 to read, 6 to delete.
    assert len(alone) <= 21


def test_operation_costs_three_statements_of_a_bind(database: Database) -> None:
    """The request inserts the operation and its relation, the end updates it."""
    profile = add_profile(database, [{'resources:PGPU': '1'}])
    card = add_card(database, 16)
    plain = run_cycle(database, profile, card, 1)
    with_operation = run_cycle(database, profile, card, 1, has_operation=True)
    assert len(with_operation) == len(plain) + 3
    of_operations = [
        statement for statement in with_operation if 'operations ' in statement
    ]
    assert [text.split()[0] for text in of_operations] == ['INSERT'] * 2 + ['UPDATE']


def test_jobs_of_operation_are_found_by_index(database: Database) -> None:
    news = [NewOperation(OperationKind.RELEASE, subject_id='i1') for _ in range(100)]
    for new in news:
        job = NewJob(OperationKind.RELEASE, operation=new)
        database.write(queue.add_job, job)
    relations = [
        {'operation_uuid': uuid, 'job_uuid': uuid, 'job_kind': 'release'}
        for uuid in (str(uuid4()) for _ in range(10_000))
    ]
    execute(database, insert(JobOperation), relations)
    (statement,) = record_selects(
        database, lambda: database.read(operations.list_jobs, news[7].uuid)
    )
    assert 'ix_job_operations_operation_uuid' in explain_query(database, *statement)
    kind, jobless = OperationKind.RELEASE, operations.list_unfinished
    (statement,) = record_selects(
        database, lambda: database.read(jobless, kind, ['i1'], jobless=True)
    )
    assert 'ix_job_operations_operation_uuid' in explain_query(database, *statement)
    with statements(database) as sql:
        leased = database.write(queue.lease_jobs, OWNER, 100)
    assert {job.operations for job in leased} == {(new.uuid,) for new in news}
    # Due jobs, their lease and operations, the start of the operations.
    assert len([text for text in sql if 'jobs' in text or 'operations' in text]) == 4


def test_cycle_runs_no_statement_through_the_orm(database: Database) -> None:
    """The ORM takes as much CPU time for a statement as the server connection."""
    profile = add_profile(database, [{'resources:PGPU': '1'}])
    card = add_card(database, 16)
    texts: list[str] = []

    def record(state: ORMExecuteState) -> None:
        texts.append(str(state.statement))

    event.listen(Session, 'do_orm_execute', record)
    try:
        run_cycle(database, profile, card, 1)
    finally:
        event.remove(Session, 'do_orm_execute', record)
    assert not texts


def test_cycle_cost_does_not_depend_on_number(database: Database) -> None:
    card, costs = add_card(database, 16), []
    for number in (1, 8):
        profile = add_profile(database, [{'resources:PGPU': str(number)}])
        costs.append(len(run_cycle(database, profile, card, number)))
    assert costs[0] == costs[1]


@pytest.mark.parametrize('detailed', [False, True])
def test_list_arqs_of_instance_uses_index(database: Database, detailed: bool) -> None:
    profile = add_profile(database, [{'resources:PGPU': '1'}])
    database.write(add_bound_arqs, profile, 10_000)
    instance_query = Query({'instance_uuid': (str(uuid4()),)}, detailed=detailed)
    (statement,) = record_selects(
        database, lambda: database.read(arqs.list_arqs, instance_query, ANY_PROJECT)
    )
    plan = explain_query(database, *statement)
    # SQLite has no names for the indexes of its unique constraints.
    assert 'uq_arqs_instance_uuid' in plan or 'SEARCH arqs USING INDEX' in plan


def record_selects(
    database: Database, operation: Callable[[], object]
) -> list[tuple[str, Any]]:
    """Return the SELECT statements of an operation with their parameters."""
    sql: list[tuple[str, Any]] = []

    def record(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.lstrip().startswith('SELECT'):
            sql.append((statement, parameters))

    for engine in database.engines:
        event.listen(engine, 'before_cursor_execute', record)
    try:
        operation()
    finally:
        for engine in database.engines:
            event.remove(engine, 'before_cursor_execute', record)
    return sql


def explain_query(database: Database, statement: str, parameters: Any) -> str:
    """Return the query plan of the database."""
    engine = database.engines[0]
    prefix = 'EXPLAIN QUERY PLAN' if engine.dialect.name == 'sqlite' else 'EXPLAIN'
    with engine.connect() as connection:
        if engine.dialect.name == 'postgresql':
            connection.execute(text('ANALYZE'))
        rows = connection.exec_driver_sql(f'{prefix} {statement}', parameters)
        return ' '.join(map(str, rows))
