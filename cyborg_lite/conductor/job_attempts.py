# SPDX-License-Identifier: Apache-2.0
"""One attempt at a job, what follows it in its row, and what a failure leads to."""

import random
import time
from collections.abc import Mapping
from typing import Final, Protocol

from oslo_log import log

from cyborg_lite.conductor.metrics import DONE, EXPIRED, PUT_OFF, Metrics
from cyborg_lite.db import jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError, JobLost
from cyborg_lite.model.jobs import Job
from cyborg_lite.rpc import context

LOG = log.getLogger(__name__)

_FIRST_DELAY_MS: Final = 250
_LONGEST_DELAY_MS: Final = 30_000
_LONGEST_AWAITED_MS: Final = 4_000
_LATE: Final = 'It was not done before its deadline.'
_CANCELLED: Final = 'It was cancelled by an operator.'


class Handler(Protocol):
    """One kind of job. Run again after a crash, it must lead to the same result."""

    def run(self, job: Job) -> Job | None:
        """Do it and end the row; a job that is returned is run next.

        Anything that is raised puts the job off, until its deadline.
        """
        ...

    def expire(self, job: Job, reason: str) -> Job | None:
        """The deadline has passed: wind it up, and end the row."""
        ...


class Attempts:
    """Of one conductor process. Keeps nothing between jobs; any thread may run one."""

    def __init__(
        self, database: Database, handlers: Mapping[str, Handler], metrics: Metrics
    ) -> None:
        self._database = database
        self._handlers = handlers
        self._metrics = metrics

    def run(self, job: Job) -> None:
        """Try it, then what it has become; what cannot be done now is put off."""
        begun = time.monotonic()
        following: Job | None = job
        while (now := following) is not None:
            following = self._step(now)
            spent = job.age + time.monotonic() - begun
            self._metrics.job_followed(now, following, spent)

    def _step(self, job: Job) -> Job | None:
        handler = self._handlers[job.kind]
        # Log lines of the job bear the id of the request that called for it.
        context.of_request(job.request_id)
        try:
            if job.expired:
                return self._expire(handler, job, _LATE)
            self._metrics.job_begun(job)
            following = handler.run(job)
            self._metrics.job_ended(job, DONE)
            return following
        except JobLost:
            self._lose(job)
        except CyborgError as error:
            return self._put_off(handler, job, error.text)
        except Exception:  # a fault of ours must cost one attempt, not the worker
            LOG.exception('Job %s (%s) failed', job.uuid, job.kind)
            return self._put_off(handler, job, 'An unexpected error, see the log.')
        return None

    def _put_off(self, handler: Handler, job: Job, reason: str) -> Job | None:
        delay = _delay(job)
        LOG.info('Job %s (%s) waits %d ms: %s', job.uuid, job.kind, delay, reason)
        try:
            late = self._database.write(jobs.put_off, job, delay, reason)
            if late is not None:
                return self._expire(handler, late, reason)
            self._metrics.job_ended(job, PUT_OFF)
        except JobLost:
            self._lose(job)
        except CyborgError as error:
            # The row stays as it is; its lease ends, and somebody takes it again.
            LOG.error('Cannot put off job %s: %s', job.uuid, error.text)
        except Exception:  # likewise; a fault of ours must not pass unseen
            LOG.exception('Job %s (%s) cannot be wound up', job.uuid, job.kind)
        return None

    def _expire(self, handler: Handler, job: Job, reason: str) -> Job | None:
        following = handler.expire(job, _CANCELLED if job.cancelled else reason)
        self._metrics.job_ended(job, EXPIRED)
        return following

    def _lose(self, job: Job) -> None:
        LOG.warning('Job %s (%s) was taken over', job.uuid, job.kind)
        self._metrics.lease_lost(job)


def _delay(job: Job) -> int:
    """Milliseconds; longer with each attempt, and no two jobs in step."""
    longest = _LONGEST_AWAITED_MS if job.awaited else _LONGEST_DELAY_MS
    delay = min(longest, _FIRST_DELAY_MS * 2 ** min(job.attempts, 16))
    return int(delay * random.uniform(0.5, 1.0))
