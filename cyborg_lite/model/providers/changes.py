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
    ProviderInventory,
    TreeNode,
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
    texts = [
        _format_inventory(name, inventory)
        for name, inventory in sorted(inventories.items())
    ]
    return ', '.join(texts) or 'empty'


def _format_inventory(name: str, inventory: ProviderInventory) -> str:
    ratio = ''
    if inventory.allocation_ratio != 1:
        ratio = f', ratio {inventory.allocation_ratio}'
    return f'{name} {inventory.total} ({inventory.reserved} reserved{ratio})'


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
