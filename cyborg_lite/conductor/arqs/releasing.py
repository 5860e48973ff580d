# SPDX-License-Identifier: Apache-2.0
"""The release job: has the agent clean a handle, then makes the handle free.

The job also restores the bitstream that the bind replaced. All steps can be repeated,
so another conductor may run the job again from the start. An agent that is down delays
the job for any length of time.
"""

from dataclasses import dataclass

from cyborg_lite.conductor.bitstreams.loading import BitstreamLoader
from cyborg_lite.conductor.hosts.liveness import check_hosts_up
from cyborg_lite.conductor.jobs.runner import EndlessHandler
from cyborg_lite.db.arqs import attach_handles, release
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.jobs import Job, ReleasePayload
from cyborg_lite.rpc.context import request_context
from cyborg_lite.rpc.interface import Agents


@dataclass(frozen=True, slots=True)
class ReleaseHandler(EndlessHandler):
    """Runs release jobs. The handle cannot be claimed until its job has succeeded."""

    agents: Agents
    loader: BitstreamLoader | None = None  # None: there is no Glance

    def run(self, job: Job) -> None:
        """Clean the handle, restore its bitstream and make the handle free."""
        uuid = queue.read_payload(ReleasePayload, job.payload).handle_uuid
        handle = self.database.read(attach_handles.find_unclean_handle, uuid)
        if handle is None:
            self.database.write(queue.finish_job, job)
            return
        try:
            check_hosts_up([handle])
            context = request_context(job.request_id)
            self.agents.release(context, handle.hostname, [handle])
            if handle.changed:
                loader = self.loader or BitstreamLoader(self.database, self.agents)
                loader.restore(handle, job.request_id)
        except CyborgError as error:
            self.database.write(release.record_release_failure, handle, error)
            raise
        self.database.write(release.record_release, job, handle)
