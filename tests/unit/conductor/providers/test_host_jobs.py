# SPDX-License-Identifier: Apache-2.0
"""Syncs by callers and by the audit: one Placement sync job of each host."""

import threading
from uuid import uuid4

import pytest

from cyborg_lite.conductor.providers import host_jobs
from cyborg_lite.conductor.providers.host_jobs import (
    HostSyncJobs,
    PlacementAuditScheduler,
)
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
from tests.builders.provider_rows import add_device, change_device
from tests.builders.service_rows import add_audited_agents
from tests.doubles.placement import FakePlacement

HOST = 'compute-1'
RUNNER = Owner('runner', 30_000)
CALLER = Owner('caller', 30_000)


@pytest.fixture
def handler(database: Database, sync: PlacementSync) -> PlacementSyncHandler:
    """Return the handler of the conductor that has leased the job first."""
    return PlacementSyncHandler(database, sync)


@pytest.fixture
def jobs(database: Database, sync: PlacementSync) -> HostSyncJobs:
    """Return the syncs of a caller in another conductor."""
    return HostSyncJobs(database, sync, CALLER)


@pytest.fixture
def gpu(database: Database) -> str:
    rp_uuid = add_device(database, HOST, 'gpu')
    database.write(queue.add_job, queue.placement_sync_job(HOST))
    return rp_uuid


def lease(database: Database, owner: Owner = RUNNER) -> Job:
    (job,) = database.write(queue.lease_jobs, owner, 1)
    return job


def test_sync_waiting_job_runs_in_caller(
    database: Database, placement: FakePlacement, jobs: HostSyncJobs, gpu: str
) -> None:
    jobs.sync(HOST)
    assert gpu in placement.providers
    assert database.read(queue.count_jobs) == ()


def test_sync_running_job_is_awaited(
    database: Database,
    placement: FakePlacement,
    sync: PlacementSync,
    handler: PlacementSyncHandler,
    gpu: str,
) -> None:
    job = lease(database)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        assert placement.calls == []
        handler.run(job)
        pauses.append(seconds)

    HostSyncJobs(database, sync, CALLER, pause).sync(HOST)
    assert len(pauses) == 1
    assert gpu in placement.providers


def test_sync_other_worker_postponed_runs_in_caller(
    database: Database, placement: FakePlacement, sync: PlacementSync, gpu: str
) -> None:
    job = lease(database)

    def pause(_: float) -> None:
        database.write(queue.postpone_job, job, 3_600_000, 'Placement is away')

    HostSyncJobs(database, sync, CALLER, pause).sync(HOST)
    assert gpu in placement.providers


@pytest.mark.usefixtures('gpu')
def test_sync_other_worker_hangs_raises(
    database: Database,
    placement: FakePlacement,
    jobs: HostSyncJobs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lease(database)
    monkeypatch.setattr(host_jobs, '_LONGEST_WAIT', 0.0)
    with pytest.raises(HostSyncBusy):
        jobs.sync(HOST)
    assert placement.calls == []


@pytest.mark.usefixtures('gpu')
def test_sync_failed_leaves_job_waiting(
    database: Database, placement: FakePlacement, jobs: HostSyncJobs
) -> None:
    placement.errors = [ServiceUnavailable(what='Placement')]
    with pytest.raises(ServiceUnavailable):
        jobs.sync(HOST)
    (count,) = database.read(queue.count_jobs)
    assert count.state is JobState.WAITING


def test_sync_in_mode_runs_without_stored_job(
    database: Database, jobs: HostSyncJobs
) -> None:
    add_device(database, HOST, 'gpu')
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
    database: Database,
    placement: FakePlacement,
    handler: PlacementSyncHandler,
    gpu: str,
) -> None:
    """A write of the stopped worker is under way, and arrives last."""
    handler.run(lease(database))
    generation = placement.providers[gpu].node.generation
    database.write(queue.add_job, queue.placement_sync_job(HOST))
    lease(database, Owner('stopped', -1))
    handler.run(lease(database))
    assert placement.providers[gpu].node.generation > generation


# --- audits ---------------------------------------------------------------------------


def run_once(database: Database, interval: float) -> tuple[int, int]:
    """Schedule once; return the numbers of jobs and of wake-ups."""
    woken: list[bool] = []
    stopping = threading.Event()
    scheduler = PlacementAuditScheduler(
        database, lambda: woken.append(True), interval, stopping
    )
    scheduler.schedule()
    stopping.set()
    scheduler.run()
    waiting = sum(count.count for count in database.read(queue.count_jobs))
    return waiting, len(woken)


def test_schedule_writes_jobs_of_due_hosts(database: Database) -> None:
    assert run_once(database, 3600.0) == (0, 0)
    add_audited_agents(database, 60)
    assert run_once(database, 3600.0) == (1, 1)


def test_schedule_interval_zero_covers_only_conflicts(database: Database) -> None:
    add_audited_agents(database, 60)
    assert run_once(database, 0) == (0, 0)
    change_device(database, add_device(database, 'host', 'x'), conflict='nova')
    assert run_once(database, 0) == (1, 1)


def test_schedule_unchanged_host_costs_two_requests(
    database: Database,
    placement: FakePlacement,
    sync: PlacementSync,
    handler: PlacementSyncHandler,
) -> None:
    host = 'compute-0'
    placement.create_provider(str(uuid4()), host, None)
    gpu = add_device(database, host, 'gpu')
    add_device(database, host, 'nic')
    sync.sync(host)
    for damage, requests in ((False, 2), (True, 5), (False, 2)):
        add_audited_agents(database, 1)
        if damage:
            placement.providers[gpu].inventories = {}
            placement.providers[gpu].touch()
        placement.calls.clear()
        run_once(database, 300.0)
        handler.run(lease(database))
        assert len(placement.calls) == requests
    assert placement.providers[gpu].inventories
