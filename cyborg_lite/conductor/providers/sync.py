# SPDX-License-Identifier: Apache-2.0
"""The sync of a host: makes its providers in Placement match the database."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from oslo_log import log

from cyborg_lite.clients.placement import Placement
from cyborg_lite.clients.placement_rehearsal import PlacementRehearsal
from cyborg_lite.conductor.providers.cache import ProviderCache
from cyborg_lite.conductor.providers.operations import ProviderOperations
from cyborg_lite.conductor.providers.records import ProviderRecords
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.providers import ComputeNodeAbsent, PlacementConflict
from cyborg_lite.model.jobs import Job, PlacementSyncPayload
from cyborg_lite.model.ownership import nova_providers
from cyborg_lite.model.providers.changes import (
    ProviderChange,
    ProviderProblem,
    has_name_conflict,
    list_leftover_providers,
)
from cyborg_lite.model.providers.providers import (
    DesiredProvider,
    ProviderRow,
    TreeNode,
    build_root,
    build_tree,
)
from cyborg_lite.model.traits import OWNER_CYBORG

LOG = log.getLogger(__name__)

_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class SyncMode:
    """The extent of a sync."""

    deep: bool = False  # read all providers from Placement, not from the cache
    # Write unchanged providers as well, so that Placement rejects a write that another
    # worker has sent before.
    fence: bool = False
    prune: bool = False  # delete the providers that are kept for removed devices


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The changes of a sync, and the problems that an operator must solve."""

    changes: tuple[ProviderChange, ...] = ()
    problems: tuple[ProviderProblem, ...] = ()


_QUICK: Final = SyncMode()


class PlacementSync:
    """Syncs hosts.

    A sync without changes costs two reads: providers whose generation is unchanged are
    cached.
    """

    def __init__(
        self,
        database: Database,
        placement: Placement,
        without_compute: Collection[str] = (),
    ) -> None:
        """Prepare the sync.

        :param without_compute: patterns, with ``*`` and ``?``, of the names of hosts
            without a compute node. Such a host gets a root provider of its own.
        """
        self._database = database
        self._placement = placement
        self._without_compute = without_compute
        self._cache = ProviderCache()

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
        operations = ProviderOperations(self._placement, self._cache, fence=mode.fence)
        records = ProviderRecords(self._database)
        try:
            self._build(hostname, self._placement, records, operations).run(mode)
        finally:
            _log_changes(operations.changes)
        _log_problems(hostname, operations)
        if operations.last_error is not None:
            # The cause may be a trait or resource class that is cached as existing, and
            # that has been deleted.
            self._placement.invalidate_names()
            raise operations.last_error
        return SyncResult(tuple(operations.changes), tuple(operations.problems))

    def rehearse(self, hostname: str, *, prune: bool = False) -> SyncResult:
        """Return the result of a deep sync without changing Placement or the database.

        :param prune: see ``SyncMode``
        :raises CyborgError: as ``sync``
        """
        placement = PlacementRehearsal(self._placement)
        operations = ProviderOperations(placement, ProviderCache())
        records = ProviderRecords(self._database, writable=False)
        self._build(hostname, placement, records, operations).run(
            SyncMode(deep=True, prune=prune)
        )
        return SyncResult(tuple(operations.changes), tuple(operations.problems))

    def _build(
        self,
        hostname: str,
        placement: Placement,
        records: ProviderRecords,
        operations: ProviderOperations,
    ) -> '_HostSync':
        needs_root = any(
            fnmatchcase(hostname, pattern) for pattern in self._without_compute
        )
        sync_class = _RootedHostSync if needs_root else _HostSync
        return sync_class(hostname, placement, records, operations)


@dataclass(frozen=True, slots=True)
class _Tree:
    """The providers that an attempt has read before the rows."""

    root: TreeNode
    nodes: tuple[TreeNode, ...]  # the tree of the root
    outside: tuple[TreeNode, ...]  # desired providers in the trees of other roots


