# SPDX-License-Identifier: Apache-2.0
"""What may be asked about accelerator requests, and for whom."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from cyborg_lite.conductor.binding import BindRules, bind_job
from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.conductor.device_profiles import viewer
from cyborg_lite.conductor.jobs import JobRunner
from cyborg_lite.db import arqs, binding, history, jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import ArqNotFound, InvalidPatch, ServiceTokenRequired
from cyborg_lite.model.arqs import Arq, Binding, Scope, Step
from cyborg_lite.model.jobs import Kind, NewJob
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext


class Arqs:
    """Everything here is done, or refused whole, when it returns; jobs do the rest."""

    def __init__(
        self,
        database: Database,
        runner: JobRunner,
        rules: BindRules,
        library: Library | None = None,
    ) -> None:
        self._database = database
        self._runner = runner
        self._rules = rules
        self._library = library or Library(None, 0)

    def create(
        self,
        context: RequestContext,
        device_profile_name: str,
        image_uuid: str | None = None,
    ) -> tuple[Arq, ...]:
        """:param image_uuid: of the server, whose image may ask for something too"""
        project, sees = context.project_id, viewer(context)
        wishes = {} if image_uuid is None else self._library.wishes(image_uuid)
        return self._database.write(
            arqs.create,
            device_profile_name,
            project,
            sees,
            of_service=context.service_request,
            wishes=wishes,
        )

    def list(self, context: RequestContext, query: Query) -> tuple[Arq, ...]:
        # Only who names an instance or a request gets what is in other projects.
        of_instance = 'instance_uuid' in query.filters
        scope = _scope(context, of_instance or 'uuid' in query.filters)
        found = self._database.read(arqs.listed, query, scope)
        if of_instance and context.service_request:
            return self._attachable(context, found)
        return found

    def _attachable(
        self, context: RequestContext, found: tuple[Arq, ...]
    ) -> tuple[Arq, ...]:
        """Those that Nova can attach; of the others it is told that they are bound.

        Nova attaches nothing at all to a server if one of its requests has no PCI
        handle, so it must not see what is not for the guest, unless that is all: it
        takes an empty list for a failure. But it waits for the event of each that
        it does not see, and the one after the bind may have come before it waited. It
        waits while it asks us: this one comes in time, and a needless one is ignored.
        """
        others: dict[str, list[str]] = defaultdict(list)
        for arq in found:
            if arq.is_not_for_guest and arq.instance_uuid is not None:
                others[arq.instance_uuid].append(arq.uuid)
        attachable = tuple(arq for arq in found if not arq.is_not_for_guest)
        if not others or not attachable:
            return found
        for instance, uuids in others.items():
            limit = self._rules.event_deadline * 1000
            told = {'instance': instance, 'arqs': uuids, 'succeeded': True}
            request_id = context.request_id
            job = NewJob(Kind.NOVA_EVENT, told, instance, limit, request_id)
            self._database.write(jobs.add, job)
        self._runner.wake()
        return attachable

    def history(self, context: RequestContext, uuid: str) -> tuple[Step, ...]:
        """:raises ArqNotFound: no such request, or one of another project"""
        scope = _scope(context, named=True)
        return self._database.read(history.steps, uuid, scope)

    def bind(self, context: RequestContext, bindings: Mapping[str, Binding]) -> None:
        """:raises InvalidPatch: the bindings name more than one instance"""
        _check_service(context, 'Binding an accelerator request')
        if len({one.instance_uuid for one in bindings.values()}) != 1:
            raise InvalidPatch(reason='all must be bound to the same instance.')
        job = bind_job(bindings, self._rules, context.request_id)
        scope = _scope(context, named=True)
        owner = self._runner.owner
        accepted = self._database.write(binding.accept, bindings, scope, job, owner)
        self._runner.run(accepted)

    def unbind(self, context: RequestContext, uuids: Sequence[str]) -> None:
        _check_service(context, 'Unbinding an accelerator request')
        scope = _scope(context, named=True)
        self._database.write(release.unbind, uuids, scope, context.request_id)
        self._runner.wake()

    def delete(self, context: RequestContext, uuids: Sequence[str]) -> None:
        """:raises ArqNotFound: some are not there; the others are deleted"""
        missing = self._database.write(
            release.delete_listed,
            uuids,
            _scope(context, named=True),
            context.service_request,
            context.request_id,
        )
        self._runner.wake()
        if missing:
            raise ArqNotFound(uuid=', '.join(missing))

    def delete_of_instance(self, context: RequestContext, instance: str) -> None:
        _check_service(context, 'Deleting the accelerator requests of an instance')
        scope = _scope(context, named=True)
        request_id = context.request_id
        delete = release.delete_of_instance
        # Most deletes leave nothing to be done, and then nobody looks for it.
        if self._database.write(delete, instance, scope, request_id):
            self._runner.wake()


def _scope(context: RequestContext, named: bool) -> Scope:
    everybody = 'admin' in context.roles
    return Scope(
        project_id=None if everybody else context.project_id,
        of_instances=named and context.service_request,
    )


def _check_service(context: RequestContext, action: str) -> None:
    # Decided here too and not only in the API: no policy file can waive it.
    if not context.service_request:
        raise ServiceTokenRequired(action=action)
