# SPDX-License-Identifier: Apache-2.0
"""Unbind and delete: a handle is free at once, or after its host has cleaned it."""

from uuid import uuid4

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import attach_handles, binding, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, Deployable
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.arqs import ArqNotFound, ArqStateConflict
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.requests import ServiceTokenRequired
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.jobs import Job, JobType, NewJob
from tests.builders.bind_jobs import complete_bind
from tests.builders.bound_arqs import create_bound_instance
from tests.builders.rows import OWNER, add_arqs, add_card, bindings, owners, states
from tests.support.sql_statements import statements

ANY_PROJECT = Scope(project_id=None)
TENANT = Scope(project_id='b' * 32)
OTHER_PROJECT = Scope(project_id='c' * 32)
NOVA_WITH_OTHER_PROJECT = Scope(project_id='c' * 32, of_instances=True)


def lease_release_jobs(database: Database) -> list[Job]:
    leased = database.write(queue.lease_jobs, OWNER, 10)
    return [job for job in leased if job.type == JobType.RELEASE]


def find_handle(database: Database, job: Job) -> AllocatedHandle:
    """Return the unclean handle of a release job."""
    uuid = job.payload['handle_uuid']
    handle = database.read(attach_handles.find_unclean_handle, uuid)
    assert handle is not None
    return handle


def list_job_types(database: Database) -> list[str]:
    return sorted(job_count.type for job_count in database.read(queue.count_jobs))


def count_arqs(database: Database) -> int:
    return database.read(_count)


def _count(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(Arq)) or 0


# --- unbind ---------------------------------------------------------------------------


def test_unbind_passthrough_frees_handle_and_allows_bind(database: Database) -> None:
    uuids, instance = create_bound_instance(database, 2)
    database.write(release.unbind_arqs, uuids, ANY_PROJECT, None)
    assert states(database, uuids) == ['Unbound'] * 2
    assert owners(database) == []
    binding_by_arq = bindings(uuids, add_card(database, 2), instance)
    database.write(
        binding.accept_bind, binding_by_arq, ANY_PROJECT, NewJob(JobType.BIND), OWNER
    )


def test_unbind_initial_arq_changes_nothing(database: Database) -> None:
    uuids = add_arqs(database, 1)
    database.write(release.unbind_arqs, uuids, ANY_PROJECT, None)
    assert states(database, uuids) == ['Initial']


def test_unbind_unknown_arq_changes_nothing(database: Database) -> None:
    uuids, _ = create_bound_instance(database, 1)
    with pytest.raises(ArqNotFound):
        database.write(release.unbind_arqs, [*uuids, str(uuid4())], ANY_PROJECT, None)
    assert states(database, uuids) == ['Bound']
    assert owners(database) == uuids


def test_unbind_deleting_arq_raises(database: Database) -> None:
    uuids, _ = create_bound_instance(database, 1, needs_host=True)
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    with pytest.raises(ArqStateConflict):
        database.write(release.unbind_arqs, uuids, ANY_PROJECT, None)


def test_unbind_host_handle_is_owned_until_clean(database: Database) -> None:
    uuids, _ = create_bound_instance(database, 1, needs_host=True)
    database.write(release.unbind_arqs, uuids, ANY_PROJECT, 'req-7')
    assert states(database, uuids) == ['Unbound']
    assert owners(database) == uuids
    (job,) = lease_release_jobs(database)
    assert job.request_id == 'req-7'
    handle = find_handle(database, job)
    database.write(release.record_release, job, handle)
    assert owners(database) == []
    assert states(database, uuids) == ['Unbound']


def test_release_end_updates_placement(database: Database) -> None:
    """A sync for another reason, during the first attempt, reserves the handle."""
    uuids, _ = create_bound_instance(database, 1, needs_host=True)
    database.write(release.unbind_arqs, uuids, ANY_PROJECT, None)
    (job,) = lease_release_jobs(database)
    assert job.attempts == 1
    handle = find_handle(database, job)
    (provider,) = database.read(providers.list_providers_of_host, handle.hostname)
    assert provider.reserved == 1
    database.write(release.record_release, job, handle)
    (provider,) = database.read(providers.list_providers_of_host, handle.hostname)
    assert provider.reserved == 0
    assert list_job_types(database) == ['placement-sync']


def test_release_failure_sets_unbind_failed_until_released(database: Database) -> None:
    uuids, _ = create_bound_instance(database, 1, needs_host=True)
    database.write(release.unbind_arqs, uuids, ANY_PROJECT, None)
    (job,) = lease_release_jobs(database)
    handle = find_handle(database, job)
    database.write(
        release.record_release_failure,
        handle,
        DriverError(reason='the instance uses it'),
    )
    assert states(database, uuids) == ['UnbindFailed']
    assert owners(database) == uuids
    database.write(release.record_release, job, handle)
    assert states(database, uuids) == ['Unbound']
    assert owners(database) == []


# --- delete ---------------------------------------------------------------------------


def test_delete_passthrough_frees_handles(database: Database) -> None:
    uuids, _ = create_bound_instance(database, 3)
    missing = database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    assert missing == ()
    assert states(database, uuids) == []
    assert owners(database) == []


def test_delete_unknown_arq_is_returned_as_missing(database: Database) -> None:
    (existing,), unknown = add_arqs(database, 1), str(uuid4())
    uuids = [unknown, existing]
    missing = database.write(release.delete_arqs, uuids, TENANT, False, None)
    assert missing == (unknown,)
    assert states(database, [existing]) == []


