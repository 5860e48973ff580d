# SPDX-License-Identifier: Apache-2.0
"""The release job: has a device cleaned by its host, however long that is away.

What the bind had loaded into it is undone, too. All of it is safe to repeat: where a
conductor dies in between, the next one begins again.
"""

from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.conductor.liveness import check_heard
from cyborg_lite.conductor.loading import Loader
from cyborg_lite.db import handles, jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.jobs import Job
from cyborg_lite.rpc.agent import AgentAPI
from cyborg_lite.rpc.context import of_request


class ReleaseHandler:
    """Until it has succeeded nobody else can be given the device."""

    def __init__(
        self, database: Database, agents: AgentAPI, loader: Loader | None = None
    ) -> None:
        self._database = database
        self._agents = agents
        # Without Glance only what the host still keeps can be loaded again.
        self._loader = loader or Loader(database, agents, Library(None, 0))

    def run(self, job: Job) -> Job | None:
        handle = self._database.read(handles.to_clean, job.payload['handle'])
        if handle is None:
            self._database.write(jobs.finish, job)
            return None
        try:
            check_heard([handle])
            context = of_request(job.request_id)
            self._agents.release(context, handle.hostname, [handle])
            if handle.changed:
                self._loader.restore(handle, job.request_id)
        except CyborgError as error:
            self._database.write(release.not_cleaned, handle, error.text)
            raise
        self._database.write(release.cleaned, job, handle)
        return None

    def expire(self, job: Job, reason: str) -> Job | None:
        """Only by an operator's hand: the job itself has no deadline."""
        self._database.write(jobs.give_up, job, reason)
        return None
