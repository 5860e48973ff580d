# SPDX-License-Identifier: Apache-2.0
"""Operations as clients see and change them through the API."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from oslo_log import log

from cyborg_lite.conductor.arqs.audit import build_audit_job
from cyborg_lite.db.arqs import history
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.db.jobs import administration, operations, queue
from cyborg_lite.errors.jobs import OperationNotFound
from cyborg_lite.model.operations import (
    NewOperation,
    Operation,
    OperationKind,
    OperationState,
    SubjectType,
)
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor

LOG = log.getLogger(__name__)

_UNSUCCESSFUL: Final = (OperationState.FAILED, OperationState.CANCELLED)
_OF_ADMINISTRATORS: Final = (SubjectType.HOST, SubjectType.DEVICE, SubjectType.NONE)


def build_operation(
    context: RequestContext,
    kind: OperationKind,
    subject_type: SubjectType = SubjectType.NONE,
    subject_id: str = '',
    **parameters: Any,  # JSON
) -> NewOperation:
    """Return the operation that a request starts.

    An operation on a host, a device or the deployment belongs to no project: other
    users of the project of the administrator must not see names of hosts or addresses.
    """
    is_for_admins = subject_type in _OF_ADMINISTRATORS
    has_project = kind is OperationKind.RELEASE or not is_for_admins
    return NewOperation(
        kind,
        subject_type,
        subject_id,
        parameters,
        project_id=context.project_id if has_project else None,
        user_id=context.user_id,
        request_id=context.request_id,
    )


Restart = Callable[[RequestContext, Operation, NewOperation], None]
"""Does the work of a failed operation again; the last argument is for its jobs."""


@dataclass(frozen=True, slots=True)
class OperationService:
    """Lists, requests, retries and cancels operations.

    Each method commits one transaction or raises. A conductor does the work later.
    """

    database: Database
    wake: Callable[[], None]  # called when a job is due
    # By kind of an operation whose failed jobs have no row.
    restarts: Mapping[str, Restart] = field(default_factory=dict)

    @serves(Conductor.list_operations)
    def list(self, context: RequestContext, query: Query) -> tuple[Operation, ...]:
        project = None if context.is_admin else context.project_id or ''

        def read(session: Any) -> tuple[Operation, ...]:
            listed = operations.list_operations(session, query, project)
            return history.add_steps(session, listed)

        return self.database.read(read)

    @serves(Conductor.request_operation)
    def request(
        self,
        context: RequestContext,
        kind: OperationKind,
        host: str,
        applies: bool = False,
    ) -> Operation:
        """Start an operation and return it.

        An unfinished operation that does the same work is returned instead of a second
        one, and its job runs once more if it is running.
        """
        subject = SubjectType.HOST if host else SubjectType.NONE
        parameters = {'apply': True} if applies else {}
        new = build_operation(context, kind, subject, host, **parameters)
        job = build_audit_job(context.request_id, applies=applies)
        if host:
            job = queue.placement_sync_job(host, context.request_id, deep=True)

        def write(session: Any) -> Operation:
            unfinished = operations.list_unfinished(session, new.kind, [host])
            if applies:  # an audit that only reports does not do the same work
                unfinished = ()
            job_of = replace(job, operation=None if unfinished else new)
            if host:
                is_refresh = kind is OperationKind.REFRESH
                services.request_host_job(session, job_of, host, is_refresh=is_refresh)
            else:
                queue.add_job(session, job_of)
            uuid = unfinished[0] if unfinished else new.uuid
            if kind is OperationKind.REFRESH:
                operations.record_step(session, [uuid], 'requesting-report')
            return operations.read_operation(session, uuid)

        operation = self.database.write(write)
        LOG.info('User %s requested %s %s', context.user_id, kind, operation.uuid)
        self.wake()
        return operation

    @serves(Conductor.retry_operation)
    def retry(self, context: RequestContext, uuid: str) -> None:
        """Run the waiting or failed jobs of an operation now, or start its work again.

        :raises OperationRefused: the operation runs or has succeeded, or it is a bind,
            which Nova has given up
        """
        operation = self._find(context, uuid)
        restart = self.restarts.get(operation.kind)
        if restart is None or operation.state not in _UNSUCCESSFUL:
            self._change(context, uuid, administration.retry_operation)
            return
        request_id = context.request_id
        renewed_operation = NewOperation(
            operation.kind, request_id=request_id, uuid=uuid, is_retry=True
        )
        restart(context, operation, renewed_operation)
        LOG.info('User %s starts operation %s again', context.user_id, uuid)
        self.wake()

    @serves(Conductor.cancel_operation)
    def cancel(self, context: RequestContext, uuid: str) -> None:
        self._change(context, uuid, administration.cancel_operation)

    def _find(self, context: RequestContext, uuid: str) -> Operation:
        for operation in self.list(context, Query(filters={'uuid': (uuid,)})):
            return operation
        raise OperationNotFound(uuid=uuid)

    def _change(
        self, context: RequestContext, uuid: str, change: Callable[..., None]
    ) -> None:
        self._find(context, uuid)
        self.database.write(change, uuid)
        LOG.info('User %s: %s %s', context.user_id, change.__name__, uuid)
        self.wake()