def test_delete_bound_arq_without_service_token_raises(database: Database) -> None:
    uuids, _ = create_bound_instance(database, 1)
    free = add_arqs(database, 1)
    with pytest.raises(ServiceTokenRequired):
        database.write(release.delete_arqs, free + uuids, TENANT, False, None)
    assert states(database, free + uuids) == ['Initial', 'Bound']


def test_delete_arq_of_other_project_is_missing(database: Database) -> None:
    uuids = add_arqs(database, 1)
    missing = database.write(release.delete_arqs, uuids, OTHER_PROJECT, False, None)
    assert missing == tuple(uuids)
    assert states(database, uuids) == ['Initial']


def test_delete_by_instance_nova_ignores_project(database: Database) -> None:
    uuids, instance = create_bound_instance(database, 2)
    scope = NOVA_WITH_OTHER_PROJECT
    database.write(release.delete_arqs_of_instance, instance, scope, None)
    assert states(database, uuids) == []


def test_delete_by_instance_twice_succeeds(database: Database) -> None:
    _, instance = create_bound_instance(database, 1)
    for _ in range(2):
        database.write(release.delete_arqs_of_instance, instance, ANY_PROJECT, None)
    assert count_arqs(database) == 0


def test_delete_concurrent_second_gets_404(database: Database) -> None:
    uuids, _ = create_bound_instance(database, 2, needs_host=True)
    calls = [
        database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
        for _ in range(2)
    ]
    assert calls == [(), tuple(sorted(uuids))]
    assert len(lease_release_jobs(database)) == 2


def test_delete_host_handle_keeps_deleting_arq_until_clean(database: Database) -> None:
    uuids, instance = create_bound_instance(database, 1, needs_host=True)
    database.write(release.delete_arqs_of_instance, instance, ANY_PROJECT, None)
    assert states(database, uuids) == ['Deleting']
    assert owners(database) == uuids
    (job,) = lease_release_jobs(database)
    handle = find_handle(database, job)
    database.write(
        release.record_release_failure,
        handle,
        DriverError(reason='the host is unreachable'),
    )
    assert states(database, uuids) == ['Deleting']
    # Placement must reserve the handle meanwhile.
    assert list_job_types(database) == ['placement-sync', 'release']
    database.write(release.record_release, job, handle)
    assert states(database, uuids) == []
    assert owners(database) == []


def test_accept_bind_instance_with_deleting_arqs_succeeds(database: Database) -> None:
    """An evacuation leaves ARQs behind on an old host that stays unreachable."""
    _, instance = create_bound_instance(database, 1, needs_host=True)
    database.write(release.delete_arqs_of_instance, instance, ANY_PROJECT, None)
    uuids = add_arqs(database, 1)
    binding_by_arq = bindings(uuids, add_card(database, 1), instance)
    database.write(
        binding.accept_bind, binding_by_arq, ANY_PROJECT, NewJob(JobType.BIND), OWNER
    )
    assert states(database, uuids) == ['BindStarted']


def test_delete_twice_adds_one_release_job(database: Database) -> None:
    uuids, _ = create_bound_instance(database, 1, needs_host=True)
    for _ in range(2):
        database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    assert len(lease_release_jobs(database)) == 1


def test_find_unclean_handle_after_release_is_none(database: Database) -> None:
    """A second run of the job must not take the handle from its next owner."""
    uuids, _ = create_bound_instance(database, 1, needs_host=True)
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    (job,) = lease_release_jobs(database)
    handle = find_handle(database, job)
    database.write(release.record_release, job, handle)
    assert (
        database.read(attach_handles.find_unclean_handle, job.payload['handle_uuid'])
        is None
    )


def test_delete_cost_does_not_depend_on_number(database: Database) -> None:
    single, eight = (
        create_bound_instance(database, 1),
        create_bound_instance(database, 8),
    )
    counts = []
    for _, instance in (single, eight):
        with statements(database) as sql:
            database.write(release.delete_arqs_of_instance, instance, ANY_PROJECT, None)
        counts.append(len(sql))
    # One of them stores the use of the units.
    assert counts[0] == counts[1] <= 6


def test_release_job_rerun_uses_current_owner(database: Database) -> None:
    """The second call runs the job again; another ARQ may own the handle by then."""
    uuids, _ = create_bound_instance(database, 1, needs_host=True)
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    (job,) = lease_release_jobs(database)
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    handle = find_handle(database, job)
    database.write(release.record_release, job, handle)
    (next_job,) = lease_release_jobs(database)

    (rp_uuid,) = database.read(lambda s: s.scalars(select(Deployable.rp_uuid)).all())
    assert rp_uuid is not None
    next_arqs, event_job = add_arqs(database, 1), NewJob(JobType.NOVA_EVENT)
    binding_by_arq = bindings(next_arqs, rp_uuid)
    bind = database.write(
        binding.accept_bind, binding_by_arq, ANY_PROJECT, NewJob(JobType.BIND), OWNER
    )
    claimed = database.write(binding.claim_for_bind, bind, next_arqs, None, event_job)
    complete_bind(database, claimed.job, next_arqs, event_job)
    assert (
        database.read(
            attach_handles.find_unclean_handle, next_job.payload['handle_uuid']
        )
        is None
    )
    database.write(release.delete_arqs, next_arqs, ANY_PROJECT, True, None)
    handle = find_handle(database, next_job)
    assert handle.arq_uuid == next_arqs[0]
