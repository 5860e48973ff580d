# SPDX-License-Identifier: Apache-2.0
"""Jobs: work that the service continues after its response."""

from http import HTTPStatus
from typing import Final

from cyborg_lite.api.call import arguments, paging
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires, since
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.call.validation import NO_CONTENT
from cyborg_lite.api.microversion import V2_4, V2_7
from cyborg_lite.api.schemas import jobs as schemas
from cyborg_lite.api.views.jobs import JobView, QueuedJobList, QueuedJobView
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.jobs import JobNotFound
from cyborg_lite.model.jobs import JobRequest, JobRequestKind, JobState
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import is_storable

_EXACT: Final = ('kind', 'state')


class JobCollection(Resource):
    """``/v2/jobs``"""

    @expose()
    @requires('cyborg:job:get_all')
    @since(V2_7)
    @accepts(
        arguments=(*arguments.PAGING, *_EXACT),
        words={'state': JobState},
        selectable=(QueuedJobView,),
    )
    def get(self, call: Call) -> QueuedJobList:
        """List unfinished and failed jobs of all types.

        The list starts with the oldest job.
        """
        filters = call.select_filters(_EXACT)
        query = paging.build_query(call, **filters)
        records = self.conductor.list_jobs(call.caller, query)
        return QueuedJobList(records, paging.build_next_link(call, query, records))

    @expose(status=HTTPStatus.ACCEPTED, errors=(404,))
    @requires('cyborg:job:create')
    @since(V2_7)
    @accepts(body=schemas.CREATE)
    def post(self, call: Call) -> QueuedJobView:
        """Request an audit, or a reconcile or refresh of a host.

        The job runs after the response. The response is the unfinished job that does
        the same work, if there is one.
        """
        job = self.conductor.request_job(call.caller, _parse_request(call))
        return QueuedJobView(job)


class JobResource(Resource):
    """``/v2/jobs/{uuid}``"""

    @expose()
    @requires('cyborg:job:get_one')
    @since(V2_4)
    @accepts(selectable=(JobView, QueuedJobView))
    def get(self, call: Call) -> JobView | QueuedJobView:
        """Show a job.

        A user sees the programming jobs of the project. Since 2.7 administrators see
        jobs of all types that are unfinished or failed.
        """
        uuid = call.parse_identifier(self.identifier, JobNotFound, 'The job id')
        try:
            job = self.conductor.show_program_job(call.caller, uuid)
        except JobNotFound:
            if call.microversion < V2_7 or not call.caller.is_admin:
                raise
            query = Query(filters={'uuid': (uuid,)})
            for record in self.conductor.list_jobs(call.caller, query):
                return QueuedJobView(record)
            raise
        return JobView(job)


class RetryJob(Resource):
    """``/v2/jobs/{uuid}/retry``"""

    @expose(status=HTTPStatus.ACCEPTED, errors=(409,))
    @requires('cyborg:job:retry')
    @since(V2_7)
    @accepts(body=NO_CONTENT)
    def post(self, call: Call) -> None:
        """Run a waiting or failed job now.

        A failed job gets its full time limit again. The response is 409 if the job is
        running or cancelled. The request may have no body.
        """
        uuid = call.parse_identifier(self.identifier, JobNotFound)
        self.conductor.retry_job(call.caller, uuid)


class CancelJob(Resource):
    """``/v2/jobs/{uuid}/cancel``"""

    @expose(status=HTTPStatus.ACCEPTED, errors=(409,))
    @requires('cyborg:job:cancel')
    @since(V2_7)
    @accepts(body=NO_CONTENT)
    def post(self, call: Call) -> None:
        """Cancel a job.

        A conductor ends the job as if its deadline had passed, and reverts its
        incomplete changes. A failed job is deleted. The response is 409 for a failed
        release, which must be retried. The request may have no body.
        """
        uuid = call.parse_identifier(self.identifier, JobNotFound)
        self.conductor.cancel_job(call.caller, uuid)


def _parse_request(call: Call) -> JobRequest:
    """Return the request in the body, which matches its schema.

    :raises InvalidInput: the host is missing, or is not allowed
    """
    kind, hostname = JobRequestKind(call.body['kind']), call.body.get('hostname', '')
    if not is_storable(hostname):
        raise InvalidInput(reason='hostname must be text without NUL characters.')
    if bool(hostname) is (kind is JobRequestKind.AUDIT):
        text = 'has no' if kind is JobRequestKind.AUDIT else 'requires a'
        raise InvalidInput(reason=f'The kind {kind} {text} hostname.')
    return JobRequest(kind, hostname)
