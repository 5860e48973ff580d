# SPDX-License-Identifier: Apache-2.0
"""Placement sync jobs that a caller runs itself, or for which it waits.

All syncs of a host go through the one job with its name, so no two workers write its
providers at the same time.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from oslo_log import log

from cyborg_lite.conductor.jobs.runner import EndlessHandler
from cyborg_lite.conductor.periodic import repeat
from cyborg_lite.conductor.providers.sync import (
    PlacementSync,
    PlacementSyncHandler,
    SyncMode,
    SyncResult,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.jobs import JobLost
from cyborg_lite.errors.providers import HostSyncBusy
from cyborg_lite.model.jobs import (
    Job,
    Owner,
    PlacementSyncPayload,
    ProviderRemovalPayload,
)
from cyborg_lite.model.operations import OperationKind

LOG = log.getLogger(__name__)

_LONGEST_WAIT: Final = 40.0  # seconds; clients of the REST API wait for 60
_PAUSE: Final = 0.2  # seconds between two looks at a job that another worker runs
_RETRY_DELAY_MS: Final = 1000


class HostSyncJobs:
    """Runs the Placement sync job of a host in the calling thread."""

    def __init__(
        self,
        database: Database,
        sync: PlacementSync,
        owner: Owner,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._database = database
        self._handler = PlacementSyncHandler(database, sync)
        # An owner that no job runner has; several threads may share it.
        self._owner = owner
        self._pause = pause  # waits for a number of seconds

    def sync(self, hostname: str) -> None:
        """Return when the sync job that the caller has written is finished.

        The calling thread runs the job unless another worker does.

        :raises HostSyncBusy: another worker did not finish the job in time
        :raises CyborgError: as ``PlacementSync.sync``; the job runs again later
        """
        for _ in self._looks(hostname):
            job = self._database.write(
                queue.lease_keyed_job, self._owner, OperationKind.RECONCILE, hostname
            )
            if job is not None:
                try:
                    payload = queue.read_payload(PlacementSyncPayload, job.payload)
                    self._run(job, SyncMode(deep=payload.deep))
                    return
                except JobLost:
                    continue  # the worker that has the lease now runs it once more
            if not self._database.read(
                queue.has_keyed_job, OperationKind.RECONCILE, hostname
            ):
                return

    def sync_in_mode(self, hostname: str, mode: SyncMode) -> SyncResult:
        """Write a sync job, run it and return the result.

        :raises HostSyncBusy: another worker did not finish the job in time
        :raises CyborgError: as ``PlacementSync.sync``; the job runs again later
        """
        new = queue.placement_sync_job(hostname, deep=mode.deep)
        for _ in self._looks(hostname):
            job = self._database.write(queue.add_and_lease_job, self._owner, new)
            if job is not None:
                return self._run(job, mode)
        raise HostSyncBusy(host=hostname)

    def _looks(self, hostname: str) -> Iterator[None]:
        """Yield until the longest wait has passed, with pauses."""
        end = time.monotonic() + _LONGEST_WAIT
        yield
        while time.monotonic() < end:
            self._pause(_PAUSE)
            yield
        raise HostSyncBusy(host=hostname)

    def _run(self, job: Job, mode: SyncMode) -> SyncResult:
        with self._renewed_lease(job):
            try:
                return self._handler.sync(job, mode)
            except JobLost:
                raise
            except CyborgError as error:
                self._postpone(job, error.text)
                raise

    def _postpone(self, job: Job, reason: str) -> None:
        try:
            self._database.write(queue.postpone_job, job, _RETRY_DELAY_MS, reason)
        except CyborgError as error:
            # The lease ends, and another worker leases the job.
            LOG.warning('Postponing job %s failed: %s', job.uuid, error.text)

    @contextmanager
    def _renewed_lease(self, job: Job) -> Iterator[None]:
        """Renew the lease of the job in another thread until the block ends."""
        finished = threading.Event()
        thread = threading.Thread(
            target=self._renew, args=(job, finished), name='host-sync', daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            finished.set()

    def _renew(self, job: Job, finished: threading.Event) -> None:
        while not finished.wait(self._owner.lease_ms / 3000):
            try:
                self._database.write(queue.renew_leases, self._owner, [job.uuid])
            except CyborgError as error:
                LOG.warning(
                    'Renewing the lease of job %s failed, retrying: %s',
                    job.uuid,
                    error.text,
                )


@dataclass(frozen=True, slots=True)
class ProviderRemovalHandler(EndlessHandler):
    """Deletes the providers of a removed host after nova-compute has dropped them.

    nova-compute reads the tree of its root provider again after ``[compute]
    resource_provider_association_refresh``, 300 s by default, at its next periodic
    task. Until then it fails every build if a provider of the tree is deleted
    (``get_allocations_for_provider_tree`` in Nova: scheduler/client/report.py).
    """

    sync_jobs: HostSyncJobs

    def run(self, job: Job) -> None:
        """Delete the detached providers of the host of the job."""
        hostname = queue.read_payload(ProviderRemovalPayload, job.payload).hostname
        self.sync_jobs.sync_in_mode(hostname, SyncMode(delete_detached=True))
        self.database.write(queue.finish_job, job)


# --- periodic comparison of all hosts with Placement ---


_PERIOD: Final = 60.0  # seconds between two runs of the loop


@dataclass(frozen=True, slots=True)
class PlacementAuditScheduler:
    """Schedules Placement sync jobs. Any number of conductors may run it."""

    database: Database
    wake: Callable[[], None]  # called when jobs were written
    interval: float  # seconds in which each host is compared once; 0: never
    stopping: threading.Event

    def run(self) -> None:
        """Schedule jobs until the stop event is set."""
        subject = 'Scheduling Placement audits'
        repeat(self.schedule, subject, lambda: _PERIOD, self.stopping)

    def schedule(self) -> None:
        """Schedule the jobs of one period."""
        scheduled = self.database.write(providers.schedule_conflict_checks)
        if self.interval:
            scheduled += self.database.write(
                providers.schedule_placement_audits, self.interval, _PERIOD
            )
        if scheduled:
            self.wake()
