# SPDX-License-Identifier: Apache-2.0
"""The job that sends the result of a bind to Nova, in one POST for each instance."""

from collections.abc import Sequence

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


class NovaEventHandler:
    """Runs Nova event jobs.

    The deadline of a job is the time for which Nova may still wait for the event.
    """

    def __init__(
        self, database: Database, nova: Nova, metrics: Metrics | None = None
    ) -> None:
        self._database = database
        self._nova = nova
        self._metrics = metrics or Metrics()

    def run(self, job: Job) -> Job | None:
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
        self._database.write(queue.finish_job, job)
        LOG.info(
            'Sent %d events to Nova for instance %s: bind %s; ARQs %s',
            len(events),
            instance,
            'completed' if succeeded else 'failed',
            ', '.join(event.arq_uuid for event in events) or 'none',
        )
        return None

    def _list_arqs(self, job: Job, payload: NovaEventPayload) -> Sequence[str]:
        """Return the ARQs that still have the result of the bind.

        An ARQ that was unbound, deleted or bound again since has an event of its own,
        which Nova may already have received. Directly after the transaction that has
        bound all ARQs, the database is not read.
        """
        if job.is_replacement and payload.succeeded:
            return payload.arq_uuids
        return self._database.read(binding.list_arqs_by_outcome, payload)

    def _send(self, events: Sequence[BoundEvent]) -> None:
        try:
            with self._metrics.time_stage('nova-event'):
                outcomes = self._nova.post_events(events)
        except CyborgError:
            self._metrics.count_nova_failure()
            raise
        for outcome in outcomes:
            self._metrics.count_nova_event(outcome.code)

    def expire(self, job: Job, reason: str) -> Job | None:
        """Log the failure and finish the job: Nova does not wait any more."""
        LOG.error(
            'Event for instance %s not delivered before event_deadline: %s',
            read_payload(NovaEventPayload, job.payload).instance_uuid,
            reason,
        )
        self._database.write(queue.finish_job, job, reason)
        return None
