# SPDX-License-Identifier: Apache-2.0
"""The cleaning job: has an agent clean a unit, then makes the unit available.

A cleaning run takes minutes or hours. Each attempt at the job therefore starts the
cleaning run or reads its progress, stores it, and lets the job wait. The agent works in
the background and loses all progress at a restart. The next attempt then orders the
cleaning run again, with the steps that are stored as completed.
"""

from dataclasses import dataclass, field
from typing import Final

from oslo_log import log

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.hosts.liveness import check_hosts_up
from cyborg_lite.conductor.jobs.operations import build_operation
from cyborg_lite.db.arqs import occupied_handles
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import cleanings
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.arqs import UnitAllocated
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.devices.cleaning import (
    CleanProgress,
    CleanProgressState,
    CleanWork,
    DeviceCleanings,
    UnitSelection,
)
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.limits import check_values
from cyborg_lite.model.operations import (
    NewOperation,
    Operation,
    OperationKind,
    SubjectType,
)
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext, request_context
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Agents, Conductor

LOG = log.getLogger(__name__)

_SHORTEST_PAUSE: Final = 500  # milliseconds between two attempts
_LONGEST_PAUSE: Final = 15_000
_PAUSE_PER_SECOND: Final = 50  # milliseconds for each second of the age of the job
_PATIENCE: Final = 10.0  # age of a job in seconds from which its refusal is logged
_TO_START: Final = (CleanProgressState.UNKNOWN, CleanProgressState.WAITING)


@dataclass(frozen=True, slots=True)
class CleanHandler:
    """Runs cleaning jobs. The unit cannot be claimed until its job has succeeded."""

    database: Database
    agents: Agents
    placement: Placement
    # Uuids of handles whose refusal is logged.
    _refused: set[str] = field(default_factory=set, init=False)

    def run(self, job: Job) -> None:
        """Start the cleaning run or read its progress, and store it."""
        work = self.database.write(cleanings.begin_cleaning, job)
        if work is None:
            self.database.write(queue.finish_job, job)
            return
        check_hosts_up([work.order.handle])
        self._store(job, work, self._ask(job, work))

    def _ask(self, job: Job, work: CleanWork) -> CleanProgress:
        """Return the progress of the cleaning run; start it if it does not run.

        Two calls, because the agent must not start a cleaning run by an order that was
        sent to an earlier process of it.
        """
        context = request_context(job.request_id)
        host, order = work.order.handle.hostname, work.order
        progress = self.agents.read_cleaning(context, host, order)
        if progress.state in _TO_START:
            self._check_users(job, work)
            session = progress.session
            progress = self.agents.start_cleaning(context, host, order, session)
        check_values(progress)
        return progress

    def _check_users(self, job: Job, work: CleanWork) -> None:
        """Check that no instance without an ARQ may use the unit.

        The cleaning jobs of a database that was restored from a backup may be of an
        earlier use. Nova deletes the allocation of an instance shortly after its ARQs,
        so a new job waits for that.

        :raises UnitAllocated: an instance without an ARQ has an allocation
        :raises ServiceUnavailable: Placement does not answer
        """
        if work.rp_uuid is None:
            return
        consumers = self.placement.list_consumers(work.rp_uuid)
        owners = self.database.read(
            occupied_handles.list_known_users, work.rp_uuid, consumers
        )
        handle, unowned = work.order.handle, ', '.join(sorted(consumers - owners))
        if not unowned:
            self._refused.discard(handle.uuid)
            return
        if job.age >= _PATIENCE and handle.uuid not in self._refused:
            self._refused.add(handle.uuid)
            LOG.warning(
                'Host %s does not clean handle %s (%s): instances without an ARQ have '
                'an allocation on resource provider %s: %s',
                handle.hostname,
                handle.key,
                handle.uuid,
                work.rp_uuid,
                unowned,
            )
        raise UnitAllocated(provider=work.rp_uuid, instances=unowned)

    def _store(self, job: Job, work: CleanWork, progress: CleanProgress) -> None:
        if progress.state is CleanProgressState.SUCCEEDED:
            self.database.write(cleanings.record_clean, job, work, progress)
        elif progress.state is CleanProgressState.FAILED:
            self._fail(job, work, progress.reason, progress)
        else:
            pause = int(job.age * _PAUSE_PER_SECOND)
            pause = max(_SHORTEST_PAUSE, min(_LONGEST_PAUSE, pause))
            self.database.write(cleanings.record_progress, job, work, progress, pause)

    def _fail(
        self, job: Job, work: CleanWork, reason: str, progress: CleanProgress | None
    ) -> None:
        handle = work.order.handle
        LOG.error('Cleaning %s of %s failed: %s', handle.key, handle.hostname, reason)
        self.database.write(cleanings.record_clean_failure, job, work, reason, progress)

    def expire(self, job: Job, reason: str) -> None:
        """End a job that an operator has cancelled, and withhold the unit.

        A running step ends first, and the job waits for it.
        """
        work = self.database.write(cleanings.begin_cleaning, job)
        if work is None:
            self.database.write(queue.finish_job, job)
            return
        obstacle, progress = self._abort(job, work)
        if obstacle:
            LOG.warning('Clean job %s is not cancelled: %s', job.uuid, obstacle)
            self.database.write(
                queue.withdraw_cancellation, job, _LONGEST_PAUSE, obstacle
            )
        elif progress is not None and progress.state is CleanProgressState.SUCCEEDED:
            self._store(job, work, progress)
        else:
            self._fail(job, work, reason, progress)

    def _abort(self, job: Job, work: CleanWork) -> tuple[str, CleanProgress | None]:
        """Abort the work of the agent; return why it may go on, and its progress."""
        context = request_context(job.request_id)
        host = work.order.handle.hostname
        try:
            check_hosts_up([work.order.handle])
            progress = self.agents.abort_cleaning(context, host, work.order)
            check_values(progress)
        except CyborgError as error:
            return f'Not cancelled: {error.text}', None
        if progress.state is CleanProgressState.RUNNING:
            return f'Step {progress.text} is running; no other follows.', progress
        return '', progress


