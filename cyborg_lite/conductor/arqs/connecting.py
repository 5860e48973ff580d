# SPDX-License-Identifier: Apache-2.0
"""The connect job: calls drivers that wait until the instance of a bind is spawned.

The state of the instance in Nova decides. A bind adds the job only if the answer of the
agent to ``prepare`` names handles to connect.
"""

from itertools import groupby

from oslo_log import log

from cyborg_lite.clients.nova import Nova
from cyborg_lite.db.arqs import attach_handles
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.jobs.payloads import read_payload
from cyborg_lite.errors.arqs import InstanceNotSpawned
from cyborg_lite.model.jobs import ConnectPayload, Job
from cyborg_lite.rpc.context import request_context
from cyborg_lite.rpc.interface import Agents

LOG = log.getLogger(__name__)


class ConnectHandler:
    """Runs connect jobs."""

    def __init__(self, database: Database, nova: Nova, agents: Agents) -> None:
        self._database = database
        self._nova = nova
        self._agents = agents

    def run(self, job: Job) -> Job | None:
        """Connect the handles that the ARQs still own, once the instance is spawned.

        Without a Nova the handles are connected at once.

        :raises InstanceNotSpawned: the job is postponed
        :raises HostAway: an agent does not answer; the job is postponed
        :raises DriverError: a driver failed; the job is postponed
        """
        payload = read_payload(ConnectPayload, job.payload)
        handles = [
            handle
            for handle in self._database.read(
                attach_handles.list_handles_of_bind,
                payload.arq_uuids,
                payload.generation,
            )
            # A handle that is being released has no instance.
            if handle.instance_uuid == payload.instance_uuid
        ]
        if handles and self._nova.is_spawned(payload.instance_uuid) is False:
            raise InstanceNotSpawned(instance=payload.instance_uuid)
        context = request_context(job.request_id)
        by_host = sorted(handles, key=lambda handle: handle.hostname)
        for host, on_host in groupby(by_host, key=lambda handle: handle.hostname):
            self._agents.connect(context, host, list(on_host))
        self._database.write(queue.finish_job, job)
        LOG.info(
            'Connected %d handles of instance %s', len(handles), payload.instance_uuid
        )
        return None

    def expire(self, job: Job, reason: str) -> Job | None:
        """Log the failure and finish the job; the ARQs stay Bound."""
        LOG.warning(
            'Handles of instance %s not connected before connect_deadline: %s',
            read_payload(ConnectPayload, job.payload).instance_uuid,
            reason,
        )
        self._database.write(queue.finish_job, job, reason)
        return None
