# SPDX-License-Identifier: Apache-2.0
"""The job type of the next release: store the label of a host at its devices."""

from typing import Any

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.jobs import Job
from cyborg_lite.rpc.context import request_context


class LabelHandler:
    """Runs the job. It has no deadline."""

    # Any: the interface of the agents has the method in the next release only.
    def __init__(self, database: Database, agents: Any, set_labels: Any) -> None:
        self._database = database
        self._agents = agents
        self._set_labels = set_labels

    def run(self, job: Job) -> Job | None:
        """Read the label; an agent of the previous release has none."""
        host = str(job.payload['host'])
        try:
            label = self._agents.read_label(request_context(job.request_id), host)
        except HostAway:
            label = 'unknown'
        self._database.write(self._set_labels, host, label)
        self._database.write(queue.finish_job, job)
        return None

    def expire(self, job: Job, reason: str) -> Job | None:
        """Mark the job as failed."""
        self._database.write(queue.fail_job, job, reason)
        return None