class _HostSync:
    """The sync of one host. A concurrent change of the providers restarts it."""

    def __init__(
        self,
        hostname: str,
        placement: Placement,
        records: ProviderRecords,
        operations: ProviderOperations,
    ) -> None:
        self._hostname = hostname
        self._placement = placement
        self._records = records
        self._operations = operations

    def run(self, mode: SyncMode) -> None:
        is_deep = mode.deep
        for _ in range(_ATTEMPTS - 1):
            try:
                self._attempt(deep=is_deep, prune=mode.prune)
                return
            except PlacementConflict as error:
                LOG.debug(
                    'Sync of host %s restarted after a conflict: %s',
                    self._hostname,
                    error,
                )
            # What the first attempt has read is recent.
            is_deep = False
        self._attempt(deep=is_deep, prune=mode.prune)

    def _attempt(self, *, deep: bool, prune: bool) -> None:
        self._operations.discard_simulated()
        root = self._placement.find_provider_by_name(self._hostname)
        if root is None:
            if not self._records.list_rows(self._hostname):
                return
            root = self._create_root()
        tree = self._placement.list_tree(root.uuid)
        outside = self._list_outside()
        # The rows are read after the tree. If another sync applies newer rows
        # meanwhile, the generations of the tree are outdated, and Placement rejects the
        # changes of this sync.
        rows = self._records.list_rows(self._hostname)
        if deep:
            self._operations.invalidate_cache((*tree, *outside))
        self._update_tree(_Tree(root, tree, outside), rows, prune=prune)

    def _create_root(self) -> TreeNode:
        raise ComputeNodeAbsent(host=self._hostname)

    def _list_outside(self) -> tuple[TreeNode, ...]:
        """Return the desired providers that an attempt has met in another tree."""
        nodes = map(
            self._placement.find_provider, sorted(self._operations.outside_uuids)
        )
        return tuple(node for node in nodes if node is not None)

    def _update_tree(
        self, tree: '_Tree', rows: Collection[ProviderRow], *, prune: bool
    ) -> None:
        desired = build_tree(tree.root.uuid, rows)
        desired_uuids = {tree.root.uuid, *(provider.uuid for provider in desired)}
        remaining = [node for node in tree.nodes if node.uuid not in desired_uuids]
        owned = self._find_owned(tree.root, remaining)
        foreign = [node for node in remaining if node.uuid not in owned]
        self._operations.begin(foreign)
        conflicts = self._find_conflicts(tree.root, rows, foreign)
        leftovers = list_leftover_providers(self._hostname, desired, tree.nodes, owned)
        published = [provider for provider in desired if provider.uuid not in conflicts]
        nodes = {node.uuid: node for node in (*tree.nodes, *tree.outside)}
        missing = [provider for provider in published if provider.uuid not in nodes]
        if missing:
            nodes |= self._create_missing(missing, leftovers, rows)
        self._records.record_new_traits(rows, published)
        self._remove_leftovers(leftovers, foreign, prune=prune)
        for provider in desired:
            actual = nodes.get(provider.uuid)
            if provider.uuid in conflicts:
                reason = conflicts[provider.uuid]
                self._operations.withdraw_provider(provider, actual, reason)
            else:
                self._operations.update_provider(provider, actual)
        self._operations.fill_created()
        failed = {problem.uuid for problem in self._operations.problems}
        updated = [provider for provider in desired if provider.uuid not in failed]
        self._records.remove_old_traits(updated, self._operations.deleted_uuids)

    def _create_missing(
        self,
        missing: Collection[DesiredProvider],
        leftovers: Iterable[TreeNode],
        rows: Collection[ProviderRow],
    ) -> dict[str, TreeNode]:
        """Create providers without inventories; return them by uuid.

        :raises PlacementConflict: the rows have changed since they were read. A
            creation demands no generation, so a slow sync may create the provider of a
            device that is gone. The next attempt empties it.
        """
        names = [provider.name for provider in missing]
        for node in leftovers:
            if has_name_conflict(node, names):
                self._operations.delete_provider(node)
        created = self._operations.create_providers(missing)
        if created and self._records.list_rows(self._hostname) != rows:
            raise PlacementConflict(provider=created[0].uuid)
        return {node.uuid: node for node in created}

    def _remove_leftovers(
        self,
        leftovers: Collection[TreeNode],
        foreign: Iterable[TreeNode],
        *,
        prune: bool,
    ) -> None:
        """Remove the providers whose devices are removed."""
        if not leftovers:
            return
        names = [node.name for node in foreign]
        deletes_all = prune or self._deletes_leftovers()
        for node in leftovers:
            if node.uuid in self._operations.deleted_uuids:
                continue
            if deletes_all or has_name_conflict(node, names):
                self._operations.delete_provider(node)
            else:
                read_traits = partial(self._records.list_published_traits, node.uuid)
                self._operations.empty_provider(node, read_traits)

    def _deletes_leftovers(self) -> bool:
        """Return whether nova-compute cannot have cached the providers."""
        return not self._records.is_known_host(self._hostname)

    def _find_owned(self, root: TreeNode, nodes: Iterable[TreeNode]) -> frozenset[str]:
        """Return the uuids of providers in the tree that Cyborg has created.

        Placement is queried only if the name of a node starts with the prefix of this
        host, and the node is not cached.
        """
        candidates = [
            node
            for node in nodes
            if node.name.startswith(f'{root.name}_')
            # A creation by this sync precedes the trait.
            and node.uuid not in self._operations.created_uuids
        ]
        cached = [self._operations.find_cached(node) for node in candidates]
        providers = [provider for provider in cached if provider is not None]
        if len(providers) == len(candidates):
            owned = [
                provider.node
                for provider in providers
                if OWNER_CYBORG in provider.traits
            ]
        else:
            owned = list(self._placement.list_tree(root.uuid, OWNER_CYBORG))
        uuids = {node.uuid for node in owned}
        return frozenset(uuids | self._operations.created_uuids)

    def _find_conflicts(
        self,
        root: TreeNode,
        rows: Collection[ProviderRow],
        foreign: Iterable[TreeNode],
    ) -> Mapping[str, str]:
        """Return the providers whose device another service manages as well.

        :returns: by uuid of the provider, a sentence that names the other service and
            its provider
        """
        foreign_by_address = nova_providers.map_foreign_addresses(root.name, foreign)
        reasons: dict[str, str] = {}  # by uuid of the device
        if foreign_by_address:
            functions = self._records.list_device_functions(self._hostname)
            for row in rows:
                addresses = functions.get(row.device_uuid, frozenset())
                node = nova_providers.find_foreign_provider(
                    addresses, foreign_by_address
                )
                if node is not None:
                    provider = self._operations.read(node)
                    reasons[row.device_uuid] = nova_providers.describe_conflict(
                        provider, row.driver
                    )
        self._records.record_conflicts(rows, reasons)
        by_provider = {
            row.rp_uuid: reasons.get(row.device_uuid, row.contested) for row in rows
        }
        return {uuid: reason for uuid, reason in by_provider.items() if reason}


