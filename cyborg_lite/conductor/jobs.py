# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs of the table: those written here at once, those of the dead by lease.

RPC is never the record of a job: a message is acknowledged before its work begins and
is lost with its process. The row is the record. See ``cyborg_lite/db/jobs.py``.
"""

import os
import random
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from oslo_log import log

from cyborg_lite.conductor.job_attempts import Attempts, Handler
from cyborg_lite.conductor.metrics import Metrics
from cyborg_lite.db import jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.jobs import Job, Owner

LOG = log.getLogger(__name__)

_POLL: Final = 1.0  # seconds; a wake-up usually comes first


def owner_of_process(lease_seconds: float) -> Owner:
    """A name that no other process has, nor this one's successor."""
    name = f'{socket.gethostname()}:{os.getpid()}:{time.time_ns()}'
    return Owner(name=name, lease_ms=int(lease_seconds * 1000))


class JobRunner:
    """The pool of one conductor process."""

    def __init__(
        self,
        database: Database,
        handlers: Mapping[str, Handler],
        owner: Owner,
        workers: int,
        metrics: Metrics | None = None,
    ) -> None:
        self.owner = owner
        self._attempts = Attempts(database, handlers, metrics or Metrics())
        self._database = database
        self._kinds = tuple(handlers)
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix='job')
        self._lock = threading.Lock()
        self._in_hand: set[str] = set()  # uuids whose lease is kept
        self._begun: set[str] = set()  # of these, those that a thread works on
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._wanted = threading.Event()
        self._threads = [
            threading.Thread(target=self._take_for_ever, name='jobs-take', daemon=True),
            threading.Thread(
                target=self._renew_for_ever, name='jobs-keep', daemon=True
            ),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Take no more; give back what was not begun."""
        self._stopping.set()
        self._wanted.set()

    def wait(self) -> None:
        """Return when what was begun has ended."""
        self._threads[0].join()
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            not_begun = sorted(self._in_hand - self._begun)
        if not_begun:
            self._hand_back(not_begun)
        self._pool.shutdown(wait=True)
        self._ended.set()
        self._threads[1].join()

    def run(self, job: Job) -> None:
        """Run a job that this process wrote, and therefore holds, without a poll."""
        with self._lock:
            self._in_hand.add(job.uuid)
        if self._stopping.is_set():
            return
        self._pool.submit(self._run, job)

    def wake(self) -> None:
        """There may be a job for anybody: look now."""
        self._wanted.set()

    def _take_for_ever(self) -> None:
        while not self._stopping.is_set():
            try:
                taken = self._take()
            except CyborgError as error:
                LOG.error('Cannot look for jobs: %s', error.text)
                taken = 0
            if not taken:
                # Jitter keeps many conductors from asking in step.
                self._wanted.wait(_POLL * random.uniform(0.5, 1.0))
            self._wanted.clear()

    def _take(self) -> int:
        with self._lock:
            room = self._workers - len(self._in_hand)
        if room <= 0:
            return 0
        taken = self._database.write(jobs.take, self.owner, room, self._kinds)
        for job in taken:
            self.run(job)
        return len(taken)

    def _renew_for_ever(self) -> None:
        while not self._ended.wait(self.owner.lease_ms / 3000):
            with self._lock:
                uuids = sorted(self._in_hand)
            if not uuids:
                continue
            try:
                self._database.write(jobs.renew, self.owner, uuids)
            except CyborgError as error:
                LOG.error('Cannot renew the leases of jobs: %s', error.text)

    def _hand_back(self, uuids: Sequence[str]) -> None:
        try:
            self._database.write(jobs.hand_back, self.owner, uuids)
        except CyborgError as error:
            LOG.warning('Jobs wait until their leases end: %s', error.text)

    def _run(self, job: Job) -> None:
        with self._lock:
            self._begun.add(job.uuid)
        try:
            self._attempts.run(job)
        finally:
            with self._lock:
                was_full = len(self._in_hand) >= self._workers
                self._in_hand.discard(job.uuid)
                self._begun.discard(job.uuid)
            if was_full:
                self.wake()
