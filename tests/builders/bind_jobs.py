# SPDX-License-Identifier: Apache-2.0
"""Jobs of a bind, its end, and the scope that sees the ARQs of all projects."""

from collections.abc import Sequence

from cyborg_lite.db.arqs import attach_handles, binding
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.jobs import Job, NewJob
from cyborg_lite.model.operations import OperationKind

ANY_PROJECT = Scope(project_id=None)
BIND_JOB = NewJob(OperationKind.BIND, limit_ms=60_000)
BOUND_EVENT_JOB = NewJob(OperationKind.NOVA_EVENT, {'succeeded': True})
FAILED_EVENT_JOB = NewJob(OperationKind.NOVA_EVENT, {'succeeded': False})


def confirm_all(database: Database, uuids: Sequence[str]) -> binding.PreparedBind:
    """Return a bind whose hosts have prepared all handles that the ARQs own."""
    handles = database.read(attach_handles.list_handles_of_arqs, uuids)
    confirmed = [handle.confirm() for handle in handles if handle.needs_host]
    return binding.PreparedBind(uuids, confirmed)


def complete_bind(
    database: Database, job: Job, uuids: Sequence[str], event: NewJob
) -> Job:
    """End a bind whose hosts have prepared all handles; return the event job."""
    prepared = confirm_all(database, uuids)
    return database.write(binding.complete_bind, job, prepared, None, event)