class _RootedHostSync(_HostSync):
    """The sync of a host without a compute node.

    Cyborg owns the root provider, unless Nova has created one for the same host.
    """

    def _create_root(self) -> TreeNode:
        return self._operations.ensure_root(build_root(self._hostname))

    def _update_tree(
        self, tree: '_Tree', rows: Collection[ProviderRow], *, prune: bool
    ) -> None:
        super()._update_tree(tree, rows, prune=prune)
        root = tree.root
        if root.uuid != build_root(self._hostname).uuid:
            return
        deleted = self._operations.deleted_uuids
        if rows:
            self._operations.mark_owned(root)
        elif not {node.uuid for node in tree.nodes} - {root.uuid, *deleted}:
            self._operations.delete_provider(root)

    def _deletes_leftovers(self) -> bool:
        return True


def _log_changes(changes: Iterable[ProviderChange]) -> None:
    """Log the changes of each provider in one line."""
    descriptions: dict[str, list[str]] = {}  # by name of the provider
    for change in changes:
        descriptions.setdefault(change.name, []).append(change.description)
    for name, texts in descriptions.items():
        LOG.info('Provider %s changed in Placement: %s', name, '; '.join(texts))


def _log_problems(hostname: str, operations: ProviderOperations) -> None:
    for problem in operations.problems:
        # A standing problem is logged when it begins and when it ends.
        if not problem.standing:
            LOG.warning(
                'Provider %s (%s) of host %s not updated in Placement: %s',
                problem.uuid,
                problem.name,
                hostname,
                problem.reason,
            )


class PlacementSyncHandler:
    """Runs Placement sync jobs. They have no deadline."""

    def __init__(self, database: Database, sync: PlacementSync) -> None:
        self._database = database
        self._sync = sync

    def run(self, job: Job) -> Job | None:
        """Sync the host of the job."""
        payload = PlacementSyncPayload.from_json(job.payload)
        self.sync(job, SyncMode(deep=payload.deep))
        return None

    def sync(self, job: Job, mode: SyncMode) -> SyncResult:
        """Sync the host of the job in a mode, and end the row.

        If the lease is lost meanwhile, another sync of the host follows: the worker
        that has the lease now may have read the providers before this one wrote them.

        :raises CyborgError: as ``PlacementSync.sync``
        :raises JobLost: this process has lost the lease
        """
        hostname = PlacementSyncPayload.from_json(job.payload).hostname
        # An earlier worker may have sent a write that arrives now.
        mode = replace(mode, fence=mode.fence or job.abandoned)
        try:
            result = self._sync.sync(hostname, mode)
            self._database.write(queue.finish_job, job)
        except Exception:
            if not self._database.read(queue.is_leased, job):
                self._database.write(queue.add_job, queue.placement_sync_job(hostname))
            raise
        return result

    def expire(self, job: Job, reason: str) -> Job | None:
        """Mark the job as failed. Only an operator causes this: it has no deadline."""
        self._database.write(queue.fail_job, job, reason)
        return None
