# SPDX-License-Identifier: Apache-2.0
"""The job that tells Nova how a bind ended, in one POST for each instance."""

from collections.abc import Sequence

from oslo_log import log

from cyborg_lite.clients.nova import BoundEvent, Nova
from cyborg_lite.conductor.metrics import Metrics
from cyborg_lite.db import binding, jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.model.jobs import Job

LOG = log.getLogger(__name__)


class NovaEventHandler:
    """Tries as long as Nova may still be waiting; a later event would say nothing."""

    def __init__(
        self, database: Database, nova: Nova, metrics: Metrics | None = None
    ) -> None:
        self._database = database
        self._nova = nova
        self._metrics = metrics or Metrics()

    def run(self, job: Job) -> Job | None:
        instance, succeeded = job.payload['instance'], job.payload['succeeded']
        events = [BoundEvent(instance, arq, succeeded) for arq in self._concerned(job)]
        for outcome in self._nova.post_events(events):
            self._metrics.event_answered(outcome.code)
        # Every answer is final, also that Nova does not know the instance.
        self._database.write(jobs.finish, job)
        word = 'completed' if succeeded else 'failed'
        LOG.info('Told Nova of %d %s binds of %s', len(events), word, instance)
        return None

    def _concerned(self, job: Job) -> Sequence[str]:
        """The requests of which Nova is to hear.

        What could not be told at once may not be so any more: who was unbound, and
        perhaps bound anew, has news of its own, and Nova may have it already.
        """
        arqs: Sequence[str] = job.payload['arqs']
        if job.attempts == 1:
            return arqs
        instance, succeeded = job.payload['instance'], job.payload['succeeded']
        return self._database.read(binding.ended_so, arqs, instance, succeeded)

    def expire(self, job: Job, reason: str) -> Job | None:
        instance = job.payload['instance']
        LOG.error('Nova was never told of the bind of %s: %s', instance, reason)
        self._database.write(jobs.finish, job)
        return None
