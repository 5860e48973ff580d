# SPDX-License-Identifier: Apache-2.0
"""The bind job: moves the ARQs of an instance from BindStarted to Bound or BindFailed.

Another conductor completes the job if this process exits on the way.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import groupby
from typing import Final, Self

from oslo_log import log

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Consumer, Placement
from cyborg_lite.conductor.arqs.nova_support import NovaRules, NovaSupport
from cyborg_lite.conductor.bitstreams.loading import BitstreamLoader
from cyborg_lite.conductor.hosts.liveness import check_hosts_up
from cyborg_lite.conductor.profiles.device_profiles import (
    correct_alternatives,
    read_traits,
)
from cyborg_lite.db.arqs import attach_handles, binding, claiming, history
from cyborg_lite.db.arqs.claiming import Allocated
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.arqs import (
    BindAbandoned,
    BindCancelled,
    BindExpired,
    BindStopped,
    HandleNotAttachable,
    HandlesContended,
    InstanceNotSpawned,
    NoFreeHandle,
    ProviderMismatch,
)
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.devices import DeployableInUse
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.providers import PlacementConflict
from cyborg_lite.model.arqs.arqs import Actor, Binding
from cyborg_lite.model.devices.devices import AllocatedHandle, ConfirmedHandle
from cyborg_lite.model.jobs import (
    BindPayload,
    ConnectPayload,
    Job,
    NewJob,
    NovaEventPayload,
)
from cyborg_lite.rpc.context import request_context
from cyborg_lite.rpc.interface import Agents

LOG = log.getLogger(__name__)

_CLAIM_ATTEMPTS: Final = 5


TimesStage = Callable[[str], AbstractContextManager[object]]
"""Returns a context that observes the duration of a stage of a bind."""


@dataclass(frozen=True, slots=True)
class BindRules:
    """Options of the operator for binds; times in seconds."""

    deadline: int
    event_deadline: int
    require_allocation: bool
    nova: NovaRules = field(default_factory=NovaRules)
    connect_deadline: int = 3600


def build_bind_job(
    bindings: Mapping[str, Binding], rules: BindRules, request_id: str | None
) -> NewJob:
    """Return the bind job of ARQs of one instance.

    :param bindings: by uuid of the ARQ
    """
    providers = {binding.device_rp_uuid for binding in bindings.values()}
    first = next(iter(bindings.values()))
    payload = BindPayload(
        instance_uuid=first.instance_uuid,
        arq_uuids=tuple(sorted(bindings)),
        provider_uuids=tuple(sorted(providers)),
        project_id=first.project_id,
    )
    limit = rules.deadline * 1000
    return queue.build_job(
        payload, limit_ms=limit, request_id=request_id, host=first.hostname
    )


def build_nova_event_job(
    payload: NovaEventPayload,
    rules: BindRules,
    *,
    key: str | None = None,
    request_id: str | None = None,
) -> NewJob:
    """Return the job that sends the result of a bind to Nova.

    :param key: at most one unfinished job has the key; None: any number of jobs
    :param request_id: None: that of the job which this one replaces
    """
    limit = rules.event_deadline * 1000
    return queue.build_job(payload, key=key, limit_ms=limit, request_id=request_id)


class BindHandler:
    """Runs bind jobs.

    A run may repeat an earlier one from any point: claimed handles stay claimed, and
    the agent may be called to prepare a handle any number of times.
    """

    def __init__(
        self,
        database: Database,
        agents: Agents,
        placement: Placement,
        rules: BindRules,
        loader: BitstreamLoader | None = None,
    ) -> None:
        self._database = database
        self._agents = agents
        self._loader = loader or BitstreamLoader(database, agents)
        self._placement = placement
        self._rules = rules
        self._time: TimesStage = nullcontext
        self._nova = NovaSupport(placement, rules.nova)

    def observe_stages(self, time_stage: TimesStage) -> Self:
        """Observe the duration of each stage; return the handler."""
        self._time = time_stage
        return self

    def run(self, job: Job) -> Job | None:
        """Bind the ARQs, and return the Nova event job."""
        payload = queue.read_payload(BindPayload, job.payload)
        try:
            return self._bind(job, payload)
        except (
            BindCancelled,
            NoFreeHandle,
            HandleNotAttachable,
            DriverError,
            DeployableInUse,
        ) as error:
            return self._fail(job, payload, error)
        except CyborgError as error:
            self._record_delay(job, payload, error)
            raise

    def _bind(self, job: Job, payload: BindPayload) -> Job | None:
        """Claim and prepare the handles, and return the Nova event job."""
        uuids = payload.arq_uuids
        with self._time('allocation'):
            consumer = self._find_consumer(payload)
        project_id = _select_project(payload, consumer)
        if job.step == binding.CLAIMED:
            handles = self._list_claimed(payload)
        else:
            if payload.has_alternatives and consumer is not None:
                correct_alternatives(self._database, self._placement, payload, consumer)
            self._check_room(payload, consumer)
            with self._time('claim'):
                claim = self._claim_matching(job, payload, consumer)
            if not claim.handles:
                _log_bound(payload)
                return claim.job
            handles = claim.handles
        self._nova.check_handles(handles)
        check_hosts_up(handles)
        with self._time('load'):
            has_loaded = self._loader.load_for_arqs(
                uuids, payload.generation, job.request_id
            )
        if has_loaded:
            # The handles now name the bitstream. The agent stores it, and loads it
            # again after a host reboot.
            handles = self._list_claimed(payload)
        with self._time('prepare'):
            confirmed = self._prepare(job, handles)
        event_job = self._build_event_job(payload, succeeded=True)
        replacement = self._database.write(
            binding.complete_bind,
            job,
            binding.PreparedBind(uuids, confirmed),
            project_id,
            event_job,
            *self._build_connect_jobs(job, payload, confirmed),
        )
        _log_bound(payload)
        return replacement

    def _record_delay(self, job: Job, payload: BindPayload, error: CyborgError) -> None:
        """Store which host or service a bind waits for, once for each cause."""
        is_away = error.code == HTTPStatus.SERVICE_UNAVAILABLE
        if not is_away or str(error) == job.last_error:
            return
        with suppress(CyborgError):  # the job is postponed in any case
            self._database.write(
                history.record_step,
                payload.arq_uuids,
                history.BIND_DELAYED,
                Actor.CONDUCTOR,
                error,
            )

    def expire(self, job: Job, reason: str) -> Job | None:
        """Move the ARQs to BindFailed and return the Nova event job."""
        payload = queue.read_payload(BindPayload, job.payload)
        kind = BindStopped if job.cancelled else BindExpired
        return self._fail(job, payload, kind(reason=reason))

    def _fail(self, job: Job, payload: BindPayload, error: CyborgError) -> Job | None:
        if isinstance(error, BindCancelled) and job.last_error:
            error = BindAbandoned(cause=job.last_error)
        LOG.warning(
            'Bind of instance %s failed: %s ARQs %s',
            payload.instance_uuid,
            error.text,
            ', '.join(payload.arq_uuids),
        )
        event_job = self._build_event_job(payload, succeeded=False)
        return self._database.write(
            binding.fail_bind, job, payload.arq_uuids, error, event_job
        )

    def _build_event_job(self, payload: BindPayload, *, succeeded: bool) -> NewJob:
        event = NovaEventPayload(
            payload.instance_uuid, payload.arq_uuids, succeeded, payload.generation
        )
        return build_nova_event_job(event, self._rules)

    def _list_claimed(self, payload: BindPayload) -> tuple[AllocatedHandle, ...]:
        return self._database.read(
            binding.list_claimed_handles, payload.arq_uuids, payload.generation
        )

    def _find_consumer(self, payload: BindPayload) -> Consumer | None:
        """Return the allocations of the instance.

        A bind without an allocation is stale or forged, and gets no handle.

        :returns: None if the allocations are not required and not available
        :raises NoFreeHandle: the instance has no allocation on one of the providers
        """
        instance = payload.instance_uuid
        try:
            consumer = self._placement.find_consumer(instance)
        except ServiceUnavailable as error:
            if self._rules.require_allocation:
                raise
            LOG.warning(
                'Allocations of instance %s not checked before the bind: %s',
                instance,
                error.text,
            )
            return None
        allocated = consumer.providers if consumer else frozenset()
        missing = sorted(set(payload.provider_uuids) - allocated)
        if missing:
            reason = f'Instance {instance} has no allocation on {", ".join(missing)}.'
            if self._rules.require_allocation:
                raise NoFreeHandle(reason=reason)
            LOG.warning(
                'Binding instance %s without an allocation on %s: '
                '[conductor] require_allocation is off',
                instance,
                ', '.join(missing),
            )
        return consumer

    def _check_room(self, payload: BindPayload, consumer: Consumer | None) -> None:
        """Check that other consumers leave room on the providers of a bind.

        The database may show handles as free that guests use: it was restored from a
        backup, or the bind has no allocation.

        :raises NoFreeHandle: other consumers use too many units of a provider
        :raises ServiceUnavailable: Placement does not answer; retry later
        """
        own = consumer.allocations if consumer else {}
        usage: dict[str, int] = {}  # units of other consumers, by uuid of the provider
        for provider in payload.provider_uuids:
            try:
                used = sum(self._placement.get_usages(provider).values())
            except PlacementConflict:
                continue  # a provider that does not exist has no allocations
            except ServiceUnavailable:
                if self._rules.require_allocation:
                    raise
                continue
            usage[provider] = used - sum(own.get(provider, {}).values())
        shared = {provider: number for provider, number in usage.items() if number > 0}
        if shared:
            self._database.read(claiming.check_room, payload.arq_uuids, shared)

    def _claim_matching(
        self, job: Job, payload: BindPayload, consumer: Consumer | None
    ) -> binding.ClaimResult:
        """Claim handles of providers that match the ARQs and the allocation.

        Only a provider that seems to lack a trait is read from Placement: operators may
        set traits of their own.
        """
        must_fit = consumer is not None and self._rules.require_allocation
        allocated = Allocated(
            _select_project(payload, consumer),
            consumer.allocations if consumer is not None and must_fit else None,
        )
        try:
            return self._claim(job, payload, allocated)
        except ProviderMismatch:
            traits = {
                uuid: read_traits(self._placement, uuid)
                for uuid in payload.provider_uuids
            }
        return self._claim(job, payload, replace(allocated, traits=traits))

    def _claim(
        self, job: Job, payload: BindPayload, allocated: Allocated
    ) -> binding.ClaimResult:
        """Claim handles. Retry shortly if other transactions have locked free ones.

        :raises HandlesContended: the handles are still locked; the job is postponed
        :raises UnitsBeingCleaned: as above, while hosts are still cleaning handles
        """
        event_job = self._build_event_job(payload, succeeded=True)
        contention = HandlesContended()
        for attempt in range(_CLAIM_ATTEMPTS):
            try:
                return self._database.write(
                    binding.claim_for_bind,
                    job,
                    payload.arq_uuids,
                    allocated,
                    event_job,
                )
            except HandlesContended as error:
                contention = error
                time.sleep(random.uniform(0.01, 0.05) * (attempt + 1))
        raise contention

    def _build_connect_jobs(
        self, job: Job, payload: BindPayload, confirmed: Sequence[ConfirmedHandle]
    ) -> tuple[NewJob, ...]:
        """Return the job for handles whose drivers wait until the instance is spawned.

        :returns: empty if there are no such handles
        """
        connecting = [handle for handle in confirmed if handle.needs_connect]
        if not connecting:
            return ()
        arqs = tuple(sorted(handle.arq_uuid for handle in connecting))
        connect = ConnectPayload(payload.instance_uuid, arqs, payload.generation)
        limit = self._rules.connect_deadline * 1000
        new_job = queue.build_job(
            connect, limit_ms=limit, request_id=job.request_id, host=job.host
        )
        return (new_job,)

    def _prepare(
        self, job: Job, handles: Sequence[AllocatedHandle]
    ) -> list[ConfirmedHandle]:
        """Have the agents prepare the handles, with one call for each host.

        :returns: the handles that the agents have prepared
        """
        context = request_context(job.request_id)
        remote = [handle for handle in handles if handle.needs_host]
        remote.sort(key=lambda handle: handle.hostname)
        confirmed: list[ConfirmedHandle] = []
        for host, on_host in groupby(remote, key=lambda handle: handle.hostname):
            confirmed += self._agents.prepare(context, host, list(on_host))
        return confirmed


def _select_project(payload: BindPayload, consumer: Consumer | None) -> str | None:
    """Return the project that owns the allocations of the instance.

    :returns: None if an admin named the project in the bind, or if there are none
    """
    if consumer is None or payload.project_id is not None:
        return None
    return consumer.project_id


def _log_bound(payload: BindPayload) -> None:
    LOG.info(
        'Bound ARQs %s of instance %s',
        ', '.join(payload.arq_uuids),
        payload.instance_uuid,
    )


# --- the connect job: drivers that wait until the instance of a bind is spawned ---
#
# The state of the instance in Nova decides. A bind adds the job only if the answer of
# the agent to ``prepare`` names handles to connect.


@dataclass(frozen=True, slots=True)
class ConnectHandler:
    """Runs connect jobs."""

    database: Database
    nova: Nova
    agents: Agents

    def run(self, job: Job) -> None:
        """Connect the handles that the ARQs still own, once the instance is spawned.

        Without a Nova the handles are connected at once.

        :raises InstanceNotSpawned: the job is postponed
        :raises HostAway: an agent does not answer; the job is postponed
        :raises DriverError: a driver failed; the job is postponed
        """
        payload = queue.read_payload(ConnectPayload, job.payload)
        handles = [
            handle
            for handle in self.database.read(
                attach_handles.list_handles_of_bind,
                payload.arq_uuids,
                payload.generation,
            )
            # A handle that is being released has no instance.
            if handle.instance_uuid == payload.instance_uuid
        ]
        if handles and self.nova.is_spawned(payload.instance_uuid) is False:
            raise InstanceNotSpawned(instance=payload.instance_uuid)
        context = request_context(job.request_id)
        by_host = sorted(handles, key=lambda handle: handle.hostname)
        for host, on_host in groupby(by_host, key=lambda handle: handle.hostname):
            self.agents.connect(context, host, list(on_host))
        self.database.write(queue.finish_job, job)
        LOG.info(
            'Connected %d handles of instance %s', len(handles), payload.instance_uuid
        )

    def expire(self, job: Job, reason: str) -> None:
        """Log the failure and finish the job; the ARQs stay Bound."""
        LOG.warning(
            'Handles of instance %s not connected before connect_deadline: %s',
            queue.read_payload(ConnectPayload, job.payload).instance_uuid,
            reason,
        )
        self.database.write(queue.finish_job, job, reason)
