# SPDX-License-Identifier: Apache-2.0
"""The job runner: leases jobs from the database and runs them on threads.

A job that this process writes runs at once. A job of a process that has exited runs
when its lease has ended. An RPC message never represents a job: it is acknowledged
before the work begins, and is lost if its process exits. The row represents the job;
see ``cyborg_lite/db/jobs/queue.py``.
"""

import os
import random
import secrets
import socket
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from oslo_log import log

from cyborg_lite.conductor.job_attempts import Handler, JobAttempts
from cyborg_lite.conductor.metrics import Metrics
from cyborg_lite.db.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.jobs import Job, Owner

LOG = log.getLogger(__name__)

_POLL_INTERVAL: Final = 1.0  # seconds; a call of `wake` usually comes first


def create_owner(lease_seconds: float) -> Owner:
    """Return an owner with a name that no other process has, now or later."""
    name = f'{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}'
    return Owner(name=name, lease_ms=int(lease_seconds * 1000))


class JobRunner:
    """The worker threads of one conductor process."""

    def __init__(
        self,
        database: Database,
        handlers: Mapping[str, Handler],
        owner: Owner,
        workers: int,
        metrics: Metrics | None = None,
    ) -> None:
        """Prepare the threads.

        :param handlers: by job type; jobs of other types are not leased
        :param workers: number of worker threads
        """
        self.owner = owner
        self._attempts = JobAttempts(database, handlers, metrics or Metrics())
        self._database = database
        self._job_types = tuple(handlers)
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix='job')
        self._lock = threading.Lock()
        self._leased: set[str] = set()  # uuids of jobs whose lease is renewed
        self._running: set[str] = set()  # a subset: a worker thread has started them
        self._stopping = threading.Event()
        self._finished = threading.Event()  # all jobs have ended after `stop`
        self._awake = threading.Event()
        self._lease_thread = threading.Thread(
            target=self._run_leasing, name='jobs-lease', daemon=True
        )
        self._renewal_thread = threading.Thread(
            target=self._run_renewal, name='jobs-renew', daemon=True
        )

    def start(self) -> None:
        """Start to lease jobs."""
        self._lease_thread.start()
        self._renewal_thread.start()

    def list_threads(self) -> list[threading.Thread]:
        """Return the threads that run until the stop."""
        return [self._lease_thread, self._renewal_thread]

    def stop(self) -> None:
        """Lease no more jobs. Leases of jobs that have not started are returned."""
        self._stopping.set()
        self._awake.set()

    def wait(self) -> None:
        """Return when the running jobs have ended. Call ``stop`` before.

        Jobs also run before ``start``, because ``run`` needs no poll.
        """
        if self._lease_thread.is_alive():
            self._lease_thread.join()
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            not_started = sorted(self._leased - self._running)
        if not_started:
            self._return_jobs(not_started)
        self._pool.shutdown(wait=True)
        self._finished.set()
        if self._renewal_thread.is_alive():
            self._renewal_thread.join()

    def run(self, job: Job) -> None:
        """Run a job that this process has leased, without a poll."""
        with self._lock:
            self._leased.add(job.uuid)
        if self._stopping.is_set():
            return
        self._pool.submit(self._run, job)

    def wake(self) -> None:
        """Poll the job table now: a new job may exist."""
        self._awake.set()

    def _run_leasing(self) -> None:
        while not self._stopping.is_set():
            try:
                number = self._lease_jobs()
            except CyborgError as error:
                LOG.error('Leasing jobs failed, retrying: %s', error.text)
                number = 0
            if not number:
                # Jitter spreads the polls of several conductors.
                self._awake.wait(_POLL_INTERVAL * random.uniform(0.5, 1.0))
            self._awake.clear()

    def _lease_jobs(self) -> int:
        with self._lock:
            free_workers = self._workers - len(self._leased)
        if free_workers <= 0:
            return 0
        jobs = self._database.write(
            queue.lease_jobs, self.owner, free_workers, self._job_types
        )
        for job in jobs:
            self.run(job)
        return len(jobs)

    def _run_renewal(self) -> None:
        while not self._finished.wait(self.owner.lease_ms / 3000):
            with self._lock:
                uuids = sorted(self._leased)
            if not uuids:
                continue
            try:
                self._database.write(queue.renew_leases, self.owner, uuids)
            except CyborgError as error:
                LOG.error(
                    'Renewing the leases of %d jobs failed, retrying: %s',
                    len(uuids),
                    error.text,
                )

    def _return_jobs(self, uuids: Sequence[str]) -> None:
        try:
            self._database.write(queue.return_jobs, self.owner, uuids)
        except CyborgError as error:
            LOG.warning(
                'Returning %d jobs before the exit failed, other conductors wait for '
                'the end of their leases: %s',
                len(uuids),
                error.text,
            )

    def _run(self, job: Job) -> None:
        with self._lock:
            self._running.add(job.uuid)
        try:
            self._attempts.run(job)
        finally:
            with self._lock:
                was_full = len(self._leased) >= self._workers
                self._leased.discard(job.uuid)
                self._running.discard(job.uuid)
            if was_full:
                self.wake()
