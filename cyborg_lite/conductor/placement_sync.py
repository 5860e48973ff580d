# SPDX-License-Identifier: Apache-2.0
"""Brings Placement in line with what the database says of a host, in few calls."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from oslo_log import log

from cyborg_lite.clients.placement import Placement
from cyborg_lite.clients.placement_rehearsal import PlacementRehearsal
from cyborg_lite.conductor.provider_memory import ProviderMemory
from cyborg_lite.conductor.provider_records import ProviderRecords
from cyborg_lite.conductor.provider_work import ProviderWork
from cyborg_lite.db import jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import ComputeNodeAbsent, PlacementConflict
from cyborg_lite.model import ownership
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.provider_changes import Change, Problem, leftovers
from cyborg_lite.model.providers import (
    OWNER,
    ProviderRow,
    TreeNode,
    own_root,
    wanted_tree,
)

LOG = log.getLogger(__name__)

_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a sync changed, and what it left for an operator."""

    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()


class PlacementSync:
    """Two reads show that nothing changed: whose generation stands still is known."""

    def __init__(
        self,
        database: Database,
        placement: Placement,
        without_compute: Collection[str] = (),
    ) -> None:
        """:param without_compute: names, with ``*`` and ``?``, of hosts that are no
        compute nodes; each gets a root provider of its own
        """
        self._database = database
        self._placement = placement
        self._without_compute = without_compute
        self._memory = ProviderMemory()

    def sync(self, hostname: str, *, deep: bool = False) -> SyncResult:
        """Make the providers of a host what they should be.

        ``deep``: whatever was remembered of them, read them all.

        :raises ComputeNodeAbsent: the host has no provider of its own (yet)
        :raises PlacementConflict: others kept changing the same providers
        :raises ServiceUnavailable: Placement is away
        :raises RemoteError: Placement refuses, e.g. a name that it does not know
        """
        work = ProviderWork(self._placement, self._memory)
        records = ProviderRecords(self._database)
        self._pass(hostname, self._placement, records, work).run(deep)
        _say(hostname, work)
        if work.refusal is not None:
            # Perhaps a trait or class that we remember has been deleted.
            self._placement.forget()
            raise work.refusal
        return SyncResult(tuple(work.changes), tuple(work.problems))

    def rehearse(self, hostname: str) -> SyncResult:
        """What a deep sync would do; nothing is changed, in Placement or with us.

        :raises CyborgError: as ``sync``
        """
        placement = PlacementRehearsal(self._placement)
        work = ProviderWork(placement, ProviderMemory())
        records = ProviderRecords(self._database, writable=False)
        self._pass(hostname, placement, records, work).run(deep=True)
        return SyncResult(tuple(work.changes), tuple(work.problems))

    def _pass(
        self,
        hostname: str,
        placement: Placement,
        records: ProviderRecords,
        work: ProviderWork,
    ) -> '_HostSync':
        own = any(fnmatchcase(hostname, each) for each in self._without_compute)
        kind = _RootedSync if own else _HostSync
        return kind(hostname, placement, records, work)


