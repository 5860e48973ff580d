# SPDX-License-Identifier: Apache-2.0
"""The sync of a host: makes its providers in Placement match the database."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from oslo_log import log

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.jobs.runner import EndlessHandler
from cyborg_lite.conductor.providers.reading import HostReader
from cyborg_lite.conductor.providers.writing import (
    ProviderCache,
    ProviderWriter,
    RehearsalWriter,
    SyncProgress,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.errors.providers import PlacementConflict
from cyborg_lite.model.jobs import Job, PlacementSyncPayload
from cyborg_lite.model.providers.changes import (
    HostTree,
    ProviderChange,
    ProviderProblem,
    SyncPlan,
    plan_sync,
)
from cyborg_lite.model.traits import EMPTIED

LOG = log.getLogger(__name__)

_ATTEMPTS: Final = 5
_MAX_LISTED: Final = 100  # changes, and problems, in the result of an operation


@dataclass(frozen=True, slots=True)
class SyncMode:
    """The extent of a sync."""

    deep: bool = False  # read all providers from Placement, not from the cache
    # Write unchanged providers as well, so that Placement rejects a write that another
    # worker has sent before.
    fence: bool = False
    prune: bool = False  # delete the providers that are kept for removed devices
    # Delete the providers that earlier syncs have detached, after the sync.
    delete_detached: bool = False


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The changes of a sync, and the problems that an operator must solve."""

    changes: tuple[ProviderChange, ...] = ()
    problems: tuple[ProviderProblem, ...] = ()
    # Providers have left the tree of the host, and are to be deleted later.
    has_detached: bool = False

    def describe(self) -> dict[str, list[dict[str, str]]]:
        """Return the result as JSON of an operation."""
        return {
            'changes': [
                {'provider': change.name, 'change': change.description}
                for change in self.changes[:_MAX_LISTED]
            ],
            'problems': [
                {'provider': problem.name, 'reason': problem.reason}
                for problem in self.problems[:_MAX_LISTED]
            ],
        }


_QUICK: Final = SyncMode()


