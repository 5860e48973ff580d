# SPDX-License-Identifier: Apache-2.0
"""Attempts at jobs: the call of the handler, and the retry after a failure."""

import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol

from oslo_log import log

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
from cyborg_lite.model.jobs import Job, name_subject, read_caller
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.rpc import context

LOG = log.getLogger(__name__)

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
                return self._expire(handler, job, _OVERDUE)
            self.metrics.count_attempt(job)
            replacement = handler.run(job)
            self.metrics.count_result(job, DONE)
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
        LOG.log(
            _choose_level(job, reason),
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
            self.metrics.count_result(job, POSTPONED)
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
            self.metrics.count_result(job, EXPIRED)
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
        self.metrics.count_result(job, EXPIRED)
        return replacement

    def _record_lost_lease(self, job: Job) -> None:
        LOG.warning(
            'Attempt at job %s (%s) abandoned: its lease ended and another conductor '
            'has leased it',
            job.uuid,
            job.type,
        )
        self.metrics.count_lost_lease(job)


def _choose_level(job: Job, reason: CyborgError | str) -> int:
    """Return WARNING for a host or a service that does not answer, once per cause."""
    is_away = getattr(reason, 'code', None) == HTTPStatus.SERVICE_UNAVAILABLE
    is_new = str(reason) != job.last_error
    return logging.WARNING if is_away and is_new else logging.INFO


def _choose_delay(job: Job) -> int:
    """Return milliseconds that grow with the attempts, with jitter."""
    # Nobody waits for a connect job, whose instance may take an hour.
    is_awaited = job.awaited and job.type != OperationKind.CONNECT
    longest = _LONGEST_AWAITED_MS if is_awaited else _LONGEST_DELAY_MS
    delay = min(longest, _FIRST_DELAY_MS * 2 ** min(job.attempts, 16))
    return int(delay * random.uniform(0.5, 1.0))
