# SPDX-License-Identifier: Apache-2.0
"""The release job: has the agent clean a handle, then makes the handle free.

The job also restores the bitstream that the bind replaced. All steps can be repeated,
so another conductor may run the job again from the start. An agent that is down delays
the job for any length of time.
"""

from cyborg_lite.conductor.bitstreams.loading import BitstreamLoader
from cyborg_lite.conductor.hosts.liveness import check_hosts_up
from cyborg_lite.db.arqs import attach_handles, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.jobs import Job, ReleasePayload
from cyborg_lite.rpc.context import request_context
from cyborg_lite.rpc.interface import Agents


class ReleaseHandler:
    """Runs release jobs. The handle cannot be claimed until its job has succeeded."""

    def __init__(
        self, database: Database, agents: Agents, loader: BitstreamLoader | None = None
    ) -> None:
        self._database = database
        self._agents = agents
        self._loader = loader or BitstreamLoader(database, agents)

    def run(self, job: Job) -> None:
        """Clean the handle, restore its bitstream and make the handle free."""
        uuid = queue.read_payload(ReleasePayload, job.payload).handle_uuid
        handle = self._database.read(attach_handles.find_unclean_handle, uuid)
        if handle is None:
            self._database.write(queue.finish_job, job)
            return
        try:
            check_hosts_up([handle])
            context = request_context(job.request_id)
            self._agents.release(context, handle.hostname, [handle])
            if handle.changed:
                self._loader.restore(handle, job.request_id)
        except CyborgError as error:
            self._database.write(release.record_release_failure, handle, error)
            raise
        self._database.write(release.record_release, job, handle)

    def expire(self, job: Job, reason: str) -> None:
        """Mark the job as failed. Only an operator causes this: it has no deadline."""
        self._database.write(queue.fail_job, job, reason)
        return None
