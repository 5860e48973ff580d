# SPDX-License-Identifier: Apache-2.0
"""Jobs as administrators see and change them through the API."""

from collections.abc import Callable
from dataclasses import dataclass

from oslo_log import log

from cyborg_lite.conductor.arqs.audit_jobs import build_audit_job
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.model.jobs import JobRecord, JobRequest, JobRequestKind, NewJob
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JobService:
    """Lists, requests, retries and cancels jobs.

    Each method commits one transaction or raises. A conductor does the work later.
    """

    database: Database
    wake: Callable[[], None]  # called when a job is due

    @serves(Conductor.list_jobs)
    def list(self, query: Query) -> tuple[JobRecord, ...]:
        """Return the unfinished and failed jobs that match the query."""
        return self.database.read(administration.list_job_page, query)

    @serves(Conductor.request_job)
    def request(self, context: RequestContext, request: JobRequest) -> JobRecord:
        """Write a job and return it.

        An unfinished job that does the same work is returned instead of a second one.
        """
        if request.kind is JobRequestKind.AUDIT:
            audit = build_audit_job(context.request_id)
            job = self.database.write(administration.request_job, audit)
        else:
            job = self.database.write(
                services.request_host_job,
                _build_sync(context, request),
                request.hostname,
                is_refresh=request.kind is JobRequestKind.REFRESH,
            )
        LOG.info('User %s requested job %s: %s', context.user_id, job.uuid, request)
        self.wake()
        return job

    @serves(Conductor.retry_job)
    def retry(self, context: RequestContext, uuid: str) -> None:
        """Run a waiting or failed job now."""
        self.database.write(administration.retry_job, uuid)
        LOG.info('User %s retries job %s', context.user_id, uuid)
        self.wake()

    @serves(Conductor.cancel_job)
    def cancel(self, context: RequestContext, uuid: str) -> None:
        """Have a conductor end a job as if its deadline had passed."""
        self.database.write(administration.cancel_job, uuid)
        LOG.info('User %s cancels job %s', context.user_id, uuid)
        self.wake()


def _build_sync(context: RequestContext, request: JobRequest) -> NewJob:
    return queue.placement_sync_job(request.hostname, context.request_id, deep=True)
