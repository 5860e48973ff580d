# SPDX-License-Identifier: Apache-2.0
"""Steps of a bind, their jobs, and the scope that sees the ARQs of all projects."""

from collections.abc import Mapping, Sequence

from cyborg_lite.db.arqs import attach_handles, binding
from cyborg_lite.db.arqs.claiming import Allocated
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.arqs.arqs import Binding, Scope
from cyborg_lite.model.jobs import Job, NewJob
from cyborg_lite.model.operations import OperationKind
from tests.builders.rows import OWNER

ANY_PROJECT = Scope(project_id=None)
BIND_JOB = NewJob(OperationKind.BIND, limit_ms=60_000)
BOUND_EVENT_JOB = NewJob(OperationKind.NOVA_EVENT, {'succeeded': True})
FAILED_EVENT_JOB = NewJob(OperationKind.NOVA_EVENT, {'succeeded': False})


def accept_bind(
    database: Database, requested: Mapping[str, Binding], new: NewJob = BIND_JOB
) -> Job:
    return database.write(binding.accept_bind, requested, ANY_PROJECT, new, OWNER)


def claim_for_bind(
    database: Database,
    job: Job,
    uuids: Sequence[str],
    allocated: Allocated | None = None,
) -> binding.ClaimResult:
    event = BOUND_EVENT_JOB
    return database.write(binding.claim_for_bind, job, uuids, allocated, event)


def confirm_all(database: Database, uuids: Sequence[str]) -> binding.PreparedBind:
    """Return a bind whose hosts have prepared all handles that the ARQs own."""
    handles = database.read(attach_handles.list_handles_of_arqs, uuids)
    confirmed = [handle.confirm() for handle in handles if handle.needs_host]
    return binding.PreparedBind(uuids, confirmed)


def complete_bind(
    database: Database,
    job: Job,
    uuids: Sequence[str],
    event: NewJob = BOUND_EVENT_JOB,
) -> Job:
    """End a bind whose hosts have prepared all handles; return the event job."""
    prepared = confirm_all(database, uuids)
    return database.write(binding.complete_bind, job, prepared, None, event)
