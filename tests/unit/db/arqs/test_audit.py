# SPDX-License-Identifier: Apache-2.0
"""Queries and repairs of the audit, each with the condition that prevents it."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from cyborg_lite.db.arqs import audit
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, Job
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.jobs.payloads import read_payload
from cyborg_lite.model.arqs.audit import Suspect
from cyborg_lite.model.jobs import JobType, ReleasePayload
from tests.builders.bound_arqs import create_bound_arqs, create_bound_instance
from tests.builders.rows import OWNER, add_arqs, owners, states

LATER = datetime.now(UTC) + timedelta(days=1)


def set_state(database: Database, state: str) -> None:
    """Set the state of all ARQs."""
    statement = update(Arq).values(state=state)
    database.write(lambda session: session.execute(statement))


def fail_release_jobs(database: Database) -> None:
    failed = update(Job).where(Job.kind == JobType.RELEASE)
    failed = failed.values(state='failed', key=None)
    database.write(lambda session: session.execute(failed))


def find_abandoned(database: Database) -> Suspect:
    (suspect,) = database.read(audit.list_abandoned_arqs, LATER, 0, 10)
    return suspect


def find_unreleased(database: Database) -> audit.UnreleasedHandle:
    (handle,) = database.read(audit.list_unreleased_handles, LATER)
    return handle


def test_list_arqs_with_device_pages_by_id(database: Database) -> None:
    uuids, instance = create_bound_instance(database, 3)
    first = database.read(audit.list_arqs_with_device, LATER, 0, 2)
    second_page = database.read(audit.list_arqs_with_device, LATER, first[-1].id, 2)
    assert [suspect.uuid for suspect in (*first, *second_page)] == uuids
    assert {suspect.instance_uuid for suspect in first} == {instance}


def test_list_arqs_with_device_recent_change_is_omitted(database: Database) -> None:
    create_bound_arqs(database, 1)
    before = datetime.now(UTC) - timedelta(days=1)
    assert database.read(audit.list_arqs_with_device, before, 0, 10) == ()


def test_list_abandoned_arqs_omits_arqs_with_handle(database: Database) -> None:
    create_bound_arqs(database, 1)
    (initial,) = add_arqs(database, 1)
    assert find_abandoned(database).uuid == initial


def test_delete_arq_abandoned_is_deleted(database: Database) -> None:
    uuids = add_arqs(database, 1)
    assert database.write(audit.delete_arq, find_abandoned(database), 'req-1')
    assert states(database, uuids) == []


def test_delete_arq_changed_meanwhile_is_kept(database: Database) -> None:
    uuids = add_arqs(database, 1)
    suspect = find_abandoned(database)
    set_state(database, 'Unbound')
    assert not database.write(audit.delete_arq, suspect, 'req-1')
    assert states(database, uuids) == ['Unbound']


def test_fail_bind_without_job_adds_expired_bind_job(database: Database) -> None:
    uuids = create_bound_arqs(database, 2)
    set_state(database, 'BindStarted')
    suspects = database.read(audit.list_lost_binds, LATER)
    assert [suspect.uuid for suspect in suspects] == uuids
    assert database.write(audit.fail_bind, suspects[0], 'req-1')
    assert database.read(audit.list_arqs_being_bound) == set(uuids)
    assert database.read(audit.list_lost_binds, LATER) == ()
    (job,) = database.write(queue.lease_jobs, OWNER, 10)
    assert (job.type, job.expired, job.request_id) == (JobType.BIND, True, 'req-1')


def test_fail_bind_second_arq_of_instance_is_refused(database: Database) -> None:
    create_bound_arqs(database, 2)
    set_state(database, 'BindStarted')
    first, second = database.read(audit.list_lost_binds, LATER)
    database.write(audit.fail_bind, first, None)
    assert not database.write(audit.fail_bind, second, None)


def test_release_handle_adds_release_job(database: Database) -> None:
    uuids = create_bound_arqs(database, 1)
    set_state(database, 'Unbound')
    handle = find_unreleased(database)
    assert handle.failed_job is None
    assert database.write(
        audit.release_handle, handle.suspect, handle.handle_uuid, 'req-1'
    )
    assert database.read(audit.list_unreleased_handles, LATER) == ()
    (job,) = database.write(queue.lease_jobs, OWNER, 10, [JobType.RELEASE])
    payload = read_payload(ReleasePayload, job.payload)
    assert payload.handle_uuid == handle.handle_uuid
    assert owners(database) == uuids


@pytest.mark.parametrize('retries', [1, 2])
def test_release_handle_failed_job_is_retried(database: Database, retries: int) -> None:
    create_bound_arqs(database, 1)
    set_state(database, 'Unbound')
    handle = find_unreleased(database)
    database.write(audit.release_handle, handle.suspect, handle.handle_uuid, None)
    for _ in range(retries):
        fail_release_jobs(database)
        handle = find_unreleased(database)
        assert handle.failed_job is not None
        assert database.write(
            audit.release_handle, handle.suspect, handle.handle_uuid, None
        )
    assert database.read(audit.list_unreleased_handles, LATER) == ()
