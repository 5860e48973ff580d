# SPDX-License-Identifier: Apache-2.0
"""History of ARQs: complete, paged, kept after the ARQ, and deleted when it is old."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import func, select

from cyborg_lite.db.arqs import binding, history, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import ArqEvent
from cyborg_lite.db.jobs import operations
from cyborg_lite.errors.arqs import ArqNotFound, InstanceHasArqs
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.registry import find_code
from cyborg_lite.model.arqs.arqs import Scope, Step
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import NewOperation
from cyborg_lite.model.queries import LATEST_FIRST, Page, Query
from tests.builders.bind_jobs import (
    ANY_PROJECT,
    BIND_JOB,
    FAILED_EVENT_JOB,
    accept_bind,
    claim_for_bind,
)
from tests.builders.bound_arqs import (
    bind_arqs,
    create_bound_arqs,
    create_bound_instance,
    read_history,
)
from tests.builders.rows import PROJECT, add_arqs, add_card, bindings
from tests.builders.table_rows import change_rows
from tests.support.sql_statements import statements

FOREIGN = Scope('other')
PAGES_OF_TWO = replace(LATEST_FIRST, limit=2, needs_cursor=True)


def delete(database: Database, *uuids: str) -> None:
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)


def read_of_instance(
    database: Database, instance: str, scope: Scope = ANY_PROJECT
) -> tuple[Step, ...]:
    return database.read(history.list_steps_of_instance, instance, scope)


def list_names(steps: tuple[Step, ...]) -> list[str]:
    return [step.step for step in steps]


def read_pages(database: Database, uuid: str) -> list[list[str]]:
    """Return the names of the steps on each page of a history."""
    pages: list[list[str]] = []
    query: Query | None = PAGES_OF_TWO
    while query is not None:
        page = database.read(history.list_steps, uuid, ANY_PROJECT, query)
        assert isinstance(page, Page)
        pages.append(list_names(page))
        query = replace(query, cursor=page.cursor) if page.cursor else None
    return pages


def test_history_of_unknown_or_foreign_arq_is_not_found(database: Database) -> None:
    (uuid,) = create_bound_arqs(database, 1)
    delete(database, *add_arqs(database, 1))
    assert database.read(history.list_steps, uuid, Scope(PROJECT))
    for scope, arq_uuid in ((FOREIGN, uuid), (ANY_PROJECT, str(uuid4()))):
        with pytest.raises(ArqNotFound):
            database.read(history.list_steps, arq_uuid, scope)


def test_history_of_host_bind_is_complete(database: Database) -> None:
    uuids = create_bound_arqs(database, 2)
    database.write(release.unbind_arqs, uuids, ANY_PROJECT, None)
    for uuid in uuids:
        steps = read_history(database, uuid)
        assert [(step.step, step.actor) for step in steps] == [
            ('Initial', 'client'),
            ('BindStarted', 'client'),
            ('Claimed', 'conductor'),
            ('Bound', 'agent'),
            ('Unbound', 'client'),
        ]
        ends = [step.at for step in steps[1:]]
        assert [step.ended_at for step in steps] == [*ends, None]
        assert {step.arq_uuid for step in steps} == {uuid}


def test_failed_bind_has_shortened_reason(database: Database) -> None:
    uuids, error = add_arqs(database, 1), DriverError(reason='x' * 999)
    job = accept_bind(database, bindings(uuids, str(uuid4())))
    database.write(binding.fail_bind, job, uuids, error, FAILED_EVENT_JOB)
    _, started, failed = read_history(database, uuids[0])
    assert (started.reason, failed.step) == (None, 'BindFailed')
    assert failed.reason == 'x' * 255
    assert started.at <= failed.at


@pytest.mark.parametrize('needs_host', [False, True])
def test_history_outlives_arq_and_instance(
    database: Database, needs_host: bool
) -> None:
    (uuid,), instance = create_bound_instance(database, 1, needs_host=needs_host)
    before = list_names(read_of_instance(database, instance))
    delete(database, uuid)
    after = list_names(read_of_instance(database, instance, Scope(PROJECT)))
    assert after == ['Deleting', *before] if needs_host else after == before
    assert read_of_instance(database, instance, FOREIGN) == ()
    assert 'Bound' in list_names(read_history(database, uuid))


def test_history_of_instance_lacks_binds_to_other_instance(database: Database) -> None:
    (uuid,), first = create_bound_instance(database, 1)
    database.write(release.unbind_arqs, [uuid], ANY_PROJECT, None)
    second = bind_arqs(database, [uuid], add_card(database, 1))
    for instance in (first, second):
        steps = read_of_instance(database, instance)
        assert list_names(steps) in (
            ['Unbound', 'Bound', 'BindStarted'],
            ['Bound', 'BindStarted', 'Unbound'],
        )
        assert {step.instance_uuid for step in steps} == {None, instance}


def test_pages_of_history_have_each_step_once(database: Database) -> None:
    """The creation, which has no row, is on the last page, however full that is."""
    (uuid,) = create_bound_arqs(database, 1)
    assert read_pages(database, uuid) == [
        ['Bound', 'Claimed'],
        ['BindStarted', 'Initial'],
    ]
    database.write(release.unbind_arqs, [uuid], ANY_PROJECT, None)
    assert read_pages(database, uuid)[1:] == [['Claimed', 'BindStarted'], ['Initial']]
    query = replace(LATEST_FIRST, marker=uuid)
    with pytest.raises(InvalidInput):
        database.read(history.list_steps, uuid, ANY_PROJECT, query)


def test_refused_bind_is_in_history_of_its_instance(database: Database) -> None:
    (uuid,), instance, refusing = add_arqs(database, 1), str(uuid4()), str(uuid4())
    error = InstanceHasArqs(instance=refusing)
    for scope in (ANY_PROJECT, FOREIGN):
        database.write(
            history.record_refused_bind, [uuid, instance], scope, refusing, error
        )
    (step,) = read_of_instance(database, refusing, Scope(PROJECT))
    assert (step.step, step.arq_uuid) == ('BindRefused', uuid)
    assert step.reason == error.text
    assert read_of_instance(database, instance) == ()


def make_old(database: Database, uuid: str, *, except_for: str = '') -> None:
    """Date the steps of an ARQ 31 days back."""
    steps = ArqEvent.arq_uuid == uuid, ArqEvent.step != except_for
    at = datetime.now(UTC) - timedelta(days=31)
    change_rows(database, ArqEvent, *steps, at=at)


def test_old_history_of_deleted_arq_is_deleted(database: Database) -> None:
    recent, old, living = (
        create_bound_arqs(database, 1, needs_host=False)[0] for _ in range(3)
    )
    make_old(database, living)
    make_old(database, recent, except_for='Bound')
    make_old(database, old)
    delete(database, recent, old)
    before = datetime.now(UTC) - timedelta(days=30)
    assert database.write(history.delete_old_histories, before) == 2
    uuids = select(ArqEvent.arq_uuid, func.count()).group_by(ArqEvent.arq_uuid)
    rows = database.read(lambda session: session.execute(uuids).all())
    assert {(row[0], row[1]) for row in rows} == {(living, 2), (recent, 2)}


# --- operations -----------------------------------------------------------------------


def test_steps_of_bind_and_release_come_from_history(database: Database) -> None:
    """Show only the part of an operation, of any number of operations in one SELECT."""
    uuids, card = add_arqs(database, 2), add_card(database, 2)
    first, unbind, second = (
        NewOperation(kind, parameters={'arqs': uuids})
        for kind in ('bind', 'release', 'bind')
    )

    def accept(operation: NewOperation) -> Job:
        job = replace(BIND_JOB, operation=operation)
        return accept_bind(database, bindings(uuids, card), job)

    claim_for_bind(database, accept(first), uuids)
    database.write(release.unbind_arqs, uuids, ANY_PROJECT, unbind)
    error = DriverError(reason='It is hot.')
    database.write(binding.fail_bind, accept(second), uuids, error, FAILED_EVENT_JOB)
    listed = database.read(operations.list_operations, Query(), None)
    with statements(database) as sql:
        with_steps = database.read(history.add_steps, listed)
    assert len(sql) == 1
    assert [[step['name'] for step in item.steps] for item in with_steps] == [
        ['BindStarted', 'Bound'],
        ['Unbound'],
        ['BindStarted', 'BindFailed'],
    ]
    failure = with_steps[2].steps[-1]
    assert failure['reason'] == error.text
    assert failure['error_code'] == find_code(DriverError)
