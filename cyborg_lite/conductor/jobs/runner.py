# SPDX-License-Identifier: Apache-2.0
"""The job runner: leases jobs from the database and runs them on threads.

A job that this process writes runs at once. A job of a process that has exited runs
when its lease has ended. An RPC message never represents a job: it is acknowledged
before the work begins, and is lost if its process exits. The row represents the job;
see ``cyborg_lite/db/jobs/queue.py``.
"""

import contextlib
import logging
import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol

from oslo_log import log

from cyborg_lite.conductor import periodic
from cyborg_lite.conductor.metrics.conductor_metrics import (
    DONE,
    EXPIRED,
    POSTPONED,
    Metrics,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.jobs import InvalidJobPayload, JobLost
from cyborg_lite.model.jobs import HostShares, Job, Owner, name_subject, read_caller
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.text import format_count
from cyborg_lite.rpc import context

LOG = log.getLogger(__name__)

# --- attempts: the call of the handler, and the retry after a failure ---


_FIRST_DELAY_MS: Final = 250
_LONGEST_DELAY_MS: Final = 30_000
_LONGEST_AWAITED_MS: Final = 4_000  # for a job with a deadline
_OVERDUE: Final = 'The deadline passed before an attempt succeeded.'
_CANCELLED: Final = 'An operator cancelled the job.'


class Handler(Protocol):
    """The work of one job type.

    A handler may run again after a crash. It must then lead to the same result.
    """

    def run(self, job: Job) -> Job | None:
        """Do the work and end the row.

        An invalid payload fails the job. Any other exception postpones it, until its
        deadline.

        :returns: a job that has replaced this one and runs next, or None
        """
        ...

    def expire(self, job: Job, reason: str) -> Job | None:
        """Undo or abandon the work after the deadline, and end the row.

        :returns: a job that has replaced this one and runs next, or None
        """
        ...


@dataclass(frozen=True, slots=True)
class EndlessHandler:
    """A handler of jobs without a deadline."""

    database: Database

    def expire(self, job: Job, reason: str) -> None:
        """Mark the job as failed. Only an operator causes this."""
        self.database.write(queue.fail_job, job, reason)


@dataclass(frozen=True, slots=True)
class JobAttempts:
    """Runs attempts at jobs. It has no state; any thread may call it."""

    database: Database
    handlers: Mapping[str, Handler]
    metrics: Metrics

    def run(self, job: Job) -> None:
        """Run a job, then the jobs that replace it. A failure postpones the job."""
        started = time.monotonic()
        current: Job | None = job
        while current is not None:
            replacement = self._attempt(current)
            elapsed = job.age + time.monotonic() - started
            self.metrics.observe_replacement(current, replacement, elapsed)
            current = replacement

    def _attempt(self, job: Job) -> Job | None:
        handler = self.handlers[job.type]
        # Log lines of the job carry the ids of the API request that caused it.
        context.request_context(job.request_id, read_caller(job.payload))
        try:
            if job.expired:
                return self._expire(handler, job, job.last_error or _OVERDUE)
            self.metrics.count_job('job_attempts', job)
            replacement = handler.run(job)
            self.metrics.count_job('job_results', job, DONE)
            return replacement
        except JobLost:
            self._record_lost_lease(job)
        except InvalidJobPayload as error:
            # A retry would read the same payload.
            self._fail(job, error)
        except CyborgError as error:
            return self._postpone(handler, job, error)
        except Exception:  # a programming error must not end the worker thread
            LOG.exception('Attempt at job %s (%s) failed', job.uuid, job.type)
            return self._postpone(
                handler, job, 'Unexpected error; see the log of the conductor.'
            )
        return None

    def _postpone(
        self, handler: Handler, job: Job, reason: CyborgError | str
    ) -> Job | None:
        delay = _choose_delay(job)
        # Once per cause, a warning that a host or a service does not answer.
        is_away = getattr(reason, 'code', None) == HTTPStatus.SERVICE_UNAVAILABLE
        is_new = str(reason) != job.last_error
        LOG.log(
            logging.WARNING if is_away and is_new else logging.INFO,
            'Job %s (%s) of %s postponed %d ms: %s',
            job.uuid,
            job.type,
            ' '.join(name_subject(job.payload)) or 'the service',
            delay,
            reason,
        )
        try:
            overdue = self.database.write(queue.postpone_job, job, delay, reason)
            if overdue is not None:
                return self._expire(handler, overdue, str(reason))
            self.metrics.count_job('job_results', job, POSTPONED)
        except JobLost:
            self._record_lost_lease(job)
        except CyborgError as error:
            # The row is unchanged. Its lease ends, and a conductor leases it again.
            LOG.error(
                'Postponing job %s (%s) failed: %s', job.uuid, job.type, error.text
            )
        except Exception:  # a programming error; the row is unchanged as above
            LOG.exception('Postponing job %s (%s) failed', job.uuid, job.type)
        return None

    def _fail(self, job: Job, reason: CyborgError) -> None:
        LOG.error('Job %s (%s) failed: %s', job.uuid, job.type, reason)
        try:
            self.database.write(queue.fail_job, job, reason)
            self.metrics.count_job('job_results', job, EXPIRED)
        except JobLost:
            self._record_lost_lease(job)
        except CyborgError as error:
            LOG.error(
                'Storing the failure of job %s (%s) failed: %s',
                job.uuid,
                job.type,
                error.text,
            )

    def _expire(self, handler: Handler, job: Job, reason: str) -> Job | None:
        replacement = handler.expire(job, _CANCELLED if job.cancelled else reason)
        self.metrics.count_job('job_results', job, EXPIRED)
        return replacement

    def _record_lost_lease(self, job: Job) -> None:
        LOG.warning(
            'Attempt at job %s (%s) abandoned: its lease ended and another conductor '
            'has leased it',
            job.uuid,
            job.type,
        )
        self.metrics.count_job('job_leases_lost', job)


def _choose_delay(job: Job) -> int:
    """Return milliseconds that grow with the attempts, with jitter."""
    # Nobody waits for a connect job, whose instance may take an hour.
    is_awaited = job.awaited and job.type != OperationKind.CONNECT
    longest = _LONGEST_AWAITED_MS if is_awaited else _LONGEST_DELAY_MS
    delay = min(longest, _FIRST_DELAY_MS * 2 ** min(job.attempts, 16))
    return int(delay * random.uniform(0.5, 1.0))


_POLL_INTERVAL: Final = 1.0  # seconds; a call of `wake` usually comes first


def create_owner(lease_seconds: float) -> Owner:
    """Return an owner with a name that no other process has, now or later."""
    name = f'{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}'
    return Owner(name=name, lease_ms=int(lease_seconds * 1000))


class Workers(NamedTuple):
    """The worker threads of one conductor process."""

    number: int
    per_host: int  # number of jobs of one host that run at a time


class _Attempt(NamedTuple):
    """An attempt at a job. A later attempt has another lease number."""

    job: str
    lease: int


class JobRunner:
    """Runs the jobs of one conductor process."""

    def __init__(
        self,
        database: Database,
        handlers: Mapping[str, Handler],
        owner: Owner,
        workers: Workers,
        metrics: Metrics | None = None,
    ) -> None:
        """Prepare the threads.

        :param handlers: by job type; jobs of other types are not leased
        """
        self.owner = owner
        self._attempts = JobAttempts(database, handlers, metrics or Metrics())
        self._database = database
        self._job_types = tuple(handlers)
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers.number, thread_name_prefix='job')
        self._lock = threading.Lock()
        # Attempts whose lease is renewed, and the hosts that they call.
        self._leased: dict[_Attempt, str | None] = {}
        self._running: set[_Attempt] = set()  # a worker thread has started them
        self._reserved: list[str | None] = []  # hosts of jobs that are being written
        # True: jobs in the table may wait for a worker, or for the share of a host.
        self._has_waiting = False
        self._check: Callable[[], bool] = lambda: True
        self._is_trusted = True  # False: the database is checked before the next job
        if metrics is not None:
            metrics.observe_workers(workers.number, lambda: len(self._leased))
        self._stopping = threading.Event()
        self._finished = threading.Event()  # all jobs have ended after `stop`
        self._awake = threading.Event()
        self._lease_thread = threading.Thread(
            target=self._run_leasing, name='jobs-lease', daemon=True
        )
        self._renewal_thread = threading.Thread(
            target=self._run_renewal, name='jobs-renew', daemon=True
        )

    def start(self, check: Callable[[], bool] | None = None) -> None:
        """Start to lease jobs.

        :param check: returns whether jobs may run. It is called until it returns True,
            and again after the database did not answer
        """
        if check is not None:
            self._check, self._is_trusted = check, False
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
            not_started = sorted(self._leased.keys() - self._running)
        if not_started:
            # After a failure, other conductors wait for the end of the leases.
            uuids = [attempt.job for attempt in not_started]
            undo = partial(self._database.write, queue.return_jobs, self.owner, uuids)
            periodic.attempt(undo, f'Returning {len(uuids)} jobs before the exit')
        self._pool.shutdown(wait=True)
        self._finished.set()
        if self._renewal_thread.is_alive():
            self._renewal_thread.join()

    @contextlib.contextmanager
    def reserve_worker(self, host: str | None) -> Iterator[Owner | None]:
        """Reserve a worker for a job that the caller writes and runs in this context.

        Yields the owner of the job. It is None if no worker is free for the host. The
        job must then be written without an owner: it waits in the job table, where an
        idle conductor leases it.

        :param host: the host whose agent the job calls
        """
        with self._lock:
            is_free = self._is_trusted and self._count_free_workers() > 0
            free = is_free and self._shares().take(host)
            if free:
                self._reserved.append(host)
        try:
            yield self.owner if free else None
        finally:
            with self._lock:
                if free:
                    self._reserved.remove(host)
                else:  # from now on a poll sees the job
                    self._has_waiting = True

    def _count_free_workers(self) -> int:
        """Return the number of free workers. The caller holds the lock."""
        return self._workers.number - len(self._leased) - len(self._reserved)

    def _shares(self) -> HostShares:
        """Count the jobs of each host. The caller holds the lock."""
        hosts = [*self._leased.values(), *self._reserved]
        return HostShares(self._workers.per_host, hosts)

    def run(self, job: Job) -> None:
        """Run a job that this process has leased, without a poll."""
        with self._lock:
            self._leased[_Attempt(job.uuid, job.lease)] = job.host
        if self._stopping.is_set():
            return
        self._pool.submit(self._run, job)

    def wake(self) -> None:
        """Poll the job table now: a new job may exist."""
        self._awake.set()

    def _run_leasing(self) -> None:
        while not self._stopping.is_set():
            # Before the poll: a job that is added during it needs another one.
            self._awake.clear()
            try:
                self._is_trusted = self._is_trusted or self._check()
                is_complete = self._lease_jobs()
            except CyborgError as error:
                LOG.error('Leasing jobs failed, retrying: %s', error.text)
                is_complete, self._is_trusted = True, False
            if is_complete and not self._stopping.is_set():
                # Jitter spreads the polls of several conductors.
                self._awake.wait(_POLL_INTERVAL * random.uniform(0.5, 1.0))

    def _lease_jobs(self) -> bool:
        """Lease and run jobs; return False if others may be due for a free worker.

        Before the database is checked, only binds run whose deadline has passed. They
        fail, which calls no host.
        """
        kinds = self._job_types
        with self._lock:
            free_workers = self._count_free_workers()
            shares = self._shares()
            # The poll does not see jobs that must wait.
            self._has_waiting = free_workers <= 0 or bool(shares.full_hosts())
        if free_workers <= 0:
            return True
        if not self._is_trusted:
            kinds = tuple({OperationKind.BIND}.intersection(kinds))
            shares = HostShares(0)
        jobs = self._database.write(
            queue.lease_jobs, self.owner, free_workers, kinds, shares
        )
        for job in jobs:
            self.run(job)
        # A host whose share is full can hide due jobs of other hosts.
        is_full = len(jobs) == free_workers or any(job.host for job in jobs)
        return not is_full

    def _run_renewal(self) -> None:
        while not self._finished.wait(self.owner.lease_ms / 3000):
            with self._lock:
                uuids = sorted({attempt.job for attempt in self._leased})
            renew = partial(self._database.write, queue.renew_leases, self.owner, uuids)
            if uuids:
                periodic.attempt(renew, f'Renewing the leases of {len(uuids)} jobs')
            periodic.attempt(self._advance_jobs, 'Looking for jobs that wait too long')

    def _advance_jobs(self) -> None:
        number = self._database.write(queue.advance_jobs, self.owner)
        if number:
            LOG.warning(
                'The clock of the database was set back; %s can run now',
                format_count(number, 'waiting job'),
            )
            self.wake()

    def _run(self, job: Job) -> None:
        attempt = _Attempt(job.uuid, job.lease)
        with self._lock:
            self._running.add(attempt)
        try:
            self._attempts.run(job)
        finally:
            with self._lock:
                was_full = (
                    self._count_free_workers() <= 0
                    or job.host in self._shares().full_hosts()
                )
                is_awaited = was_full and self._has_waiting
                del self._leased[attempt]
                self._running.remove(attempt)
            if is_awaited:
                self.wake()