@dataclass(frozen=True, slots=True)
class PlacementSync:
    """Syncs hosts.

    A sync without changes costs two reads: providers whose generation is unchanged are
    cached.
    """

    database: Database
    placement: Placement
    # Patterns, with ``*`` and ``?``, of the names of hosts without a compute node. Such
    # a host gets a root provider of its own.
    without_compute: Collection[str] = ()
    _cache: ProviderCache = field(default_factory=ProviderCache, init=False)

    def sync(self, hostname: str, mode: SyncMode = _QUICK) -> SyncResult:
        """Make the providers of a host match the database.

        Only the worker of the Placement sync job of the host calls it; see
        ``host_jobs``.

        :raises ComputeNodeAbsent: the host has no root provider, or not yet
        :raises PlacementConflict: other clients kept changing the same providers
        :raises ServiceUnavailable: Placement does not answer
        :raises RemoteError: Placement rejects a provider, for instance because of a
            name that it does not know
        """
        progress = SyncProgress()
        try:
            result, error = self._run(hostname, mode, self._cache, progress)
        finally:
            _log_changes(progress.changes)
        _log_problems(hostname, result.problems)
        if error is not None:
            # The cause may be a trait or resource class that is cached as existing, and
            # that has been deleted.
            self.placement.invalidate_names()
            raise error
        if mode.delete_detached:
            self._delete_detached(hostname)
        return result

    def _delete_detached(self, hostname: str) -> None:
        """Delete the providers of a removed host that nova-compute does not know."""
        nodes = [
            node
            for node in self.placement.list_providers(EMPTIED)
            if node.parent_uuid is None and node.name.startswith(f'{hostname}_')
        ]
        for node in nodes:
            self.placement.delete_provider(node.uuid)
            LOG.info('Provider %s changed in Placement: deleted', node.name)
        uuids = [node.uuid for node in nodes]
        self.database.write(providers.delete_unused_traits, uuids)

    def rehearse(self, hostname: str, *, prune: bool = False) -> SyncResult:
        """Return the result of a deep sync without changing Placement or the database.

        :param prune: see ``SyncMode``
        :raises CyborgError: as ``sync``
        """
        mode = SyncMode(deep=True, prune=prune)
        result, _ = self._run(hostname, mode, None, SyncProgress())
        return result

    def _run(
        self,
        hostname: str,
        mode: SyncMode,
        cache: ProviderCache | None,
        progress: SyncProgress,
    ) -> tuple[SyncResult, RemoteError | None]:
        """Sync a host. A concurrent change of its providers restarts the sync.

        :param cache: None: rehearse the sync
        :returns: also the last rejection of a provider
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._attempt(hostname, mode, cache, progress)
            except PlacementConflict as error:
                LOG.debug(
                    'Sync of host %s restarted after a conflict: %s', hostname, error
                )
            # What the first attempt has read is recent.
            mode = replace(mode, deep=False)
            if cache is None:
                progress = SyncProgress(outside=progress.outside)
        return self._attempt(hostname, mode, cache, progress)

    def _attempt(
        self,
        hostname: str,
        mode: SyncMode,
        cache: ProviderCache | None,
        progress: SyncProgress,
    ) -> tuple[SyncResult, RemoteError | None]:
        has_compute = not any(
            fnmatchcase(hostname, pattern) for pattern in self.without_compute
        )
        is_rehearsal = cache is None
        writer_class = RehearsalWriter if is_rehearsal else ProviderWriter
        cache = cache or ProviderCache()
        reader = HostReader(self.placement, cache, self.database, progress)
        tree = reader.read_tree(hostname, has_compute=has_compute, deep=mode.deep)
        if tree is None:
            return SyncResult(), None
        facts = reader.read_facts(tree, has_compute=has_compute, prune=mode.prune)
        plan = plan_sync(tree, facts, fence=mode.fence)
        outside = len(progress.outside)
        writer = writer_class(self.placement, cache, progress, facts.actual)
        writer.apply(plan.creations)
        has_created = any(uuid not in tree.nodes for uuid in progress.created)
        if len(progress.outside) > outside or (
            # A creation demands no generation, so a slow sync may create the provider
            # of a device that is gone. The next attempt empties it.
            has_created and reader.list_rows(hostname) != tree.rows
        ):
            raise PlacementConflict(provider=tree.root_uuid)
        if not is_rehearsal:
            self._record(tree, plan)
        writer.apply(plan.updates)
        problems = (*plan.problems, *writer.problems)
        if not is_rehearsal:
            self._forget(tree, {problem.uuid for problem in problems}, progress.deleted)
        has_detached = facts.detaches_leftovers
        result = SyncResult(tuple(progress.changes), problems, has_detached)
        return result, writer.error

    def _record(self, tree: HostTree, plan: SyncPlan) -> None:
        """Store names before they are published, and changed conflicts."""
        if plan.new_names:
            self.database.write(providers.record_provider_traits, plan.new_names)
        if plan.new_conflicts:
            self.database.write(device_owners.store_conflicts, plan.new_conflicts)
        names = {row.device_uuid: row.name for row in tree.rows}
        for uuid, reason in plan.new_conflicts.items():
            if reason:
                LOG.warning(
                    'Device %s is withdrawn from Placement (provider %s): %s',
                    uuid,
                    names[uuid],
                    reason,
                )
            else:
                LOG.info(
                    'Device %s is published in Placement again (provider %s): '
                    'no other service manages it',
                    uuid,
                    names[uuid],
                )

    def _forget(
        self, tree: HostTree, failed: Collection[str], deleted: Collection[str]
    ) -> None:
        """Forget traits that Placement no longer has.

        :param failed: uuids of providers that may still have their former traits
        :param deleted: uuids of providers that have been deleted from Placement
        """
        current = {
            provider.uuid: provider.published_names
            for provider in tree.desired
            if provider.former_traits and provider.uuid not in failed
        }
        if current:
            self.database.write(providers.record_provider_traits, current)
        if deleted:
            self.database.write(providers.delete_provider_traits, deleted)


def _log_changes(changes: Iterable[ProviderChange]) -> None:
    descriptions: dict[str, list[str]] = {}  # by name of the provider
    for change in changes:
        descriptions.setdefault(change.name, []).append(change.description)
    for name, texts in descriptions.items():
        LOG.info('Provider %s changed in Placement: %s', name, '; '.join(texts))


def _log_problems(hostname: str, problems: Iterable[ProviderProblem]) -> None:
    for problem in problems:
        # A standing problem is logged when it begins and when it ends.
        if not problem.standing:
            LOG.warning(
                'Provider %s (%s) of host %s not updated in Placement: %s',
                problem.uuid,
                problem.name,
                hostname,
                problem.reason,
            )


@dataclass(frozen=True, slots=True)
class PlacementSyncHandler(EndlessHandler):
    """Runs Placement sync jobs."""

    placement_sync: PlacementSync

    def run(self, job: Job) -> None:
        """Sync the host of the job."""
        payload = queue.read_payload(PlacementSyncPayload, job.payload)
        self.sync(job, SyncMode(deep=payload.deep))

    def sync(self, job: Job, mode: SyncMode) -> SyncResult:
        """Sync the host of the job in a mode, and end the row.

        If the lease is lost meanwhile, another sync of the host follows: the worker
        that has the lease now may have read the providers before this one wrote them.

        :raises CyborgError: as ``PlacementSync.sync``
        :raises JobLost: this process has lost the lease
        """
        hostname = queue.read_payload(PlacementSyncPayload, job.payload).hostname
        self._record(job, operations.record_step, 'comparing-providers')
        # An earlier worker may have sent a write that arrives now.
        mode = replace(mode, fence=mode.fence or job.abandoned)
        try:
            result = self.placement_sync.sync(hostname, mode)
            self._record(job, operations.record_result, result.describe())
            if result.has_detached:
                self.database.write(queue.add_removal_job, hostname)
            self.database.write(queue.finish_job, job)
        except Exception:
            if not self.database.read(queue.is_leased, job):
                self.database.write(queue.add_job, queue.placement_sync_job(hostname))
            raise
        return result

    # Any: the arguments of the function.
    def _record(self, job: Job, record: Callable[..., None], value: Any) -> None:
        """Store what clients read of the operations of the job; most have none."""
        if job.operations:
            self.database.write(record, job.operations, value)