class _HostSync:
    """One pass over one host, begun again while others change what it reads."""

    def __init__(
        self,
        hostname: str,
        placement: Placement,
        records: ProviderRecords,
        work: ProviderWork,
    ) -> None:
        self._hostname = hostname
        self._placement = placement
        self._records = records
        self._work = work

    def run(self, deep: bool) -> None:
        for _ in range(_TRIES - 1):
            try:
                self._once(deep)
                return
            except PlacementConflict as error:
                LOG.debug('Read again: %s', error)
        self._once(deep)

    def _once(self, deep: bool) -> None:
        root = self._placement.provider_named(self._hostname)
        tree: tuple[TreeNode, ...] = ()
        if root is not None:
            tree = self._placement.tree(root.uuid)
        # After the tree: what is older than that has no say any more.
        rows = self._records.rows(self._hostname)
        if root is not None:
            if deep:
                self._work.doubt(tree)
            self._align(root, tree, rows)
        elif rows:
            self._begin_without_root(rows)

    def _begin_without_root(self, rows: Collection[ProviderRow]) -> None:
        raise ComputeNodeAbsent(host=self._hostname)

    def _align(
        self, root: TreeNode, tree: Collection[TreeNode], rows: Collection[ProviderRow]
    ) -> None:
        wanted = wanted_tree(root.uuid, rows)
        kept = {root.uuid, *(provider.uuid for provider in wanted)}
        others = [node for node in tree if node.uuid not in kept]
        owned = self._owned(root, others)
        strangers = [node for node in others if node.uuid not in owned]
        self._work.begin(strangers)
        conflicts = self._conflicts(root, rows, strangers)
        offered = [one for one in wanted if one.uuid not in conflicts]
        self._records.tell(rows, offered)
        for node in leftovers(self._hostname, wanted, tree, owned):
            self._work.remove(node)
        nodes = {node.uuid: node for node in tree}
        for provider in wanted:
            found = nodes.get(provider.uuid)
            if provider.uuid in conflicts:
                self._work.withdraw(provider, found, conflicts[provider.uuid])
            else:
                self._work.mend(provider, found)
        left = {problem.uuid for problem in self._work.problems}
        done = [provider for provider in wanted if provider.uuid not in left]
        self._records.settle(done, self._work.gone)

    def _owned(self, root: TreeNode, others: Iterable[TreeNode]) -> frozenset[str]:
        """Which of the others are ours, left over; asked only where one may be."""
        if not any(node.name.startswith(f'{root.name}_') for node in others):
            return frozenset()
        return frozenset(node.uuid for node in self._placement.tree(root.uuid, OWNER))

    def _conflicts(
        self,
        root: TreeNode,
        rows: Collection[ProviderRow],
        strangers: Iterable[TreeNode],
    ) -> Mapping[str, str]:
        """By uuid of the provider: who else manages its device, and where it shows."""
        claims = ownership.claimed_addresses(root.name, strangers)
        reasons: dict[str, str] = {}
        if claims:
            addresses = self._records.addresses(self._hostname)
            for row in rows:
                of_device = addresses.get(row.device_uuid, frozenset())
                holder = ownership.claimant(of_device, claims)
                if holder is not None:
                    seen = self._work.read(holder)
                    reasons[row.device_uuid] = ownership.conflict(seen, row.driver)
        self._records.mark(rows, reasons)
        found = {
            row.rp_uuid: reasons.get(row.device_uuid, row.contested) for row in rows
        }
        return {uuid: reason for uuid, reason in found.items() if reason}


class _RootedSync(_HostSync):
    """Of a host that is no compute node; the root is ours, too, unless Nova has one."""

    def _begin_without_root(self, rows: Collection[ProviderRow]) -> None:
        root = self._work.root(own_root(self._hostname))
        self._align(root, self._placement.tree(root.uuid), rows)

    def _align(
        self, root: TreeNode, tree: Collection[TreeNode], rows: Collection[ProviderRow]
    ) -> None:
        super()._align(root, tree, rows)
        if root.uuid != own_root(self._hostname).uuid:
            return
        if rows:
            self._work.claim(root)
        elif not {node.uuid for node in tree} - {root.uuid, *self._work.gone}:
            self._work.remove(root)


def _say(hostname: str, work: ProviderWork) -> None:
    for problem in work.problems:
        if not problem.standing:
            LOG.warning(
                'Placement, host %s: provider %s (%s) is left as it is: %s',
                hostname,
                problem.name,
                problem.uuid,
                problem.reason,
            )


class PlacementSyncHandler:
    """Its job has no deadline: Placement is to be right however late."""

    def __init__(self, database: Database, sync: PlacementSync) -> None:
        self._database = database
        self._sync = sync

    def run(self, job: Job) -> Job | None:
        self._sync.sync(job.payload['host'], deep=bool(job.payload.get('deep')))
        self._database.write(jobs.finish, job)
        return None

    def expire(self, job: Job, reason: str) -> Job | None:
        """Only by an operator's hand."""
        self._database.write(jobs.give_up, job, reason)
        return None
