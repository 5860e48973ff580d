# SPDX-License-Identifier: Apache-2.0
"""Operations: work that the service continues after its response."""

from http import HTTPStatus
from typing import Final

from cyborg_lite.api.call import arguments, paging
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires, since
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.call.validation import NO_CONTENT
from cyborg_lite.api.microversion import V2_4, V2_6, V2_7
from cyborg_lite.api.schemas import bodies
from cyborg_lite.api.views.operations import (
    AttentionList,
    JobView,
    OperationList,
    OperationView,
)
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.jobs import JobNotFound, OperationNotFound
from cyborg_lite.model.attention import AttentionKind
from cyborg_lite.model.operations import (
    Operation,
    OperationKind,
    OperationState,
)
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import is_storable

_WORDS: Final = {'kind': OperationKind, 'state': OperationState}
_EXACT: Final = ('subject', 'project_id')
_LONGEST_WAIT: Final = 60  # seconds


class OperationCollection(Resource):
    """``/v2/operations``"""

    @expose()
    @requires('cyborg:operation:get_all')
    @since(V2_7)
    @accepts(
        arguments=(*arguments.PAGING, *_WORDS, *_EXACT),
        words=_WORDS,
        selectable=(OperationView,),
    )
    def get(self, call: Call) -> OperationList:
        """List operations.

        A user sees the operations that the project has requested. The list starts with
        the oldest operation. Operations are kept for a time after their end.
        """
        filters = call.select_filters((*_WORDS, *_EXACT))
        query = paging.build_query(call, **filters)
        records = self.conductor.list_operations(call.caller, query)
        return OperationList(records, paging.build_next_link(call, query, records))

    @expose(status=HTTPStatus.ACCEPTED, errors=(404,))
    @requires('cyborg:operation:create')
    @since(V2_7)
    @accepts(body=bodies.CREATE_OPERATION)
    def post(self, call: Call) -> OperationView:
        """Request an audit, or a reconcile or refresh of a host.

        The work runs after the response. The response is the unfinished operation that
        does the same work, if there is one.
        """
        request = _parse_request(call)
        operation = self.conductor.request_operation(call.caller, *request)
        call.locate_operation(operation.uuid)
        return OperationView(operation)


class OperationResource(Resource):
    """``/v2/operations/{uuid}``"""

    @expose()
    @requires('cyborg:operation:get_one')
    @since(V2_7)
    @accepts(arguments=('wait',), selectable=(OperationView,))
    def get(self, call: Call) -> OperationView:
        """Show an operation.

        With the argument ``wait`` the response comes when the operation has ended, or
        after so many seconds, at most 60. It comes at once if too many requests wait.
        """
        uuid = call.parse_identifier(self.identifier, OperationNotFound)
        seconds = _parse_wait(call.arguments.get('wait', '0'))
        operation = self._read(call, uuid)
        if seconds and call.may_wait:
            operation = self.context.hold.wait(
                operation,
                lambda: self._read(call, uuid),
                lambda current: not current.has_ended,
                seconds,
            )
        return OperationView(operation)

    def _read(self, call: Call, uuid: str) -> Operation:
        query = Query(filters={'uuid': (uuid,)})
        for operation in self.conductor.list_operations(call.caller, query):
            return operation
        raise OperationNotFound(uuid=uuid)


class RetryOperation(Resource):
    """``/v2/operations/{uuid}/retry``"""

    @expose(status=HTTPStatus.ACCEPTED, errors=(409,))
    @requires('cyborg:operation:retry')
    @since(V2_7)
    @accepts(body=NO_CONTENT)
    def post(self, call: Call) -> None:
        """Run a waiting or failed operation now.

        A failed operation gets its full time limit again. The response is 409 if the
        operation is running or has succeeded, if its work cannot be repeated now, or
        after a failed bind, which Nova has given up. The request may have no body.
        """
        uuid = call.parse_identifier(self.identifier, OperationNotFound)
        self.conductor.retry_operation(call.caller, uuid)
        call.locate_operation(uuid)


class CancelOperation(Resource):
    """``/v2/operations/{uuid}/cancel``"""

    @expose(status=HTTPStatus.ACCEPTED, errors=(409,))
    @requires('cyborg:operation:cancel')
    @since(V2_7)
    @accepts(body=NO_CONTENT)
    def post(self, call: Call) -> None:
        """Cancel an operation.

        A conductor ends the operation as if its deadline had passed, and reverts its
        incomplete changes. A failed operation cannot be retried any more. The response
        is 409 if the operation has ended, or for a failed release, which must be
        retried. The request may have no body.
        """
        uuid = call.parse_identifier(self.identifier, OperationNotFound)
        self.conductor.cancel_operation(call.caller, uuid)
        call.locate_operation(uuid)


class JobCollection(Resource):
    """``/v2/jobs``; jobs cannot be listed."""


class JobResource(Resource):
    """``/v2/jobs/{uuid}``"""

    until = V2_6

    @expose()
    @requires('cyborg:job:get_one')
    @since(V2_4)
    @accepts(selectable=(JobView,))
    def get(self, call: Call) -> JobView:
        """Show a programming job.

        A user sees the programming jobs of the project. Since 2.7 they are operations.
        """
        uuid = call.parse_identifier(self.identifier, JobNotFound, 'The job id')
        query = Query(filters={'uuid': (uuid,), 'kind': (OperationKind.PROGRAM,)})
        for operation in self.conductor.list_operations(call.caller, query):
            return JobView(operation)
        raise JobNotFound(uuid=uuid)


def _parse_request(call: Call) -> tuple[OperationKind, str, bool]:
    """Return kind, host and ``apply`` of the body, which matches its schema.

    :raises InvalidInput: the host is missing, or host or ``apply`` is not allowed
    """
    kind, hostname = OperationKind(call.body['kind']), call.body.get('hostname', '')
    if not is_storable(hostname):
        raise InvalidInput(reason='hostname must be text without NUL characters.')
    if bool(hostname) is (kind is OperationKind.AUDIT):
        text = 'has no' if kind is OperationKind.AUDIT else 'requires a'
        raise InvalidInput(reason=f'The kind {kind} {text} hostname.')
    applies = call.body.get('apply', False)
    if applies and kind is not OperationKind.AUDIT:
        raise InvalidInput(reason=f'The kind {kind} has no apply.')
    return kind, hostname, applies


def _parse_wait(text: str) -> int:
    is_valid = text.isascii() and text.isdecimal() and len(text) <= 3
    if not is_valid or int(text) > _LONGEST_WAIT:
        reason = f'wait must be a number of seconds from 0 to {_LONGEST_WAIT}.'
        raise InvalidInput(reason=reason)
    return int(text)


class AttentionCollection(Resource):
    """``/v2/attention``"""

    @expose()
    @requires('cyborg:attention:get_all')
    @since(V2_7)
    @accepts(arguments=('kind', 'hostname'), words={'kind': AttentionKind})
    def get(self, call: Call) -> AttentionList:
        """List what waits for an operator, the most severe kinds first.

        Each item has its kind, the time since which it waits, its object, the reason,
        and the command with which to begin. The list has at most 1,000 items of a kind.
        """
        kinds, hostname = call.words.get('kind'), call.arguments.get('hostname')
        return AttentionList(
            attention=[
                item
                for item in self.conductor.list_attention(call.caller)
                if (kinds is None or item.kind in kinds)
                and hostname in (None, item.hostname)
            ]
        )
