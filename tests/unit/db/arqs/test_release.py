# SPDX-License-Identifier: Apache-2.0
"""Unbind and delete: a handle is free at once, or after its host has cleaned it."""

from uuid import uuid4

import pytest

from cyborg_lite.db.arqs import attach_handles, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.arqs import ArqNotFound
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import OperationKind
from tests.builders.bind_jobs import ANY_PROJECT
from tests.builders.bound_arqs import create_bound_arqs, create_bound_instance
from tests.builders.rows import OWNER, owners, states
from tests.support.sql_statements import statements

FAILURE = DriverError(reason='the instance uses it')


def lease_release_jobs(database: Database) -> list[Job]:
    leased = database.write(queue.lease_jobs, OWNER, 10)
    return [job for job in leased if job.type == OperationKind.RELEASE]


def find_handle(database: Database, job: Job) -> AllocatedHandle:
    """Return the unclean handle of a release job."""
    uuid = job.payload['handle_uuid']
    handle = database.read(attach_handles.find_unclean_handle, uuid)
    assert handle is not None
    return handle


def list_job_types(database: Database) -> list[str]:
    return sorted(job_count.type for job_count in database.read(queue.count_jobs))


# --- unbind ---------------------------------------------------------------------------


def test_unbind_unknown_arq_changes_nothing(database: Database) -> None:
    uuids, _ = create_bound_instance(database, 1)
    with pytest.raises(ArqNotFound):
        database.write(release.unbind_arqs, [*uuids, str(uuid4())], ANY_PROJECT, None)
    assert states(database, uuids) == ['Bound']
    assert owners(database) == uuids


def test_release_end_updates_placement(database: Database) -> None:
    """A sync for another reason, during the first attempt, reserves the handle."""
    uuids = create_bound_arqs(database, 1)
    database.write(release.unbind_arqs, uuids, ANY_PROJECT, None)
    (job,) = lease_release_jobs(database)
    assert job.attempts == 1
    handle = find_handle(database, job)
    (provider,) = database.read(providers.list_providers_of_host, handle.hostname)
    assert provider.reserved == 1
    database.write(release.record_release, job, handle)
    (provider,) = database.read(providers.list_providers_of_host, handle.hostname)
    assert provider.reserved == 0
    assert list_job_types(database) == ['reconcile']


def test_release_failure_sets_unbind_failed_until_released(database: Database) -> None:
    uuids = create_bound_arqs(database, 1)
    database.write(release.unbind_arqs, uuids, ANY_PROJECT, None)
    (job,) = lease_release_jobs(database)
    handle = find_handle(database, job)
    database.write(release.record_release_failure, handle, FAILURE)
    assert states(database, uuids) == ['UnbindFailed']
    assert owners(database) == uuids
    database.write(release.record_release, job, handle)
    assert states(database, uuids) == ['Unbound']
    assert owners(database) == []


# --- delete ---------------------------------------------------------------------------


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
    database.write(release.record_release_failure, handle, FAILURE)
    assert states(database, uuids) == ['Deleting']
    # Placement must reserve the handle meanwhile.
    assert list_job_types(database) == ['reconcile', 'release']
    database.write(release.record_release, job, handle)
    assert states(database, uuids) == []
    assert owners(database) == []


def test_delete_cost_does_not_depend_on_number(database: Database) -> None:
    counts = []
    for _, instance in [create_bound_instance(database, number) for number in (1, 8)]:
        with statements(database) as sql:
            database.write(release.delete_arqs_of_instance, instance, ANY_PROJECT, None)
        counts.append(len(sql))
    # One of them stores the use of the units.
    assert counts[0] == counts[1] <= 6
