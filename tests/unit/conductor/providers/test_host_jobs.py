# SPDX-License-Identifier: Apache-2.0
"""Syncs by callers: they run or await the one Placement sync job of the host."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.providers import host_jobs
from cyborg_lite.conductor.providers.host_jobs import HostSyncJobs
from cyborg_lite.conductor.providers.sync import (
    PlacementSync,
    PlacementSyncHandler,
    SyncMode,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.jobs import JobLost
from cyborg_lite.errors.providers import HostSyncBusy
from cyborg_lite.model.jobs import Job, JobState, Owner
from tests.builders.provider_rows import add_device
from tests.doubles.placement import FakePlacement

HOST = 'compute-1'
RUNNER = Owner('runner', 30_000)
CALLER = Owner('caller', 30_000)


@pytest.fixture
def handler(database: Database, placement: FakePlacement) -> PlacementSyncHandler:
    """Return the handler of the conductor that has leased the job first."""
    return PlacementSyncHandler(database, PlacementSync(database, placement))


@pytest.fixture
def gpu(database: Database) -> str:
    rp_uuid = add_device(database, HOST, 'gpu')
    database.write(queue.add_job, queue.placement_sync_job(HOST))
    return rp_uuid


def lease(database: Database, owner: Owner = RUNNER) -> Job:
    (job,) = database.write(queue.lease_jobs, owner, 1)
    return job


def jobs_of_callers(database: Database, placement: FakePlacement) -> HostSyncJobs:
    return HostSyncJobs(database, PlacementSync(database, placement), CALLER)


def test_sync_waiting_job_runs_in_caller(
    database: Database, placement: FakePlacement, gpu: str
) -> None:
    jobs_of_callers(database, placement).sync(HOST)
    assert gpu in placement.providers
    assert database.read(queue.count_jobs) == ()


def test_sync_running_job_is_awaited(
    database: Database,
    placement: FakePlacement,
    handler: PlacementSyncHandler,
    gpu: str,
) -> None:
    job = lease(database)
    pauses = []

    def pause(_: float) -> None:
        assert placement.calls == []
        pauses.append(handler.run(job))

    sync = PlacementSync(database, placement)
    HostSyncJobs(database, sync, CALLER, pause).sync(HOST)
    assert len(pauses) == 1
    assert gpu in placement.providers


def test_sync_other_worker_postponed_runs_in_caller(
    database: Database, placement: FakePlacement, gpu: str
) -> None:
    job = lease(database)

    def pause(_: float) -> None:
        database.write(queue.postpone_job, job, 3_600_000, 'Placement is away')

    sync = PlacementSync(database, placement)
    HostSyncJobs(database, sync, CALLER, pause).sync(HOST)
    assert gpu in placement.providers


def test_sync_other_worker_hangs_raises(
    database: Database,
    placement: FakePlacement,
    gpu: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lease(database)
    monkeypatch.setattr(host_jobs, '_LONGEST_WAIT', 0.0)
    with pytest.raises(HostSyncBusy):
        jobs_of_callers(database, placement).sync(HOST)
    assert placement.calls == []


def test_sync_failed_leaves_job_waiting(
    database: Database, placement: FakePlacement, gpu: str
) -> None:
    placement.errors = [ServiceUnavailable(what='Placement')]
    with pytest.raises(ServiceUnavailable):
        jobs_of_callers(database, placement).sync(HOST)
    (count,) = database.read(queue.count_jobs)
    assert count.state is JobState.WAITING


def test_sync_in_mode_runs_without_stored_job(
    database: Database, placement: FakePlacement
) -> None:
    add_device(database, HOST, 'gpu')
    jobs = jobs_of_callers(database, placement)
    assert jobs.sync_in_mode(HOST, SyncMode(deep=True)).changes
    assert database.read(queue.count_jobs) == ()


class SlowPlacement(FakePlacement):
    """Placement during whose first write another conductor takes over the job."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database = database
        self.new_job: Job | None = None
        self.fails_later = False

    def _count_call(self, call: str) -> None:
        super()._count_call(call)
        if self.new_job is None and call.startswith('PUT'):
            self.new_job = lease(self.database, CALLER)
        elif self.new_job is not None and self.fails_later:
            raise ServiceUnavailable(what='Placement')


@pytest.mark.parametrize('fails', [False, True])
def test_job_lease_lost_requests_another_sync(database: Database, fails: bool) -> None:
    """The new worker may have read the providers before the write."""
    placement = SlowPlacement(database)
    FakePlacement.create_provider(placement, str(uuid4()), HOST, None)
    add_device(database, HOST, 'gpu')
    database.write(queue.add_job, queue.placement_sync_job(HOST))
    job = lease(database, Owner('stopped', -1))
    handler = PlacementSyncHandler(database, PlacementSync(database, placement))
    placement.fails_later = fails
    with pytest.raises(ServiceUnavailable if fails else JobLost):
        handler.run(job)
    assert placement.new_job is not None
    database.write(queue.finish_job, placement.new_job)
    # The row waits again instead of being deleted.
    (count,) = database.read(queue.count_jobs)
    assert count.state is JobState.WAITING


def test_job_of_stopped_worker_fences_its_writes(
    database: Database, placement: FakePlacement, gpu: str
) -> None:
    """A write of the stopped worker is under way, and arrives last."""
    handler = PlacementSyncHandler(database, PlacementSync(database, placement))
    handler.run(lease(database))
    generation = placement.providers[gpu].node.generation
    database.write(queue.add_job, queue.placement_sync_job(HOST))
    lease(database, Owner('stopped', -1))
    handler.run(lease(database))
    assert placement.providers[gpu].node.generation > generation
