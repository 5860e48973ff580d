# SPDX-License-Identifier: Apache-2.0
"""Operations that change providers in Placement to their desired state.

This service owns a provider with a desired uuid. It also owns a provider with the trait
``OWNER_CYBORG`` whose name begins with the name of the host.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from cyborg_lite.model.providers.providers import (
    ActualProvider,
    DesiredProvider,
    Inventories,
    ProviderRow,
    TreeNode,
    build_root,
    build_tree,
)
from cyborg_lite.model.traits import EMPTIED, OWNER_CYBORG, OWNER_NOVA

# Names of traits that only this service generates: for a product, a function, a region
# or a selector.
# Such a trait is stale if it is not desired any more, even if the record of published
# traits is lost. Operators name their traits differently.
_GENERATED: Final = re.compile(
    r'CUSTOM_NVIDIA_[0-9A-F]{4}(_[A-Z0-9_]+)?'
    r'|CUSTOM_[A-Z]+_PRODUCT_ID_[0-9A-F]{4,}'
    r'|CUSTOM_FPGA_(FUNCTION_ID|REGION)_[A-Z]+_[0-9A-F]{8,}'
    r'|CUSTOM_CYBORG_SEL_[0-9A-F]{24}'
    r'|CUSTOM_CYBORG_DEGRADED'
)

# Resource classes of the drivers. Those that an operator names are in the record.
_GENERATED_CLASSES: Final = frozenset(
    {'CUSTOM_NIC', 'CUSTOM_NPU', 'CUSTOM_QAT', 'CUSTOM_SSD'}
)


_REMOVED: Final = 'the device is removed, but allocated; its provider is closed'


@dataclass(frozen=True, slots=True)
class CreateProvider:
    """Create a provider."""

    uuid: str
    name: str
    parent_uuid: str | None


@dataclass(frozen=True, slots=True)
class MoveProvider:
    """Set the name and the parent of a provider."""

    uuid: str
    name: str
    parent_uuid: str | None


@dataclass(frozen=True, slots=True)
class SetTraits:
    """Set all traits of a provider."""

    uuid: str
    traits: frozenset[str]


@dataclass(frozen=True, slots=True)
class Closure:
    """A substitute for an operation that allocations prevent."""

    inventories: Inventories | None = None  # None: write nothing
    reason: str = ''  # of the problem; empty: there is none


@dataclass(frozen=True, slots=True)
class SetInventories:
    """Set all inventories of a provider."""

    uuid: str
    inventories: Inventories
    closure: Closure = Closure()


@dataclass(frozen=True, slots=True)
class DeleteProvider:
    """Delete a provider. If it has children, remove its inventories only."""

    uuid: str
    closure: Closure = Closure()
    children: frozenset[str] = frozenset()  # keep the provider if one of them remains


Operation: TypeAlias = (
    CreateProvider | MoveProvider | SetTraits | SetInventories | DeleteProvider
)


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """A difference of a provider, described by the operation that removed it."""

    uuid: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class ProviderProblem:
    """A difference that a sync leaves for the operator to decide."""

    uuid: str
    name: str
    reason: str
    standing: bool = False  # True: it is logged only when it begins and ends


@dataclass(frozen=True, slots=True)
class ProviderDiff:
    """Operations for one provider, in order, and the problem that prevents others."""

    operations: tuple[Operation, ...] = ()
    # None: the operations lead to the desired state.
    problem: ProviderProblem | None = None


def diff_provider(
    desired: DesiredProvider,
    actual: ActualProvider | None,
    foreign: Iterable[TreeNode],
    obstacle: str = '',
    *,
    fence: bool = False,
) -> ProviderDiff:
    """Return the fewest operations that change a provider to its desired state.

    Undesired traits are removed if this service published them, or if only a driver can
    have generated them. All other traits belong to operators and are kept.

    :param actual: provider with the uuid now; None: there is none
    :param foreign: providers of other services in the tree of the host
    :param obstacle: why the provider cannot be moved
    :param fence: write an unchanged provider as well. Its generation grows, so
        Placement rejects a write that an earlier worker has sent.
    """
    problem = _find_foreign_conflict(desired, foreign)
    if actual is None:
        operations = [] if problem else _list_create_operations(desired)
        return ProviderDiff(tuple(operations), problem)
    reason = _find_refusal(desired, actual, obstacle)
    if reason:
        return ProviderDiff(problem=_problem(desired, reason))
    operations = _list_update_operations(desired, actual)
    if problem is not None:
        # The foreign provider has the name, so this provider cannot get it.
        operations = [item for item in operations if not isinstance(item, MoveProvider)]
    elif fence and all(isinstance(item, MoveProvider) for item in operations):
        operations.append(SetInventories(desired.uuid, actual.inventories))
    return ProviderDiff(tuple(operations), problem)


def _find_refusal(
    desired: DesiredProvider, actual: ActualProvider, obstacle: str
) -> str:
    """Return why this service must not change the provider; empty: it may."""
    node = actual.node
    if OWNER_NOVA in actual.traits:
        return f'it has trait {OWNER_NOVA}'
    if node.parent_uuid == desired.parent_uuid:
        return ''
    if OWNER_CYBORG not in actual.traits:
        return f'its parent is {node.parent_uuid}'
    return describe_immovable(node, obstacle) if obstacle else ''


def describe_immovable(node: TreeNode, obstacle: str) -> str:
    """Return the reason of the problem of a misplaced provider that is not moved."""
    return f'its parent is {node.parent_uuid}; it cannot be moved: {obstacle}'


def list_removal_operations(
    actual: ActualProvider, published: Collection[str], *, fence: bool
) -> tuple[Operation, ...]:
    """Return the operations that keep a provider for a device that is removed.

    nova-compute caches the providers of its host. If one of them is deleted, every
    build on the host fails until the cache expires.

    :param published: traits that this service has set
    :param fence: see ``diff_provider``
    """
    uuid = actual.node.uuid
    if is_emptied(actual):
        return (SetInventories(uuid, {}),) if fence else ()
    # The traits of operators survive the absence of the device.
    traits = _list_foreign_traits(actual, published) | {OWNER_CYBORG, EMPTIED}
    emptied = SetInventories(uuid, {}, close_provider(actual, fence=fence))
    return (*([emptied] if actual.inventories else []), SetTraits(uuid, traits))


def close_provider(
    actual: ActualProvider, reason: str = _REMOVED, *, fence: bool = False
) -> Closure:
    """Return the closure that reserves all inventories of a provider."""
    closed = _reserve(actual.inventories)
    is_needed = fence or closed != actual.inventories
    return Closure(closed if is_needed else None, reason)


def describe_change(
    before: ActualProvider | None, after: ActualProvider | None
) -> ProviderChange | None:
    """Return the change by one operation, or None if there is none.

    :param before: None: the provider did not exist
    :param after: None: the provider is deleted
    """
    if before is None or after is None:
        present = before or after
        text = 'created' if before is None else 'deleted'
        return None if present is None else _change(present.node, text)
    node = after.node
    if before.node.parent_uuid != node.parent_uuid:
        return _change(node, f'was below {before.node.parent_uuid}')
    if before.node.name != node.name:
        return _change(node, f'was named {before.node.name}')
    added = [f'+{name}' for name in sorted(after.traits - before.traits)]
    removed = [f'-{name}' for name in sorted(before.traits - after.traits)]
    if added or removed:
        return _change(node, f'traits {" ".join(added + removed)}')
    if before.inventories == after.inventories:
        return None
    was = _format_inventories(before.inventories)
    text = f'inventory {_format_inventories(after.inventories)}, was {was}'
    return _change(node, text)


def _change(node: TreeNode, text: str) -> ProviderChange:
    return ProviderChange(node.uuid, node.name, text)


def _format_inventories(inventories: Inventories) -> str:
    texts = []
    for name, item in sorted(inventories.items()):
        ratio = item.allocation_ratio
        text = '' if ratio == 1 else f', ratio {ratio}'
        texts.append(f'{name} {item.total} ({item.reserved} reserved{text})')
    return ', '.join(texts) or 'empty'


def is_generated_trait(name: str) -> bool:
    """Return whether only a driver can have generated the name of the trait."""
    return _GENERATED.fullmatch(name) is not None


def is_generated_class(name: str) -> bool:
    """Return whether a driver has the resource class without an option for it."""
    return name in _GENERATED_CLASSES


def is_emptied(actual: ActualProvider) -> bool:
    """Return whether the provider is kept for a device that is removed."""
    return EMPTIED in actual.traits and not actual.inventories


def has_name_conflict(node: TreeNode, names: Iterable[str]) -> bool:
    """Return whether a provider has the name of another, or of a deployable below it.

    Case is ignored: Nova writes PCI addresses in upper case, and names are unique in a
    Placement database that ignores case.

    :param names: names of other providers
    """
    name = node.name.lower()
    prefixes = (prefix.lower() for prefix in names)
    return any(name == prefix or name.startswith(f'{prefix}_') for prefix in prefixes)


def list_leftover_providers(
    hostname: str,
    desired: Iterable[DesiredProvider],
    tree: Collection[TreeNode],
    owned: Collection[str],
) -> tuple[TreeNode, ...]:
    """Return the providers of this service on the host that are not desired any more.

    Children come before their parents, because Placement deletes only leaf providers.

    :param owned: uuids in the tree that have the trait ``OWNER_CYBORG``
    """
    desired_uuids = {provider.uuid for provider in desired}
    nodes = {node.uuid: node for node in tree}
    leftovers = [
        node
        for node in tree
        if node.uuid in owned
        and node.uuid not in desired_uuids
        and node.parent_uuid is not None
        and node.name.startswith(f'{hostname}_')
    ]
    return tuple(sorted(leftovers, key=lambda node: (-_depth(node, nodes), node.name)))


def _depth(node: TreeNode, nodes: Mapping[str, TreeNode]) -> int:
    parent = nodes.get(node.parent_uuid or '')
    return 0 if parent is None else 1 + _depth(parent, nodes)


def _problem(desired: DesiredProvider, reason: str) -> ProviderProblem:
    return ProviderProblem(desired.uuid, desired.name, reason)


def _find_foreign_conflict(
    desired: DesiredProvider, foreign: Iterable[TreeNode]
) -> ProviderProblem | None:
    """Return a problem if a foreign provider stands for the same device or its card.

    Nova gives its providers of PCI devices the same names.
    """
    for node in foreign:
        if desired.name == node.name or desired.name.startswith(f'{node.name}_'):
            reason = f'provider {node.uuid} of another service is named {node.name}'
            return _problem(desired, reason)
    return None


def _list_create_operations(desired: DesiredProvider) -> list[Operation]:
    # The traits come first: with an inventory, Placement may choose the provider.
    uuid = desired.uuid
    create = CreateProvider(uuid, desired.name, desired.parent_uuid)
    operations: list[Operation] = [create, SetTraits(uuid, desired.traits)]
    if desired.inventories:
        operations.append(SetInventories(uuid, desired.inventories))
    return operations


def _list_update_operations(
    desired: DesiredProvider, actual: ActualProvider
) -> list[Operation]:
    uuid, name, parent = desired.uuid, desired.name, desired.parent_uuid
    operations: list[Operation] = []
    if (actual.node.name, actual.node.parent_uuid) != (name, parent):
        operations.append(MoveProvider(uuid, name, parent))
    traits = desired.traits | _list_foreign_traits(actual, desired.former_traits)
    if traits != actual.traits:
        operations.append(SetTraits(uuid, traits))
    if desired.inventories != actual.inventories:
        closure = _keep_obsolete(desired, actual)
        operations.append(SetInventories(uuid, desired.inventories, closure))
    return operations


def _keep_obsolete(desired: DesiredProvider, actual: ActualProvider) -> Closure:
    """Return the closure that reserves the resource classes that are not desired."""
    obsolete = {
        name: inventory
        for name, inventory in _reserve(actual.inventories).items()
        if name not in desired.inventories
    }
    if not obsolete:
        return Closure()
    merged = {**obsolete, **desired.inventories}
    classes = ', '.join(sorted(obsolete))
    return Closure(
        None if merged == actual.inventories else merged,
        f'resource class {classes} is obsolete, but allocated',
    )


def _reserve(inventories: Inventories) -> Inventories:
    return {name: inventory.fully_reserved for name, inventory in inventories.items()}


def _list_foreign_traits(
    actual: ActualProvider, published: Collection[str]
) -> frozenset[str]:
    """Return the traits that neither this service nor one of its drivers has set."""
    return frozenset(
        trait
        for trait in actual.traits
        if trait not in published and trait != EMPTIED and not is_generated_trait(trait)
    )


# --- the plan of a sync, from the providers and rows of a host ---


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
