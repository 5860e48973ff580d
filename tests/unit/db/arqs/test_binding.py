# SPDX-License-Identifier: Apache-2.0
"""Binds: acceptance, claims and completion, each for all ARQs or none."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, event, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import arqs, attach_handles, binding, release
from cyborg_lite.db.arqs.claiming import Allocated
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.arqs import (
    ArqStateConflict,
    BindCancelled,
    HandlesContended,
    HandlesNotConfirmed,
    InstanceHasArqs,
    NoFreeHandle,
)
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.jobs import JobLost
from cyborg_lite.model.devices.devices import ConfirmedHandle
from cyborg_lite.model.jobs import Owner
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import (
    ANY_PROJECT,
    BIND_JOB,
    BOUND_EVENT_JOB,
    FAILED_EVENT_JOB,
    accept_bind,
    claim_for_bind,
    complete_bind,
    confirm_all,
)
from tests.builders.bound_arqs import bind_arqs
from tests.builders.rows import (
    OWNER,
    PROJECT,
    add_arqs,
    add_card,
    bindings,
    owners,
    states,
)
from tests.builders.table_rows import change_rows, read_column
from tests.support.sql_statements import statements, transactions

FAILURE = DriverError(reason='no such type')


def accept_and_claim(
    database: Database, uuids: list[str], card: str
) -> binding.ClaimResult:
    job = accept_bind(database, bindings(uuids, card))
    return claim_for_bind(database, job, uuids)


def list_arqs(database: Database, **filters: str) -> list[dict[str, object]]:
    query = Query(filters={name: (value,) for name, value in filters.items()})
    arqs_found = database.read(arqs.list_arqs, query, ANY_PROJECT)
    return [{name: getattr(arq, name) for name in arq.__slots__} for arq in arqs_found]


def list_job_types(database: Database) -> list[str]:
    return sorted(read_column(database, select(JobRow.kind)))


# --- acceptance ---------------------------------------------------------------------


def test_accept_bind_without_free_worker_adds_waiting_job(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 1)
    requested = bindings(uuids, card)
    new_job = replace(BIND_JOB, host='compute-1')
    database.write(binding.accept_waiting_bind, requested, ANY_PROJECT, new_job)
    assert states(database, uuids) == ['BindStarted']
    (leased,) = database.write(queue.lease_jobs, OWNER, 10)
    assert (leased.type, leased.host) == (OperationKind.BIND, 'compute-1')
    claim_for_bind(database, leased, uuids)


def test_accept_bind_arq_started_meanwhile_raises(database: Database) -> None:
    """Another bind of one of the ARQs is accepted after they were read."""
    uuids = add_arqs(database, 2)
    requested = bindings(uuids, add_card(database, 2))
    started = update(Arq).where(Arq.uuid == uuids[1]).values(generation=1)
    races = [started]

    # Any: objects of SQLAlchemy and of the database driver, which are not used.
    def start_other(connection: Connection, _: Any, statement: str, *__: Any) -> None:
        if statement.startswith('UPDATE arqs') and races:
            connection.execute(races.pop())

    def start(session: Session) -> None:
        event.listen(session.connection(), 'before_cursor_execute', start_other)
        binding.accept_bind(session, requested, ANY_PROJECT, BIND_JOB, OWNER)

    with pytest.raises(ArqStateConflict):
        database.write(start)
    assert states(database, uuids) == ['Initial', 'Initial']
    assert database.write(queue.lease_jobs, OWNER, 9) == ()


@pytest.mark.parametrize('needs_host', [False, True])
def test_accept_bind_replaces_failed_arqs(database: Database, needs_host: bool) -> None:
    """Nova keeps the ARQs of an unshelve that has failed."""
    instance, failed = str(uuid4()), add_arqs(database, 2)
    card = add_card(database, 2, needs_host=needs_host)
    job = accept_bind(database, bindings(failed, card, instance))
    job = claim_for_bind(database, job, failed).job
    if needs_host:
        database.write(binding.fail_bind, job, failed, FAILURE, FAILED_EVENT_JOB)
    else:
        change_rows(database, Arq, Arq.uuid.in_(failed), state='BindFailed')
    uuids = add_arqs(database, 2)
    accept_bind(database, bindings(uuids, card, instance))
    assert states(database, uuids) == ['BindStarted'] * 2
    # A host must clean the handles before these ARQs are deleted.
    assert states(database, failed) == ['Deleting'] * (2 if needs_host else 0)
    assert [arq['uuid'] for arq in list_arqs(database, instance_uuid=instance)] == uuids


def test_accept_bind_failed_and_bound_arqs_raises(database: Database) -> None:
    """The handle of a bound ARQ may be in use."""
    instance, first = str(uuid4()), add_arqs(database, 2)
    card = add_card(database, 4)
    bind_arqs(database, first, card, instance)
    change_rows(database, Arq, Arq.uuid == first[0], state='BindFailed')
    second = add_arqs(database, 1)
    with pytest.raises(InstanceHasArqs, match=instance):
        accept_bind(database, bindings(second, card, instance))
    assert states(database, first) == ['BindFailed', 'Bound']


# --- claims -------------------------------------------------------------------------


def test_bind_eight_arqs_costs_ten_statements(database: Database) -> None:
    uuids, card = add_arqs(database, 8), add_card(database, 16)
    with statements(database) as sql, transactions(database) as transaction_ends:
        claim_for_bind(database, accept_bind(database, bindings(uuids, card)), uuids)
    assert len(sql) <= 11
    assert transaction_ends == ['commit', 'commit']
    assert states(database, uuids) == ['Bound'] * 8


def test_claim_unknown_provider_raises(database: Database) -> None:
    with pytest.raises(NoFreeHandle, match='No device of Cyborg'):
        accept_and_claim(database, add_arqs(database, 1), str(uuid4()))


def test_claim_after_unbind_is_cancelled(database: Database) -> None:
    uuids, card = add_arqs(database, 2), add_card(database, 2)
    job = accept_bind(database, bindings(uuids, card))
    database.write(release.unbind_arqs, uuids[:1], ANY_PROJECT, None)
    with pytest.raises(BindCancelled):
        claim_for_bind(database, job, uuids)
    assert owners(database) == []


def test_claim_with_lost_job_changes_nothing(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 1)
    job = accept_bind(database, bindings(uuids, card))
    change_rows(database, JobRow, lease=9)
    with pytest.raises(JobLost):
        claim_for_bind(database, job, uuids)
    assert states(database, uuids) == ['BindStarted']
    assert owners(database) == []


def test_claim_sets_project_of_instance(database: Database) -> None:
    """An administrator may unshelve the instance of another project."""
    uuids, card = add_arqs(database, 1, project='a' * 32), add_card(database, 1)
    job = accept_bind(database, bindings(uuids, card))
    claim_for_bind(database, job, uuids, Allocated(PROJECT))
    assert [arq['project_id'] for arq in list_arqs(database)] == [PROJECT]


# --- handles that their host prepares ------------------------------------------------


def test_lease_bind_job_after_claim_finds_handles(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 1, needs_host=True)
    accept_and_claim(database, uuids, card)
    change_rows(database, JobRow, lease_until=0)
    (job,) = database.write(queue.lease_jobs, Owner('conductor:2:2', 30_000), 1)
    assert job.step == binding.CLAIMED
    (handle,) = database.read(attach_handles.list_handles_of_arqs, uuids)
    assert handle.arq_uuid == uuids[0]


@pytest.mark.parametrize(
    'change',
    [
        lambda first, second: [second],
        lambda first, second: [first, second, replace(first, uuid='another-handle')],
        lambda first, second: [replace(first, arq_uuid=second.arq_uuid), second],
        lambda first, second: [replace(first, bind_generation=9), second],
    ],
    ids=['dropped', 'foreign', 'arq', 'generation'],
)
def test_complete_bind_other_confirmed_handles_raises(
    change: Callable[..., list[ConfirmedHandle]], database: Database
) -> None:
    uuids, card = add_arqs(database, 2), add_card(database, 2, needs_host=True)
    claimed = accept_and_claim(database, uuids, card)
    prepared = confirm_all(database, uuids)
    changed = replace(prepared, confirmed=change(*prepared.confirmed))
    event = None, BOUND_EVENT_JOB
    with pytest.raises(HandlesNotConfirmed):
        database.write(binding.complete_bind, claimed.job, changed, *event)
    assert states(database, uuids) == ['BindStarted'] * 2
    database.write(binding.complete_bind, claimed.job, prepared, *event)
    assert states(database, uuids) == ['Bound'] * 2


def test_complete_bind_needs_no_confirmation_without_host(database: Database) -> None:
    uuids, instance = add_arqs(database, 2), str(uuid4())
    cards = [add_card(database, 1, needs_host=flag) for flag in (True, False)]
    requested = bindings(uuids[:1], cards[0], instance)
    requested |= bindings(uuids[1:], cards[1], instance)
    claimed = claim_for_bind(database, accept_bind(database, requested), uuids)
    prepared = confirm_all(database, uuids)
    assert [item.arq_uuid for item in prepared.confirmed] == uuids[:1]
    database.write(binding.complete_bind, claimed.job, prepared, None, BOUND_EVENT_JOB)
    assert states(database, uuids) == ['Bound'] * 2


def test_complete_bind_after_delete_is_cancelled(database: Database) -> None:
    uuids, card = add_arqs(database, 2), add_card(database, 2, needs_host=True)
    claimed = accept_and_claim(database, uuids, card)
    database.write(release.delete_arqs, uuids[:1], ANY_PROJECT, True, None)
    # The agent may still prepare the handle, so no release job runs yet.
    assert list_job_types(database) == ['bind']
    with pytest.raises(BindCancelled):
        complete_bind(database, claimed.job, uuids)
    database.write(binding.fail_bind, claimed.job, uuids, FAILURE, FAILED_EVENT_JOB)
    assert states(database, uuids) == ['Deleting', 'BindFailed']
    assert list_job_types(database) == ['nova-event', 'release', 'release']


# --- failure --------------------------------------------------------------------------


def test_claim_arq_with_unclean_handle_is_contended(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 2, needs_host=True)
    bind_arqs(database, uuids, card)
    database.write(release.unbind_arqs, uuids, ANY_PROJECT, None)
    assert states(database, uuids) == ['Unbound']
    with pytest.raises(HandlesContended):
        accept_and_claim(database, uuids, card)


def test_accept_bind_project_applies_to_given_arq(database: Database) -> None:
    card = add_card(database, 2)
    first, second = add_arqs(database, 2)
    binding_by_arq = bindings([first, second], card, str(uuid4()))
    binding_by_arq[first] = replace(binding_by_arq[first], project_id='other')
    accept_bind(database, binding_by_arq)
    arqs_shown = {arq['uuid']: arq['project_id'] for arq in list_arqs(database)}
    assert arqs_shown == {first: 'other', second: PROJECT}
