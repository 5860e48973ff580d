# SPDX-License-Identifier: Apache-2.0
"""Programming of a deployable by an operator, and the job that does it."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Final

from oslo_log import log

from cyborg_lite.conductor.bitstreams.loading import BitstreamLoader
from cyborg_lite.conductor.jobs.operations import build_operation
from cyborg_lite.conductor.jobs.runner import JobRunner
from cyborg_lite.db.bitstreams import programming
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import deployables
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.bitstreams import ProgrammingTimedOut
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.devices import DeployableNotFound
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.bitstreams.bitstreams import ProgramStep
from cyborg_lite.model.bitstreams.listing import ListedBitstream
from cyborg_lite.model.devices.devices import DeployableRecord
from cyborg_lite.model.jobs import Job, ProgramPayload
from cyborg_lite.model.operations import (
    NewOperation,
    Operation,
    OperationKind,
    SubjectType,
)
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor

LOG = log.getLogger(__name__)

_WAIT_SECONDS: Final = 50.0  # clients of the API wait 60 seconds
_DEADLINE_MS: Final = 600_000


@dataclass(frozen=True, slots=True)
class ProgrammingService:
    """Programs deployables for operators.

    The work runs as a job, so it continues if the caller stops waiting.
    """

    database: Database
    loader: BitstreamLoader
    runner: JobRunner
    waiters: 'ProgramWaiters'

    @serves(Conductor.program_deployable)
    def program(
        self, context: RequestContext, uuid: str, image_uuid: str
    ) -> DeployableRecord:
        job = self._accept(uuid, image_uuid, _build(context, uuid, image_uuid))
        result = self.waiters.add(job.uuid)
        self.runner.run(job)
        try:
            result.result(_WAIT_SECONDS)
        except FutureTimeoutError:
            raise ProgrammingTimedOut(uuid=uuid) from None
        finally:
            self.waiters.remove(job.uuid)
        query = Query(filters={'uuid': (uuid,)})
        for record in self.database.read(deployables.list_deployables, query):
            return record
        # The host reports other regions after the load.
        raise DeployableNotFound(uuid=uuid)

    @serves(Conductor.start_programming)
    def start(
        self,
        context: RequestContext,
        uuid: str,
        image_uuid: str,
        loaded: str | None = None,
    ) -> Operation:
        new = _build(context, uuid, image_uuid)
        job = self._accept(uuid, image_uuid, new, loaded)
        operation = self.database.read(operations.read_operation, job.operations[0])
        self.runner.run(job)
        return operation

    def restart(
        self,
        context: RequestContext,
        operation: Operation,
        renewed_operation: NewOperation,
    ) -> None:
        """Start to load the image of a failed operation again."""
        image_uuid = str(operation.parameters['image_uuid'])
        self.runner.run(
            self._accept(operation.subject_id, image_uuid, renewed_operation)
        )

    @serves(Conductor.list_bitstreams)
    def list_bitstreams(
        self, filters: Mapping[str, str], deployable: str
    ) -> tuple[ListedBitstream, ...]:
        region = None
        if deployable:
            region = self.database.read(programming.find_region, deployable)
        return self.loader.list_bitstreams(filters, region)

    def _accept(
        self,
        uuid: str,
        image_uuid: str,
        operation: NewOperation,
        loaded: str | None = None,
    ) -> Job:
        region = self.database.read(programming.find_region, uuid)
        bitstream = self.loader.find_image(region, image_uuid)
        payload = ProgramPayload(uuid, image_uuid, bitstream.is_shell)
        new_job = queue.build_job(
            payload,
            limit_ms=_DEADLINE_MS,
            request_id=operation.request_id,
            host=region.hostname,
            operation=operation,
        )
        return self.database.write(
            programming.begin_load, region, new_job, self.runner.owner, loaded
        )


def _build(context: RequestContext, uuid: str, image_uuid: str) -> NewOperation:
    kind, subject = OperationKind.PROGRAM, SubjectType.DEPLOYABLE
    return build_operation(context, kind, subject, uuid, image_uuid=image_uuid)


class ProgramWaiters:
    """Callers in this process that wait for programming jobs of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: dict[str, Future[None]] = {}  # by uuid of the job

    def add(self, uuid: str) -> Future[None]:
        """Return the future of a job."""
        with self._lock:
            return self._results.setdefault(uuid, Future())

    def remove(self, uuid: str) -> None:
        """Forget the future of a job."""
        with self._lock:
            self._results.pop(uuid, None)

    def notify(self, uuid: str, error: CyborgError | None) -> None:
        """Set the result of a job. Do nothing if no caller waits for it.

        :param error: None: the job has succeeded
        """
        with self._lock:
            result = self._results.get(uuid)
        if result is None or result.done():
            return
        if error is None:
            result.set_result(None)
        else:
            result.set_exception(error)


@dataclass(slots=True)
class ProgramHandler:
    """Runs programming jobs. A run may repeat an earlier one."""

    database: Database
    loader: BitstreamLoader
    waiters: ProgramWaiters

    def run(self, job: Job) -> None:
        """Load the image and store the result."""
        payload = queue.read_payload(ProgramPayload, job.payload)
        try:
            region = self._find_region(payload)
        except DeployableNotFound as error:
            self._end(job, None, error)
            return
        failure: CyborgError | None = None
        try:
            self._record_step(job, ProgramStep.CHECKING)
            bitstream = self.loader.find_image(region, payload.image_uuid)
            self._record_step(job, ProgramStep.LOADING)
            self.loader.load(region, bitstream, (), job.request_id)
            self.loader.try_update_placement(region.hostname)
        except (HostAway, ServiceUnavailable) as error:
            # The job is retried. The step shows the operator why it takes long.
            is_host = isinstance(error, HostAway)
            reason = 'The agent of its host does not answer.' if is_host else error.text
            self._record_step(job, ProgramStep.ACCEPTED, reason)
            raise
        except CyborgError as error:
            LOG.error(
                'Programming deployable %s (%s) with image %s failed: %s',
                region.uuid,
                region.name,
                payload.image_uuid,
                error.text,
            )
            failure = error
        self._end(job, region, failure)

    def _find_region(self, payload: ProgramPayload) -> programming.StoredRegion:
        return self.database.read(programming.find_region, payload.deployable_uuid)

    def _record_step(self, job: Job, step: ProgramStep, reason: str = '') -> None:
        self.database.write(
            operations.record_step, job.operations, step, step.progress, reason
        )

    def expire(self, job: Job, reason: str) -> None:
        """Mark the region unusable and end the job."""
        payload = queue.read_payload(ProgramPayload, job.payload)
        LOG.error(
            'Programming deployable %s with image %s ended without a result: %s',
            payload.deployable_uuid,
            payload.image_uuid,
            reason,
        )
        try:
            region = self._find_region(payload)
        except DeployableNotFound as error:
            self.database.write(programming.end_load, None, job, error)
            return
        # The agent may have started to load, so the content of the region is unknown.
        self.database.write(
            programming.mark_region_unusable, region, f'Programming failed: {reason}'
        )
        self._end(job, region, ProgrammingTimedOut(uuid=region.uuid))

    def _end(
        self,
        job: Job,
        region: programming.StoredRegion | None,
        failure: CyborgError | None,
    ) -> None:
        self.database.write(programming.end_load, region, job, failure)
        self.waiters.notify(job.uuid, failure)
