# SPDX-License-Identifier: Apache-2.0
"""The job that sends the result of a bind to Nova, in one POST for each instance."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from oslo_log import log

from cyborg_lite.clients.nova import BoundEvent, Nova
from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.arqs import binding
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.jobs import Job, NovaEventPayload

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NovaEventHandler:
    """Runs Nova event jobs.

    The deadline of a job is the time for which Nova may still wait for the event.
    """

    database: Database
    nova: Nova
    metrics: Metrics = field(default_factory=Metrics)

    def run(self, job: Job) -> None:
        """Send one event for each ARQ. Any answer of Nova completes the job.

        Nova may answer that it does not know the instance. That answer is final, too.
        """
        payload = queue.read_payload(NovaEventPayload, job.payload)
        instance, succeeded = payload.instance_uuid, payload.succeeded
        # An ARQ that was unbound, deleted or bound again since has an event of its own,
        # which Nova may already have received. Directly after the transaction that has
        # bound all ARQs, the database is not read.
        arqs: Sequence[str] = payload.arq_uuids
        if not (job.is_replacement and succeeded):
            arqs = self.database.read(binding.list_arqs_by_outcome, payload)
        events = [BoundEvent(instance, uuid, succeeded) for uuid in arqs]
        if events:
            self._send(events)
        self.database.write(queue.finish_job, job)
        LOG.info(
            'Sent %d events to Nova for instance %s: bind %s; ARQs %s',
            len(events),
            instance,
            'completed' if succeeded else 'failed',
            ', '.join(event.arq_uuid for event in events) or 'none',
        )

    def _send(self, events: Sequence[BoundEvent]) -> None:
        try:
            with self.metrics.time_stage('nova-event'):
                outcomes = self.nova.post_events(events)
        except CyborgError:
            self.metrics.count('nova_events', 'none')
            raise
        for outcome in outcomes:
            code = 'dropped' if outcome.code is None else str(outcome.code)
            self.metrics.count('nova_events', code)

    def expire(self, job: Job, reason: str) -> None:
        """Log the failure and finish the job: Nova does not wait any more."""
        LOG.error(
            'Event for instance %s not delivered before event_deadline: %s',
            queue.read_payload(NovaEventPayload, job.payload).instance_uuid,
            reason,
        )
        self.database.write(queue.finish_job, job, reason)
