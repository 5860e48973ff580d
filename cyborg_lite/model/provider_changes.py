# SPDX-License-Identifier: Apache-2.0
"""What must change in Placement so that a host has the providers that it should have.

Nothing is stored in Placement to tell our providers: one is ours when its uuid is one
that we want, or when it carries ``OWNER_CYBORG`` and its name begins with the host's.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from cyborg_lite.model.providers import (
    OWNER,
    OWNER_NOVA,
    ActualProvider,
    Inventories,
    TreeNode,
    WantedProvider,
)

# Traits that only a program names so: what tells a product, a function or a region of
# one from another. When we do not want one of these any more it is stale, even where
# the record of what we told has been lost. An operator who marks a provider with a
# trait of theirs uses other words.
_GENERATED: Final = re.compile(
    r'CUSTOM_NVIDIA_[0-9A-F]{4}(_[A-Z0-9_]+)?'
    r'|CUSTOM_[A-Z]+_PRODUCT_ID_[0-9A-F]{4,}'
    r'|CUSTOM_FPGA_(FUNCTION_ID|REGION)_[A-Z]+_[0-9A-F]{8,}'
)


@dataclass(frozen=True, slots=True)
class Create:
    provider: WantedProvider


@dataclass(frozen=True, slots=True)
class Place:
    """Give it the name and the parent that it should have."""

    provider: WantedProvider


@dataclass(frozen=True, slots=True)
class SetTraits:
    uuid: str
    traits: frozenset[str]


@dataclass(frozen=True, slots=True)
class SetInventories:
    uuid: str
    inventories: Inventories


Operation: TypeAlias = Create | Place | SetTraits | SetInventories


@dataclass(frozen=True, slots=True)
class Change:
    """What was wrong with a provider, said by what was done about it."""

    uuid: str
    name: str
    what: str

    def __str__(self) -> str:
        return f'{self.name}: {self.what}'


@dataclass(frozen=True, slots=True)
class Problem:
    """What a sync leaves as it is, for an operator to decide."""

    uuid: str
    name: str
    reason: str
    standing: bool = False  # it is logged when it begins and ends, not meanwhile


@dataclass(frozen=True, slots=True)
class Difference:
    """What to do about one provider, in this order, and what not to do."""

    operations: tuple[Operation, ...] = ()
    problem: Problem | None = None  # None: all is as we want it, once this is done


def difference(
    wanted: WantedProvider,
    actual: ActualProvider | None,
    strangers: Iterable[TreeNode],
) -> Difference:
    """What makes a provider of ours what we want, with the fewest operations.

    ``actual`` is what has its uuid now; ``strangers`` are the providers of others in
    the tree of the host. Of the traits that it has and that are not wanted, those that
    we told Placement and those that only a driver can have named are removed; others
    are somebody else's, and are kept.
    """
    problem = _in_the_way(wanted, strangers)
    if actual is None:
        return Difference(problem=problem) if problem else Difference(_making(wanted))
    if OWNER_NOVA in actual.traits:
        return Difference(problem=_problem(wanted, f'it carries {OWNER_NOVA}'))
    if actual.node.parent_uuid != wanted.parent_uuid and OWNER not in actual.traits:
        return Difference(problem=misplaced(wanted, actual.node))
    operations = _mending(wanted, actual)
    if problem is not None:
        # It cannot have its name while another one has it.
        operations = tuple(one for one in operations if not isinstance(one, Place))
    return Difference(operations, problem)


def misplaced(wanted: WantedProvider, found: TreeNode) -> Problem:
    return _problem(wanted, f'its parent is {found.parent_uuid}')


def immovable(wanted: WantedProvider, found: TreeNode, reason: str) -> Problem:
    """What is allocated on it, or below it, belongs to where it is."""
    return _problem(
        wanted, f'its parent is {found.parent_uuid}; it is not moved: {reason}'
    )


def taken(wanted: WantedProvider, holder: str) -> Problem:
    return _problem(wanted, f'provider {holder} has its name')


def leftovers(
    hostname: str,
    wanted: Iterable[WantedProvider],
    tree: Collection[TreeNode],
    owned: Collection[str],
) -> tuple[TreeNode, ...]:
    """Those that we made for this host and do not want any more.

    ``owned`` are the uuids in the tree that carry ``OWNER_CYBORG``. Children come
    before their parents, which Placement would not delete otherwise.
    """
    kept = {provider.uuid for provider in wanted}
    nodes = {node.uuid: node for node in tree}
    gone = [
        node
        for node in tree
        if node.uuid in owned
        and node.uuid not in kept
        and node.parent_uuid is not None
        and node.name.startswith(f'{hostname}_')
    ]
    return tuple(sorted(gone, key=lambda node: (-_depth(node, nodes), node.name)))


def _depth(node: TreeNode, nodes: Mapping[str, TreeNode]) -> int:
    parent = nodes.get(node.parent_uuid or '')
    return 0 if parent is None else 1 + _depth(parent, nodes)


def _problem(wanted: WantedProvider, reason: str) -> Problem:
    return Problem(wanted.uuid, wanted.name, reason)


def _in_the_way(
    wanted: WantedProvider, strangers: Iterable[TreeNode]
) -> Problem | None:
    """Another service's provider for the same device, or for the board it is on.

    Nova names its own for a PCI device as we do.
    """
    for node in strangers:
        if wanted.name == node.name or wanted.name.startswith(f'{node.name}_'):
            reason = f'provider {node.uuid} of another service is named {node.name}'
            return _problem(wanted, reason)
    return None


def _making(wanted: WantedProvider) -> tuple[Operation, ...]:
    # Traits first: with its inventory it can be chosen, by what it has and has not.
    first = (Create(wanted), SetTraits(wanted.uuid, wanted.traits))
    if not wanted.inventories:
        return first
    return (*first, SetInventories(wanted.uuid, wanted.inventories))


def _mending(wanted: WantedProvider, actual: ActualProvider) -> tuple[Operation, ...]:
    operations: list[Operation] = []
    is_at = actual.node.name, actual.node.parent_uuid
    if is_at != (wanted.name, wanted.parent_uuid):
        operations.append(Place(wanted))
    foreign = {
        trait
        for trait in actual.traits
        if trait not in wanted.formerly and not _GENERATED.fullmatch(trait)
    }
    traits = wanted.traits | foreign
    if traits != actual.traits:
        operations.append(SetTraits(wanted.uuid, traits))
    if wanted.inventories != actual.inventories:
        operations.append(SetInventories(wanted.uuid, wanted.inventories))
    return tuple(operations)
