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
from cyborg_lite.db.jobs.payloads import read_payload
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
        payload = read_payload(NovaEventPayload, job.payload)
        instance, succeeded = payload.instance_uuid, payload.succeeded
        events = [
            BoundEvent(instance, uuid, succeeded)
            for uuid in self._list_arqs(job, payload)
        ]
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

    def _list_arqs(self, job: Job, payload: NovaEventPayload) -> Sequence[str]:
        """Return the ARQs that still have the result of the bind.

        An ARQ that was unbound, deleted or bound again since has an event of its own,
        which Nova may already have received. Directly after the transaction that has
        bound all ARQs, the database is not read.
        """
        if job.is_replacement and payload.succeeded:
            return payload.arq_uuids
        return self.database.read(binding.list_arqs_by_outcome, payload)

    def _send(self, events: Sequence[BoundEvent]) -> None:
        try:
            with self.metrics.time_stage('nova-event'):
                outcomes = self.nova.post_events(events)
        except CyborgError:
            self.metrics.count_nova_failure()
            raise
        for outcome in outcomes:
            self.metrics.count_nova_event(outcome.code)

    def expire(self, job: Job, reason: str) -> None:
        """Log the failure and finish the job: Nova does not wait any more."""
        LOG.error(
            'Event for instance %s not delivered before event_deadline: %s',
            read_payload(NovaEventPayload, job.payload).instance_uuid,
            reason,
        )
        self.database.write(queue.finish_job, job, reason)
