# SPDX-License-Identifier: Apache-2.0
"""The bind job: from BindStarted to Bound or BindFailed, whatever dies on the way."""

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol

from oslo_log import log

from cyborg_lite.clients.placement import Consumer
from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.conductor.liveness import check_heard
from cyborg_lite.conductor.loading import Loader
from cyborg_lite.db import binding
from cyborg_lite.db.engine import Database
from cyborg_lite.db.handles import held
from cyborg_lite.exceptions import (
    BindCancelled,
    DeployableInUse,
    DriverError,
    HandlesContended,
    NoFreeHandle,
    ServiceUnavailable,
)
from cyborg_lite.model.arqs import Binding
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.jobs import Job, Kind, NewJob
from cyborg_lite.rpc.agent import AgentAPI
from cyborg_lite.rpc.context import of_request

LOG = log.getLogger(__name__)

_CLAIM_TRIES: Final = 5


class Allocations(Protocol):
    """Placement, as far as a bind needs it."""

    def consumer(self, uuid: str) -> Consumer | None: ...


@dataclass(frozen=True, slots=True)
class BindRules:
    """What the operator chose; times in seconds."""

    deadline: int
    event_deadline: int
    require_allocation: bool


def bind_job(
    bindings: Mapping[str, Binding], rules: BindRules, request_id: str | None
) -> NewJob:
    """For requests of one instance."""
    wanted = list(bindings.values())
    payload = {
        'instance': wanted[0].instance_uuid,
        'arqs': sorted(bindings),
        'providers': sorted({one.device_rp_uuid for one in wanted}),
        # Named by an admin, it stands above what Placement says of the owner.
        'project': wanted[0].project_id,
    }
    limit = rules.deadline * 1000
    return NewJob(Kind.BIND, payload, limit_ms=limit, request_id=request_id)


class BindHandler:
    """May run again from any point: a claim stays, and preparing can be repeated."""

    def __init__(
        self,
        database: Database,
        agents: AgentAPI,
        placement: Allocations,
        rules: BindRules,
        loader: Loader | None = None,
    ) -> None:
        self._database = database
        self._agents = agents
        # Without one there is nothing to load, and whoever wants it fails.
        self._loader = loader or Loader(database, agents, Library(None, 0))
        self._placement = placement
        self._rules = rules

    def run(self, job: Job) -> Job | None:
        uuids = job.payload['arqs']
        try:
            project_id = self._owner_of_server(job)
            if job.step == binding.CLAIMED:
                handles = self._database.read(binding.claimed, uuids)
            else:
                claimed = self._claim(job, project_id)
                if not claimed.handles:
                    return claimed.job
                handles = claimed.handles
            check_heard(handles)
            if self._loader.load_for(uuids, job.request_id):
                # Their host must know what to load again after a boot.
                handles = self._database.read(held, uuids)
            self._prepare(job, handles)
            return self._database.write(
                binding.succeed, job, uuids, project_id, self._told(job, True)
            )
        except (BindCancelled, NoFreeHandle, DriverError, DeployableInUse) as error:
            return self._fail(job, error.text)

    def expire(self, job: Job, reason: str) -> Job | None:
        if job.cancelled:
            return self._fail(job, reason)
        return self._fail(job, f'The bind ran out of time: {reason}')

    def _fail(self, job: Job, reason: str) -> Job | None:
        LOG.warning('Bind of instance %s failed: %s', job.payload['instance'], reason)
        uuids = job.payload['arqs']
        told = self._told(job, False)
        return self._database.write(binding.fail, job, uuids, reason, told)

    def _told(self, job: Job, succeeded: bool) -> NewJob:
        payload = {
            'instance': job.payload['instance'],
            'arqs': job.payload['arqs'],
            'succeeded': succeeded,
        }
        return NewJob(
            Kind.NOVA_EVENT, payload, limit_ms=self._rules.event_deadline * 1000
        )

    def _owner_of_server(self, job: Job) -> str | None:
        """The project of the server, by Placement's record of what it was allocated.

        A bind for which nothing was allocated is stale or forged, and gets nothing.

        :raises NoFreeHandle: the instance has no allocation on one of the providers
        """
        instance = job.payload['instance']
        try:
            consumer = self._placement.consumer(instance)
        except ServiceUnavailable:
            if self._rules.require_allocation:
                raise
            LOG.warning('Placement does not answer; instance %s not checked', instance)
            return None
        allocated = consumer.providers if consumer else frozenset()
        without = sorted(set(job.payload['providers']) - allocated)
        if without:
            reason = f'Instance {instance} has no allocation on {", ".join(without)}.'
            if self._rules.require_allocation:
                raise NoFreeHandle(reason=reason)
            LOG.warning('%s Bound all the same, as configured.', reason)
        if consumer is None or job.payload['project'] is not None:
            return None
        return consumer.project_id

    def _claim(self, job: Job, project_id: str | None) -> binding.Claimed:
        """Claim; when others hold locks on what is free, try again in a moment.

        :raises HandlesContended: they still do; the job is put off
        """
        uuids, told = job.payload['arqs'], self._told(job, True)
        for attempt in range(_CLAIM_TRIES):
            try:
                return self._database.write(binding.claim, job, uuids, project_id, told)
            except HandlesContended:
                time.sleep(random.uniform(0.01, 0.05) * (attempt + 1))
        raise HandlesContended()

    def _prepare(self, job: Job, handles: Sequence[HeldHandle]) -> None:
        """Have them prepared, in one call for each host.

        :raises HostAway: a host does not answer; the job is put off
        :raises DriverError: a host cannot
        """
        context = of_request(job.request_id)
        wanted = [handle for handle in handles if handle.needs_host]
        wanted.sort(key=lambda handle: handle.hostname)
        for host, those in groupby(wanted, key=lambda handle: handle.hostname):
            self._agents.prepare(context, host, list(those))