@dataclass(frozen=True, slots=True)
class CleaningService:
    """Lists the cleaning runs of a device, and carries out decisions of operators."""

    database: Database

    @serves(Conductor.list_cleanings)
    def list(self, device_uuid: str, query: Query) -> DeviceCleanings:
        return self.database.read(cleanings.list_cleanings, device_uuid, query)

    @serves(Conductor.retry_cleaning)
    def retry(
        self, context: RequestContext, selection: UnitSelection, actor: str
    ) -> str:
        operation = _build_operation(context, selection)
        self._start(selection, actor, operation)
        return operation.uuid

    @serves(Conductor.reset_device)
    def reset(self, context: RequestContext, selection: UnitSelection) -> str:
        operation = _build_operation(context, selection)
        actor = selection.name or context.user_id or 'unknown'
        number = self.database.write(cleanings.reset_units, selection, actor, operation)
        LOG.info('%s resets %d units: %s', actor, number, selection)
        return operation.uuid

    def restart(
        self,
        context: RequestContext,
        operation: Operation,
        renewed_operation: NewOperation,
    ) -> None:
        """Clean the units of a failed operation again."""
        unit = str(operation.parameters.get('unit') or '')
        selection = UnitSelection(operation.subject_id, unit)
        self._start(selection, context.user_id or 'unknown', renewed_operation)

    def _start(
        self, selection: UnitSelection, actor: str, operation: NewOperation
    ) -> None:
        number = self.database.write(
            cleanings.retry_cleaning, selection, actor, operation
        )
        LOG.info(
            '%s starts the cleaning of %d units again: %s', actor, number, selection
        )

    @serves(Conductor.accept_units)
    def accept(self, selection: UnitSelection, actor: str) -> int:
        number = self.database.write(cleanings.accept_units, selection, actor)
        LOG.warning('%s declares %d units clean: %s', actor, number, selection)
        return number


def _build_operation(context: RequestContext, selection: UnitSelection) -> NewOperation:
    kind, device = OperationKind.CLEANING, selection.device_uuid
    return build_operation(
        context, kind, SubjectType.DEVICE, device, unit=selection.unit
    )
