# SPDX-License-Identifier: Apache-2.0
"""ARQs: the operations of the API, and the project scope in which they apply."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from oslo_log import log

from cyborg_lite.clients.limits import KeystoneLimits
from cyborg_lite.conductor.arqs.binding import (
    BindRules,
    build_bind_job,
    build_nova_event_job,
)
from cyborg_lite.conductor.bitstreams.bitstreams import (
    NO_BITSTREAMS,
    BitstreamCatalog,
)
from cyborg_lite.conductor.hosts.database_watch import DatabaseWatch
from cyborg_lite.conductor.jobs.operations import build_operation
from cyborg_lite.conductor.jobs.runner import JobRunner
from cyborg_lite.conductor.profiles.device_profiles import viewing_project
from cyborg_lite.db.arqs import arqs, binding, history, project_limits, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import agents
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.arqs import (
    ArqNotFound,
    ArqStateConflict,
    InstanceHasArqs,
    InvalidPatch,
    ProjectLimitExceeded,
)
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.errors.profiles import DeviceProfileDisabled
from cyborg_lite.errors.requests import ServiceTokenRequired
from cyborg_lite.model.arqs.arqs import Arq, Binding, Scope, State, Step
from cyborg_lite.model.arqs.project_limits import (
    ARQS,
    UNBOUND,
    UNLIMITED,
    ProjectLimits,
    ResourceUse,
    list_resources,
    name_units,
)
from cyborg_lite.model.jobs import NovaEventPayload
from cyborg_lite.model.operations import OperationKind, SubjectType
from cyborg_lite.model.queries import Query, replace_records
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Agents, Conductor

LOG = log.getLogger(__name__)

# --- limits of projects ---


@dataclass(frozen=True, slots=True)
class LimitService:
    """Prepares the check of limits. Keystone is not called within a transaction."""

    database: Database
    limits: KeystoneLimits | None  # None: Keystone has no limits
    max_unbound: int = UNLIMITED  # ARQs of a project that were never bound
    # Projects whose lock exists.
    _locked_projects: set[str] = field(default_factory=set, init=False)

    def prepare(
        self, context: RequestContext, profile_name: str
    ) -> ProjectLimits | None:
        """Return the limits of the project of the caller.

        The Compute service binds its ARQs at once and deletes them, so it may create
        any number. An administrator may, too.

        :returns: None if the caller has no project, or no limit applies
        :raises DeviceProfileNotFound: the profile does not exist or is not visible
        :raises ServiceUnavailable: Keystone does not answer
        """
        project = context.project_id
        if project is None:
            return None
        is_bounded = not (context.is_admin or context.service_request)
        unbound = self.max_unbound if is_bounded else UNLIMITED
        limits = None
        if self.limits is not None:
            viewer = viewing_project(context)
            groups = self.database.read(arqs.list_profile_groups, profile_name, viewer)
            limits = self.limits.read_limits(project, list_resources(groups))
        elif unbound == UNLIMITED:
            return None
        if project not in self._locked_projects:
            self.database.write(project_limits.add_lock, project)
            self._locked_projects.add(project)
        return ProjectLimits(project, limits, unbound)

    @serves(Conductor.list_limits)
    def list(self, context: RequestContext) -> tuple[ResourceUse, ...]:
        """Return the limits of the project of the caller, and what it uses.

        The resources are those that the project uses, or that its device profiles
        request.
        """
        project = context.project_id or ''
        used = self.database.read(project_limits.count_used, project)
        viewer = viewing_project(context)
        visible = self.database.read(profiles.list_profiles, Query(), viewer)
        classes = {name for profile in visible for name in profile.resource_classes()}
        names = {ARQS, *map(name_units, classes), *used} - {UNBOUND}
        limits = dict.fromkeys(names, UNLIMITED)
        if self.limits is not None:
            limits |= self.limits.read_limits(project, names)
        limits[UNBOUND] = self.max_unbound
        return tuple(
            ResourceUse(name, limits[name], used[name]) for name in sorted(limits)
        )


# Why a bind of known ARQs is not accepted.
_REFUSALS: Final = (ArqStateConflict, DeviceProfileDisabled, InstanceHasArqs)


@dataclass(frozen=True, slots=True)
class ArqService:
    """Creates, lists, binds and deletes ARQs.

    Each method commits one transaction or raises. Side effects run later as jobs.
    """

    database: Database
    runner: JobRunner
    rules: BindRules
    catalog: BitstreamCatalog = NO_BITSTREAMS
    agents: Agents | None = None  # None: do not ask whether a host has rebooted
    limits: LimitService | None = None  # None: projects have no limits
    watch: DatabaseWatch | None = None  # None: the database is trusted

    @serves(Conductor.create_arqs)
    def create(
        self,
        context: RequestContext,
        device_profile_name: str,
        image_uuid: str | None = None,
    ) -> tuple[Arq, ...]:
        properties: Mapping[str, str] = {}
        if image_uuid is not None:
            properties = self.catalog.read_image_properties(image_uuid)
        create = partial(
            arqs.create_arqs,
            profile_name=device_profile_name,
            project_id=context.project_id,
            viewer=viewing_project(context),
            of_service=context.service_request,
            image_properties=properties,
        )
        limits = None
        if self.limits is not None:
            limits = self.limits.prepare(context, device_profile_name)
        if limits is None:
            return self.database.write(create)
        try:
            return self.database.write(project_limits.create_arqs, limits, create)
        except ProjectLimitExceeded as error:
            # The fault of an instance shows only the status.
            LOG.info('No ARQs of %s created: %s', device_profile_name, error.text)
            raise

    @serves(Conductor.list_arqs)
    def list(self, context: RequestContext, query: Query) -> tuple[Arq, ...]:
        """Return the ARQs that match the query and that the caller may see.

        A service request sees ARQs of other projects only if it filters by instance or
        by uuid.
        """
        has_instance = 'instance_uuid' in query.filters
        scope = _build_scope(
            context, names_arqs=has_instance or 'uuid' in query.filters
        )
        rows = self.database.read(arqs.list_arqs, query, scope)
        if has_instance and self.watch is not None:
            self.watch.check_listed(query.filters['instance_uuid'], rows)
        if has_instance and context.service_request:
            rows = self._select_attachable(context, rows)
            return self._mark_unconfirmed(context, rows)
        return rows

    def _mark_unconfirmed(
        self, context: RequestContext, rows: tuple[Arq, ...]
    ) -> tuple[Arq, ...]:
        """Return the ARQs, as Unknown if their host has rebooted unnoticed.

        Nova may start the guests of a host before its agent has reported the boot. The
        agent answers after it has rebuilt the handles. Agents are called only for ARQs
        whose handle needs the host.
        """
        hosts = {
            arq.uuid: arq.hostname
            for arq in rows
            if arq.state is State.BOUND and arq.needs_host and arq.hostname
        }
        confirmed = {h: self._is_confirmed(context, h) for h in set(hosts.values())}
        return replace_records(
            rows,
            (
                arq
                if confirmed.get(hosts.get(arq.uuid, ''), True)
                else replace(arq, state=State.UNKNOWN)
                for arq in rows
            ),
        )

    def _is_confirmed(self, context: RequestContext, host: str) -> bool:
        """Check that the agent reports the stored boot of its host."""
        if self.agents is None:
            return True
        try:
            boot_id = self.agents.read_boot_id(context, host)
        except HostAway as error:
            LOG.warning(
                'Cannot check whether host %s was rebooted; its bound ARQs that need '
                'the host count as Unknown: %s',
                host,
                error.full_text,
            )
            return False
        stored = self.database.read(agents.find_agent, host)
        # Empty: the host does not tell its boot, or the agent has not reported yet.
        stored_boot_id = stored.boot_id if stored else None
        return not (boot_id and stored_boot_id) or boot_id == stored_boot_id

    def _select_attachable(
        self, context: RequestContext, rows: tuple[Arq, ...]
    ) -> tuple[Arq, ...]:
        """Return the ARQs that Nova can attach, and send the events of the others.

        Nova attaches no device to an instance if one of its ARQs has no PCI handle.
        ARQs whose handle is not for the guest are therefore hidden from Nova. If all
        ARQs are such, all are returned, because Nova takes an empty list for a failure.

        Nova waits for an event of each hidden ARQ. The event that followed the bind may
        have arrived before Nova started to wait. Nova already waits while it calls this
        service, so the event that is sent now arrives in time. Nova ignores an event
        that it does not need.
        """
        hidden: dict[str, list[str]] = defaultdict(list)  # ARQ uuids by instance
        for arq in rows:
            if arq.is_not_for_guest and arq.instance_uuid is not None:
                hidden[arq.instance_uuid].append(arq.uuid)
        attachable = replace_records(
            rows, (arq for arq in rows if not arq.is_not_for_guest)
        )
        if not hidden or not attachable:
            return rows
        for instance, uuids in hidden.items():
            payload = NovaEventPayload(instance, tuple(uuids), succeeded=True)
            job = build_nova_event_job(
                payload, self.rules, key=instance, request_id=context.request_id
            )
            self.database.write(queue.add_job, job)
        self.runner.wake()
        return attachable

    @serves(Conductor.list_arq_steps)
    def list_steps(
        self, context: RequestContext, uuid: str, query: Query
    ) -> tuple[Step, ...]:
        scope = _build_scope(context)
        return self.database.read(history.list_steps, uuid, scope, query)

    @serves(Conductor.list_instance_steps)
    def list_steps_of_instance(
        self, context: RequestContext, instance: str, query: Query
    ) -> tuple[Step, ...]:
        scope = _build_scope(context)
        read = self.database.read
        return read(history.list_steps_of_instance, instance, scope, query)

    @serves(Conductor.bind_arqs)
    def bind(self, context: RequestContext, bindings: Mapping[str, Binding]) -> str:
        _check_service_token(context, 'Binding an ARQ')
        if len({binding.instance_uuid for binding in bindings.values()}) != 1:
            raise InvalidPatch(reason='all ARQs must be bound to the same instance.')
        instance = next(iter(bindings.values())).instance_uuid
        operation = build_operation(
            context,
            OperationKind.BIND,
            SubjectType.INSTANCE,
            instance,
            arqs=sorted(bindings),
        )
        new_job = build_bind_job(bindings, self.rules, context.request_id)
        new_job = replace(new_job, operation=operation)
        scope = _build_scope(context)
        arguments = bindings, scope, new_job
        try:
            with self.runner.reserve_worker(new_job.host) as owner:
                if owner is None:
                    self.database.write(binding.accept_waiting_bind, *arguments)
                else:
                    job = self.database.write(binding.accept_bind, *arguments, owner)
                    self.runner.run(job)
        except _REFUSALS as error:
            self.database.write(
                history.record_refused_bind, bindings, scope, instance, error
            )
            raise
        LOG.info(
            'Accepted the bind of ARQs %s: instance %s, host %s',
            ', '.join(bindings),
            instance,
            new_job.host,
        )
        return operation.uuid

    @serves(Conductor.unbind_arqs)
    def unbind(self, context: RequestContext, uuids: Sequence[str]) -> str:
        """Release the handles of ARQs, and return the operation.

        The ARQs can be bound again.
        """
        _check_service_token(context, 'Unbinding an ARQ')
        scope = _build_scope(context)
        operation = build_operation(context, OperationKind.RELEASE)
        self.database.write(release.unbind_arqs, uuids, scope, operation)
        self.runner.wake()
        return operation.uuid

    @serves(Conductor.delete_arqs)
    def delete(self, context: RequestContext, uuids: Sequence[str]) -> None:
        missing = self.database.write(
            release.delete_arqs,
            uuids,
            _build_scope(context),
            context.service_request,
            build_operation(context, OperationKind.RELEASE),
        )
        self.runner.wake()
        if missing:
            raise ArqNotFound(uuid=', '.join(missing))

    @serves(Conductor.delete_arqs_of_instance)
    def delete_of_instance(self, context: RequestContext, instance: str) -> None:
        _check_service_token(context, 'Deleting the ARQs of an instance')
        wrote_jobs = self.database.write(
            release.delete_arqs_of_instance,
            instance,
            _build_scope(context),
            build_operation(context, OperationKind.RELEASE),
        )
        # Most deletes write no job, and then the runner does not query the job table.
        if wrote_jobs:
            self.runner.wake()


def _build_scope(context: RequestContext, *, names_arqs: bool = True) -> Scope:
    """Return the scope of the caller.

    :param names_arqs: True if the call names ARQs by uuid or by instance
    """
    return Scope(
        project_id=None if context.is_admin else context.project_id,
        of_instances=names_arqs and context.service_request,
    )


def _check_service_token(context: RequestContext, action: str) -> None:
    # The API checks the token as well. This check cannot be waived by a policy file.
    if not context.service_request:
        raise ServiceTokenRequired(action=action)
