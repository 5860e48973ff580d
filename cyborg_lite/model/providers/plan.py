# SPDX-License-Identifier: Apache-2.0
"""The plan of a Placement sync, computed from the providers and rows of a host."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from cyborg_lite.model.providers.changes import (
    CreateProvider,
    DeleteProvider,
    MoveProvider,
    Operation,
    ProviderProblem,
    SetTraits,
    close_provider,
    diff_provider,
    has_name_conflict,
    list_leftover_providers,
    list_removal_operations,
)
from cyborg_lite.model.providers.providers import (
    ActualProvider,
    DesiredProvider,
    ProviderRow,
    TreeNode,
    build_root,
    build_tree,
)
from cyborg_lite.model.traits import OWNER_CYBORG


@dataclass(frozen=True, slots=True)
class HostTree:
    """The providers of a host in Placement, and the rows that were read after them."""

    hostname: str
    root_uuid: str
    nodes: Mapping[str, TreeNode]  # by uuid; also desired providers in other trees
    rows: tuple[ProviderRow, ...]
    desired: tuple[DesiredProvider, ...]
    leftovers: tuple[TreeNode, ...]  # of removed devices, children first
    foreign: tuple[TreeNode, ...]  # of other services, in the tree of the host


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The state of the providers that a sync may change."""

    actual: Mapping[str, ActualProvider]  # by uuid
    conflicts: Mapping[str, str]  # by uuid of the device: why another service has it
    obstacles: Mapping[str, str]  # by uuid of a misplaced provider
    published: Mapping[str, Collection[str]]  # by uuid of a leftover: traits set on it
    deletes_leftovers: bool  # nova-compute cannot have cached them
    owns_root: bool
    # The host was removed: leftovers leave its tree, and are deleted later.
    detaches_leftovers: bool = False


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """The operations that make the providers of a host match the database."""

    creations: tuple[Operation, ...]  # also the deletions that free their names
    updates: tuple[Operation, ...]
    problems: tuple[ProviderProblem, ...]  # known before any operation
    # Traits and classes of this service, by uuid of the provider. They are recorded
    # before they are published: after a crash, a later sync still knows which traits it
    # may remove.
    new_names: Mapping[str, frozenset[str]]
    # By uuid of the device: why another service has it; empty: the conflict has ended.
    new_conflicts: Mapping[str, str]


def build_host_tree(
    hostname: str,
    root_uuid: str,
    tree: Iterable[TreeNode],
    rows: tuple[ProviderRow, ...],
    owned: Collection[str],
) -> HostTree:
    """Sort the providers of a host by what becomes of them.

    :param tree: the tree of the root, and desired providers in the trees of other roots
    :param owned: uuids of the providers that this service has created
    """
    nodes = {node.uuid: node for node in tree}
    desired = tuple(build_tree(root_uuid, rows))
    desired_uuids = {root_uuid, *(provider.uuid for provider in desired)}
    foreign = tuple(
        node
        for node in nodes.values()
        if node.uuid not in desired_uuids and node.uuid not in owned
    )
    leftovers = list_leftover_providers(hostname, desired, nodes.values(), owned)
    return HostTree(hostname, root_uuid, nodes, rows, desired, leftovers, foreign)


def plan_sync(tree: HostTree, facts: HostFacts, *, fence: bool = False) -> SyncPlan:
    """Return the fewest operations that make the providers match the rows.

    :param fence: write unchanged providers as well, see ``diff_provider``
    """
    reasons = {
        row.rp_uuid: facts.conflicts.get(row.device_uuid, row.contested)
        for row in tree.rows
    }
    first, last = _plan_root(tree, facts)
    creations: list[Operation] = []
    updates: list[Operation] = []
    problems: list[ProviderProblem] = []
    for desired in tree.desired:
        uuid, reason = desired.uuid, reasons[desired.uuid]
        actual = facts.actual.get(uuid)
        if reason:
            problem = ProviderProblem(uuid, desired.name, reason, standing=True)
            problems.append(problem)
            if actual is not None and OWNER_CYBORG in actual.traits:
                updates.append(DeleteProvider(uuid, close_provider(actual, '')))
            continue
        obstacle = facts.obstacles.get(uuid, '')
        diff = diff_provider(desired, actual, tree.foreign, obstacle, fence=fence)
        if diff.problem is not None:
            problems.append(diff.problem)
        for operation in diff.operations:
            is_creation = isinstance(operation, CreateProvider)
            (creations if is_creation else updates).append(operation)
    names = [item.name for item in creations if isinstance(item, CreateProvider)]
    freed, removed = _plan_removals(tree, facts, names, fence=fence)
    return SyncPlan(
        creations=(*first, *freed, *creations),
        updates=(*removed, *updates, *last),
        problems=tuple(problems),
        new_names=_list_new_names(
            tree, [item for item in tree.desired if not reasons[item.uuid]]
        ),
        new_conflicts={
            row.device_uuid: facts.conflicts.get(row.device_uuid, '')
            for row in tree.rows
            if row.conflict != facts.conflicts.get(row.device_uuid, '')
        },
    )


def _list_new_names(
    tree: HostTree, published: Iterable[DesiredProvider]
) -> Mapping[str, frozenset[str]]:
    recorded = {row.rp_uuid: frozenset(row.published_traits or ()) for row in tree.rows}
    return {
        provider.uuid: recorded[provider.uuid] | provider.published_names
        for provider in published
        if not provider.published_names <= recorded[provider.uuid]
    }


def _plan_removals(
    tree: HostTree, facts: HostFacts, new_names: Collection[str], *, fence: bool
) -> tuple[list[Operation], list[Operation]]:
    """Return the deletions that free new names, and the other removals."""
    freed: list[Operation] = []
    removed: list[Operation] = []
    foreign_names = [node.name for node in tree.foreign]
    for node in tree.leftovers:
        actual = facts.actual[node.uuid]
        deletion = DeleteProvider(node.uuid, close_provider(actual, fence=fence))
        if has_name_conflict(node, new_names):
            freed.append(deletion)
        elif facts.deletes_leftovers or has_name_conflict(node, foreign_names):
            removed.append(deletion)
        else:
            published = facts.published.get(node.uuid, ())
            removed += list_removal_operations(actual, published, fence=fence)
            if facts.detaches_leftovers:
                removed.append(MoveProvider(node.uuid, node.name, None))
    return freed, removed


def _plan_root(
    tree: HostTree, facts: HostFacts
) -> tuple[tuple[Operation, ...], tuple[Operation, ...]]:
    """Return the operations on an own root before and after all others.

    Its inventories and its other traits stay.
    """
    if not facts.owns_root:
        return (), ()
    uuid, root = tree.root_uuid, build_root(tree.hostname)
    actual = facts.actual.get(uuid)
    if actual is None:
        create = CreateProvider(uuid, root.name, None)
        return (create,), (SetTraits(uuid, root.traits),)
    if not tree.rows:
        children = frozenset(node.uuid for node in tree.leftovers)
        if tree.nodes.keys() - children - {uuid}:
            return (), ()
        return (), (DeleteProvider(uuid, close_provider(actual), children),)
    move = MoveProvider(uuid, root.name, None)
    own = SetTraits(uuid, actual.traits | root.traits)
    return (
        () if actual.node.name == root.name else (move,),
        () if actual.traits >= root.traits else (own,),
    )
