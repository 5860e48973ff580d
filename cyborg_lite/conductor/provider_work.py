# SPDX-License-Identifier: Apache-2.0
"""Carries out in Placement what a host's providers need, one provider at a time."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from oslo_log import log

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.provider_memory import ProviderMemory
from cyborg_lite.exceptions import (
    PlacementConflict,
    ProviderExists,
    ProviderInUse,
    RemoteError,
)
from cyborg_lite.model.provider_changes import (
    Change,
    Create,
    Operation,
    Place,
    Problem,
    SetInventories,
    SetTraits,
    difference,
    immovable,
    taken,
)
from cyborg_lite.model.providers import (
    OWNER,
    ActualProvider,
    Inventories,
    Inventory,
    TreeNode,
    WantedProvider,
)

LOG = log.getLogger(__name__)

_NOT_ACCEPTABLE: Final = 406  # of HTTP: no such microversion


class ProviderWork:
    """The sync of one host: what it changed, and what it left as it was."""

    def __init__(self, placement: Placement, memory: ProviderMemory) -> None:
        self._placement = placement
        self._memory = memory
        self.changes: list[Change] = []
        self.problems: list[Problem] = []
        self.gone: set[str] = set()  # uuids of those that were deleted
        self.refusal: RemoteError | None = None  # of the last provider that had one
        self._strangers: tuple[TreeNode, ...] = ()

    def begin(self, strangers: Iterable[TreeNode]) -> None:
        """Start over, with a tree just read and the providers of others in it."""
        self._strangers = tuple(strangers)
        self.problems.clear()
        self.refusal = None

    def root(self, wanted: WantedProvider) -> TreeNode:
        """Make the root of a host's providers, or give it back its name.

        :raises PlacementConflict: another one has the name by now
        """
        try:
            found = self._placement.provider(wanted.uuid)
            if found is not None:
                node = self._placement.rename_provider(found, wanted.name)
                self._changed(node, f'was named {found.name}')
                return node
            node = self._placement.create_provider(wanted.uuid, wanted.name, None)
        except ProviderExists:
            raise PlacementConflict(provider=wanted.uuid) from None
        self._changed(node, 'created')
        return self._keep(ActualProvider(node, {}, frozenset())).node

    def claim(self, root: TreeNode) -> None:
        """Mark a root as ours. What else it has is no business of ours."""
        actual = self.read(root)
        if OWNER not in actual.traits:
            self._mark(actual, SetTraits(root.uuid, actual.traits | {OWNER}))

    def doubt(self, nodes: Iterable[TreeNode]) -> None:
        """Read them again, whatever their generation."""
        self._memory.drop(nodes)

    def remove(self, node: TreeNode) -> None:
        """Delete a provider of a device that is gone; close it while it is in use."""
        if not self._deleted(node):
            reason = 'it is not on the host any more, but in use, and closed meanwhile'
            self.problems.append(Problem(node.uuid, node.name, reason))

    def withdraw(
        self, wanted: WantedProvider, node: TreeNode | None, reason: str
    ) -> None:
        """Offer nothing of a device that another service manages as well."""
        if node is not None and OWNER in self.read(node).traits:
            self._deleted(node)
        problem = Problem(wanted.uuid, wanted.name, reason, standing=True)
        self.problems.append(problem)

    def mend(self, wanted: WantedProvider, node: TreeNode | None) -> None:
        """Make one provider what it should be; its refusal is not that of others."""
        try:
            self._carry_out(wanted, None if node is None else self.read(node))
        except RemoteError as error:
            self.problems.append(Problem(wanted.uuid, wanted.name, error.text))
            self.refusal = error

    def read(self, node: TreeNode) -> ActualProvider:
        """All of it; asked for only where it may have changed."""
        known = self._memory.recall(node)
        if known is not None:
            return known
        stocked = self._placement.inventories(node.uuid)
        marked = self._placement.traits(node.uuid)
        if stocked.generation != marked.generation:
            raise PlacementConflict(provider=node.uuid)
        return self._keep(
            ActualProvider(
                replace(node, generation=marked.generation),
                stocked.inventories,
                marked.traits,
            )
        )

    def _carry_out(self, wanted: WantedProvider, actual: ActualProvider | None) -> None:
        change = difference(wanted, actual, self._strangers)
        if change.problem is not None:
            self.problems.append(change.problem)
        for operation in change.operations:
            actual = self._apply(operation, actual)

    def _changed(self, node: TreeNode, what: str) -> None:
        self.changes.append(Change(node.uuid, node.name, what))
        LOG.info('Placement: %s', self.changes[-1])

    def _keep(self, actual: ActualProvider) -> ActualProvider:
        self._memory.keep(actual)
        return actual

    def _apply(
        self, operation: Operation, actual: ActualProvider | None
    ) -> ActualProvider | None:
        """The provider as it is now; None: it is not to be had."""
        if isinstance(operation, Create):
            return self._create(operation.provider)
        if actual is None:
            # It could not be made; the rest is about nothing.
            return None
        if isinstance(operation, Place):
            return self._place(actual, operation.provider)
        if isinstance(operation, SetTraits):
            return self._mark(actual, operation)
        return self._stock_or_close(actual, operation)

    # --- where a provider is ---

    def _create(self, wanted: WantedProvider) -> ActualProvider | None:
        try:
            node = self._placement.create_provider(
                wanted.uuid, wanted.name, wanted.parent_uuid
            )
        except ProviderExists:
            self._look_elsewhere(wanted)
            return None
        self._changed(node, 'created')
        return ActualProvider(node, {}, frozenset())

    def _look_elsewhere(self, wanted: WantedProvider) -> None:
        """What has the uuid or the name, outside the tree of the host.

        :raises PlacementConflict: it was made, or went, since the tree was read
        """
        same = self._placement.provider(wanted.uuid)
        if same is not None and same.parent_uuid != wanted.parent_uuid:
            self._carry_out(wanted, self.read(same))
            return
        holder = None if same else self._placement.provider_named(wanted.name)
        if holder is None:
            raise PlacementConflict(provider=wanted.uuid)
        self.problems.append(taken(wanted, holder.uuid))

    def _place(
        self, actual: ActualProvider, wanted: WantedProvider
    ) -> ActualProvider | None:
        node = actual.node
        try:
            if node.parent_uuid == wanted.parent_uuid:
                placed = self._placement.rename_provider(node, wanted.name)
                self._changed(placed, f'was named {node.name}')
                return self._keep(replace(actual, node=placed))
            return self._move(actual, wanted)
        except ProviderExists:
            holder = self._placement.provider_named(wanted.name)
            self.problems.append(taken(wanted, holder.uuid if holder else 'unknown'))
            return actual

    def _move(
        self, actual: ActualProvider, wanted: WantedProvider
    ) -> ActualProvider | None:
        node = actual.node
        obstacle = self._obstacle(node)
        if obstacle is not None:
            self.problems.append(immovable(wanted, node, obstacle))
            return None
        try:
            placed = self._placement.move_provider(
                node, wanted.name, wanted.parent_uuid
            )
        except RemoteError as error:
            if error.kwargs['status'] != _NOT_ACCEPTABLE:
                raise
            reason = 'this Placement knows no microversion 1.37'
            self.problems.append(immovable(wanted, node, reason))
            return None
        self._changed(placed, f'was below {node.parent_uuid}')
        return self._keep(replace(actual, node=placed))

    def _obstacle(self, node: TreeNode) -> str | None:
        """Why others would suffer if it were moved; None: nobody would."""
        if any(self._placement.usages(node.uuid).values()):
            return 'it is in use'
        if any(one.parent_uuid == node.uuid for one in self._placement.tree(node.uuid)):
            return 'it has providers below it'
        return None

    def _deleted(self, node: TreeNode) -> bool:
        """False: it has allocations, or children; what is left of it is closed."""
        try:
            self._placement.delete_provider(node.uuid)
        except ProviderInUse:
            actual = self.read(node)
            closed = {name: one.closed for name, one in actual.inventories.items()}
            if closed != actual.inventories:
                self._stock(actual, closed)
            return False
        self.gone.add(node.uuid)
        self._changed(node, 'deleted')
        return True

    # --- what a provider has ---

    def _mark(self, actual: ActualProvider, wanted: SetTraits) -> ActualProvider:
        node = actual.node
        self._placement.ensure((), wanted.traits)
        marked = self._placement.set_traits(node.uuid, node.generation, wanted.traits)
        added = [f'+{name}' for name in sorted(marked.traits - actual.traits)]
        removed = [f'-{name}' for name in sorted(actual.traits - marked.traits)]
        self._changed(node, f'traits {" ".join(added + removed)}')
        node = replace(node, generation=marked.generation)
        return self._keep(replace(actual, node=node, traits=marked.traits))

    def _stock(self, actual: ActualProvider, wanted: Inventories) -> ActualProvider:
        node = actual.node
        self._placement.ensure(wanted, ())
        stocked = self._placement.set_inventories(node.uuid, node.generation, wanted)
        before, after = _said(actual.inventories), _said(stocked.inventories)
        self._changed(node, f'inventory {after}, was {before}')
        node = replace(node, generation=stocked.generation)
        return self._keep(replace(actual, node=node, inventories=stocked.inventories))

    def _stock_or_close(
        self, actual: ActualProvider, wanted: SetInventories
    ) -> ActualProvider:
        """A class that is not wanted any more stays, closed, while it is in use."""
        try:
            return self._stock(actual, wanted.inventories)
        except ProviderInUse:
            old = {
                name: one.closed
                for name, one in actual.inventories.items()
                if name not in wanted.inventories
            }
            reason = f'{", ".join(sorted(old))} is not offered any more, but in use'
            node = actual.node
            self.problems.append(Problem(node.uuid, node.name, reason))
            both = {**old, **wanted.inventories}
            return actual if both == actual.inventories else self._stock(actual, both)


def _said(inventories: Inventories) -> str:
    """For people."""
    return ', '.join(map(_one_said, sorted(inventories.items()))) or 'empty'


def _one_said(named: tuple[str, Inventory]) -> str:
    name, one = named
    ratio = '' if one.allocation_ratio == 1 else f', ratio {one.allocation_ratio}'
    return f'{name} {one.total} ({one.reserved} reserved{ratio})'
