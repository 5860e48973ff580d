# SPDX-License-Identifier: Apache-2.0
"""Calls of the conductor about the job table; part of ``ConductorAPI``."""

import functools

from cyborg_lite.model.jobs import JobRecord, JobRequest
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.pages import load_page
from cyborg_lite.rpc.transport import Caller


class JobCalls:
    """Typed calls about the jobs of administrators."""

    _caller: Caller

    def list_jobs(self, context: RequestContext, query: Query) -> tuple[JobRecord, ...]:
        """Return the unfinished and failed jobs that match the query.

        Filters: ``uuid``, ``kind``, ``state``.
        """
        answer = self._caller.call(
            context, 'list_jobs', since='1.9', query=wire.dump(query)
        )
        return load_page(answer, functools.partial(wire.load_all, JobRecord))

    def request_job(self, context: RequestContext, request: JobRequest) -> JobRecord:
        """Write a job, or find the unfinished job that does the same work.

        :raises HostNotFound: no agent of the host is stored
        """
        answer = self._caller.call(
            context, 'request_job', since='1.9', request=wire.dump(request)
        )
        return wire.load(JobRecord, answer)

    def retry_job(self, context: RequestContext, uuid: str) -> None:
        """Run a waiting or failed job now.

        :raises JobNotFound: the job does not exist
        :raises JobRefused: the job is running or was cancelled
        """
        self._caller.call(context, 'retry_job', since='1.9', uuid=uuid)

    def cancel_job(self, context: RequestContext, uuid: str) -> None:
        """Have a conductor end a job as if its deadline had passed.

        :raises JobNotFound: the job does not exist
        :raises JobRefused: the job is a failed release
        """
        self._caller.call(context, 'cancel_job', since='1.9', uuid=uuid)
