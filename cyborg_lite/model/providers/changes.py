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
)

# Resource classes of the drivers. Those that an operator names are in the record.
_GENERATED_CLASSES: Final = frozenset(
    {'CUSTOM_NIC', 'CUSTOM_NPU', 'CUSTOM_QAT', 'CUSTOM_SSD'}
)


@dataclass(frozen=True, slots=True)
class CreateProvider:
    """Create a provider."""

    provider: DesiredProvider


@dataclass(frozen=True, slots=True)
class MoveProvider:
    """Set the name and the parent of a provider."""

    provider: DesiredProvider


@dataclass(frozen=True, slots=True)
class SetTraits:
    """Set all traits of a provider."""

    uuid: str
    traits: frozenset[str]


@dataclass(frozen=True, slots=True)
class SetInventories:
    """Set all inventories of a provider."""

    uuid: str
    inventories: Inventories


Operation: TypeAlias = CreateProvider | MoveProvider | SetTraits | SetInventories


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
    problem: ProviderProblem | None = (
        None  # None: the operations lead to the desired state
    )


def diff_provider(
    desired: DesiredProvider,
    actual: ActualProvider | None,
    foreign: Iterable[TreeNode],
) -> ProviderDiff:
    """Return the fewest operations that change a provider to its desired state.

    Undesired traits are removed if this service published them, or if only a driver can
    have generated them. All other traits belong to operators and are kept.

    :param actual: provider with the uuid now; None: there is none
    :param foreign: providers of other services in the tree of the host
    """
    problem = _find_foreign_conflict(desired, foreign)
    if actual is None:
        if problem:
            return ProviderDiff(problem=problem)
        return ProviderDiff(_list_create_operations(desired))
    if OWNER_NOVA in actual.traits:
        return ProviderDiff(problem=_problem(desired, f'it has trait {OWNER_NOVA}'))
    is_misplaced = actual.node.parent_uuid != desired.parent_uuid
    if is_misplaced and OWNER_CYBORG not in actual.traits:
        return ProviderDiff(problem=misplaced_problem(desired, actual.node))
    operations = _list_update_operations(desired, actual)
    if problem is not None:
        # The foreign provider has the name, so this provider cannot get it.
        operations = tuple(
            operation
            for operation in operations
            if not isinstance(operation, MoveProvider)
        )
    return ProviderDiff(operations, problem)


def misplaced_problem(desired: DesiredProvider, node: TreeNode) -> ProviderProblem:
    """Return the problem of a provider with another parent."""
    return _problem(desired, f'its parent is {node.parent_uuid}')


def immovable_problem(
    desired: DesiredProvider, node: TreeNode, reason: str
) -> ProviderProblem:
    """Return the problem of a misplaced provider whose tree has allocations."""
    return _problem(
        desired, f'its parent is {node.parent_uuid}; it cannot be moved: {reason}'
    )


def name_taken_problem(desired: DesiredProvider, holder: str) -> ProviderProblem:
    """Return the problem of a provider whose name another provider has."""
    return _problem(desired, f'provider {holder} has its name')


def is_generated_trait(name: str) -> bool:
    """Return whether only a driver can have generated the name of the trait."""
    return _GENERATED.fullmatch(name) is not None


def is_generated_class(name: str) -> bool:
    """Return whether a driver has the resource class without an option for it."""
    return name in _GENERATED_CLASSES


def is_emptied(actual: ActualProvider) -> bool:
    """Return whether the provider is kept for a device that is removed."""
    return EMPTIED in actual.traits and not actual.inventories


def empty_traits(actual: ActualProvider, published: Collection[str]) -> frozenset[str]:
    """Return the traits of a provider whose device is removed.

    The traits of operators survive the absence of the device.

    :param published: traits that this service has set
    """
    return _list_foreign_traits(actual, published) | {OWNER_CYBORG, EMPTIED}


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


def _list_create_operations(desired: DesiredProvider) -> tuple[Operation, ...]:
    # The traits come first: with an inventory, Placement may choose the provider.
    operations = (CreateProvider(desired), SetTraits(desired.uuid, desired.traits))
    if not desired.inventories:
        return operations
    return (*operations, SetInventories(desired.uuid, desired.inventories))


def _list_update_operations(
    desired: DesiredProvider, actual: ActualProvider
) -> tuple[Operation, ...]:
    operations: list[Operation] = []
    position = actual.node.name, actual.node.parent_uuid
    if position != (desired.name, desired.parent_uuid):
        operations.append(MoveProvider(desired))
    traits = desired.traits | _list_foreign_traits(actual, desired.former_traits)
    if traits != actual.traits:
        operations.append(SetTraits(desired.uuid, traits))
    if desired.inventories != actual.inventories:
        operations.append(SetInventories(desired.uuid, desired.inventories))
    return tuple(operations)


def _list_foreign_traits(
    actual: ActualProvider, published: Collection[str]
) -> frozenset[str]:
    """Return the traits that neither this service nor one of its drivers has set."""
    return frozenset(
        trait
        for trait in actual.traits
        if trait not in published and trait != EMPTIED and not is_generated_trait(trait)
    )
