# SPDX-License-Identifier: Apache-2.0
"""Changes in Placement to the providers of one host, one provider at a time."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Final, TypeAlias

from cyborg_lite.clients.placement import Placement, ProviderInventories
from cyborg_lite.conductor.providers.cache import ProviderCache
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.errors.providers import (
    PlacementConflict,
    ProviderExists,
    ProviderInUse,
)
from cyborg_lite.model.providers.changes import (
    MoveProvider,
    Operation,
    ProviderChange,
    ProviderProblem,
    SetInventories,
    SetTraits,
    diff_provider,
    empty_traits,
    immovable_problem,
    is_emptied,
    name_taken_problem,
)
from cyborg_lite.model.providers.providers import (
    ActualProvider,
    DesiredProvider,
    Inventories,
    ProviderInventory,
    TreeNode,
)
from cyborg_lite.model.traits import OWNER_CYBORG

_NOT_ACCEPTABLE: Final = 406  # HTTP status: Placement lacks the microversion
_MAX_FILLED: Final = 50  # providers whose inventories one request sets

# A new provider with its traits, and the inventories that it lacks.
_Unfilled: TypeAlias = tuple[ActualProvider, SetInventories]


class ProviderOperations:
    """The changes of one sync, and the problems that it leaves.

    Each write demands the generation of a node that the caller read before the rows of
    the database. A provider that has changed since then raises PlacementConflict, and
    the caller reads nodes and rows again.
    """

    def __init__(
        self, placement: Placement, cache: ProviderCache, *, fence: bool = False
    ) -> None:
        """Prepare the operations.

        :param fence: write each provider that needs no change as well. Its generation
            grows, so Placement rejects a write that an earlier worker has sent.
        """
        self._placement = placement
        self._cache = cache
        self._fence = fence
        self.changes: list[ProviderChange] = []
        self.problems: list[ProviderProblem] = []
        self.created_uuids: set[str] = set()
        self.deleted_uuids: set[str] = set()
        self.outside_uuids: set[str] = set()  # desired, but in the tree of another root
        self.last_error: RemoteError | None = None  # Placement rejected a provider
        self._foreign: tuple[TreeNode, ...] = ()
        # By uuid: new providers with traits, and the inventories that they lack.
        self._unfilled: dict[str, _Unfilled] = {}
        # By uuid: why a provider could not be created in this attempt.
        self._creation_problems: dict[str, ProviderProblem] = {}

    def begin(self, foreign: Iterable[TreeNode]) -> None:
        """Start an attempt, with a tree that was just read.

        Problems of earlier attempts are discarded; changes are retained.

        :param foreign: providers of other services in the tree
        """
        self._foreign = tuple(foreign)
        self.problems.clear()
        self.last_error = None
        self._creation_problems.clear()
        self._unfilled.clear()

    def discard_simulated(self) -> None:
        """Discard simulated changes: the tree lacks them, an attempt repeats them."""
        if self._placement.is_simulated:
            self.changes.clear()
            self.created_uuids.clear()
            self.deleted_uuids.clear()

    def ensure_root(self, desired: DesiredProvider) -> TreeNode:
        """Create the root provider of a host, or restore its name.

        :raises PlacementConflict: another provider has taken the name
        """
        try:
            existing = self._placement.find_provider(desired.uuid)
            if existing is not None:
                node = self._placement.rename_provider(existing, desired.name)
                self._record_change(node, f'was named {existing.name}')
                return node
            node = self._placement.create_provider(desired.uuid, desired.name, None)
        except ProviderExists:
            raise PlacementConflict(provider=desired.uuid) from None
        self._record_change(node, 'created')
        return self._store(ActualProvider(node, {}, frozenset())).node

    def mark_owned(self, root: TreeNode) -> None:
        """Add the owner trait to a root. Its other traits and inventories stay."""
        actual = self.read(root)
        if OWNER_CYBORG not in actual.traits:
            self._set_traits(
                actual, SetTraits(root.uuid, actual.traits | {OWNER_CYBORG})
            )

    def invalidate_cache(self, nodes: Iterable[TreeNode]) -> None:
        """Read the providers from Placement again, whatever their generation."""
        self._cache.invalidate(nodes)

    def create_providers(self, desired: Iterable[DesiredProvider]) -> list[TreeNode]:
        """Create providers without inventories, and return them.

        A provider that cannot be created is omitted. ``update_provider`` reports why.

        :raises PlacementConflict: the provider was created or deleted since the tree
            was read, or it is in the tree of another root
        """
        nodes: list[TreeNode] = []
        outside = frozenset(self.outside_uuids)
        for provider in desired:
            if diff_provider(provider, None, self._foreign).problem is not None:
                continue
            try:
                node = self._create(provider)
            except RemoteError as error:
                self.last_error = error
                self._creation_problems[provider.uuid] = ProviderProblem(
                    provider.uuid, provider.name, error.text
                )
                continue
            if node is not None:
                nodes.append(node)
        for uuid in self.outside_uuids - outside:
            # The next attempt reads these providers before the rows.
            raise PlacementConflict(provider=uuid)
        return nodes

    def empty_provider(
        self, node: TreeNode, read_published: Callable[[], Collection[str]]
    ) -> None:
        """Remove the inventory of a removed device, and keep the provider.

        nova-compute caches the providers of its host. If one of them is deleted, every
        build on the host fails until the cache expires.

        :param read_published: returns the traits that this service has set
        """
        actual = self.read(node)
        if is_emptied(actual):
            self._raise_generation(actual, has_written=False)
            return
        emptied = self._empty(actual)
        if emptied is None:
            self._report_removed(node)
            return
        traits = empty_traits(emptied, read_published())
        self._set_traits(emptied, SetTraits(node.uuid, traits))

    def delete_provider(self, node: TreeNode) -> None:
        """Delete the provider of a removed device, or close it if it is in use."""
        if not self._delete(node):
            self._report_removed(node)

    def _report_removed(self, node: TreeNode) -> None:
        reason = 'the device is removed, but allocated; its provider is closed'
        self.problems.append(ProviderProblem(node.uuid, node.name, reason))

    def withdraw_provider(
        self, desired: DesiredProvider, node: TreeNode | None, reason: str
    ) -> None:
        """Delete the provider of a device that another service manages as well.

        :param node: the provider in Placement, if it exists
        """
        if node is not None and OWNER_CYBORG in self.read(node).traits:
            self._delete(node)
        problem = ProviderProblem(desired.uuid, desired.name, reason, standing=True)
        self.problems.append(problem)

    def update_provider(self, desired: DesiredProvider, node: TreeNode | None) -> None:
        """Make one provider as desired. A rejection does not affect other providers.

        A new provider has no inventories until ``fill_created`` sets them.

        :param node: the provider in Placement, if it exists
        """
        try:
            self._apply_diff(desired, None if node is None else self.read(node))
        except RemoteError as error:
            self._report_rejected(desired, error)

    def fill_created(self) -> None:
        """Set the inventories of the new providers, in one request if possible.

        :raises PlacementConflict: a provider changed since it was created
        """
        items = list(self._unfilled.values())
        self._unfilled.clear()
        for start in range(0, len(items), _MAX_FILLED):
            batch = items[start : start + _MAX_FILLED]
            if len(batch) == 1 or not self._fill_at_once(batch):
                self._fill_separately(batch)

    def _fill_at_once(self, items: Collection[_Unfilled]) -> bool:
        """Set the inventories of several providers; return False if none is changed."""
        for _, operation in items:
            self._placement.create_custom_names(operation.inventories, ())
        targets = {
            operation.uuid: ProviderInventories(
                actual.node.generation, operation.inventories
            )
            for actual, operation in items
        }
        generations = self._placement.fill_providers(targets)
        if generations is None:
            return False
        for actual, operation in items:
            self._record_inventories(actual, operation.inventories)
            node = replace(actual.node, generation=generations[operation.uuid])
            self._store(replace(actual, node=node, inventories=operation.inventories))
        return True

    def _fill_separately(self, items: Iterable[_Unfilled]) -> None:
        for actual, operation in items:
            try:
                self._set_inventories_or_close(actual, operation)
            except RemoteError as error:
                self._report_rejected(actual.node, error)

    def _report_rejected(
        self, provider: TreeNode | DesiredProvider, error: RemoteError
    ) -> None:
        self.problems.append(ProviderProblem(provider.uuid, provider.name, error.text))
        self.last_error = error

    def read(self, node: TreeNode) -> ActualProvider:
        """Return a provider with its inventories and traits, from the cache if valid.

        :raises PlacementConflict: the provider changed since the node was read
        """
        cached = self._cache.find(node)
        if cached is not None:
            return cached
        inventories = self._placement.get_inventories(node.uuid)
        traits = self._placement.get_traits(node.uuid)
        if inventories.generation != traits.generation:
            raise PlacementConflict(provider=node.uuid)
        actual = ActualProvider(
            replace(node, generation=traits.generation),
            inventories.inventories,
            traits.traits,
        )
        # The next attempt finds a newer generation in the cache.
        self._store(actual)
        if traits.generation != node.generation:
            # The rows are older than this generation. A write that demands it could
            # replace the result of a newer sync.
            raise PlacementConflict(provider=node.uuid)
        return actual

    def find_cached(self, node: TreeNode) -> ActualProvider | None:
        """Return the provider from the cache, or None if it must be read."""
        return self._cache.find(node)

    def _apply_diff(
        self, desired: DesiredProvider, actual: ActualProvider | None
    ) -> None:
        diff = diff_provider(desired, actual, self._foreign)
        if diff.problem is not None:
            self.problems.append(diff.problem)
        if actual is None:
            problem = self._creation_problems.get(desired.uuid)
            if problem is not None:
                self.problems.append(problem)
            return
        for operation in diff.operations:
            if actual is not None:
                actual = self._apply(operation, actual)
        if actual is not None and diff.problem is None:
            has_written = any(
                not isinstance(operation, MoveProvider) for operation in diff.operations
            )
            self._raise_generation(actual, has_written=has_written)

    def _record_change(self, node: TreeNode, text: str) -> None:
        self.changes.append(ProviderChange(node.uuid, node.name, text))

    def _store(self, actual: ActualProvider) -> ActualProvider:
        self._cache.store(actual)
        return actual

    def _apply(
        self, operation: Operation, actual: ActualProvider
    ) -> ActualProvider | None:
        """Apply one operation.

        :returns: the provider afterwards; None: it cannot be moved
        """
        if isinstance(operation, MoveProvider):
            return self._rename_or_move(actual, operation.provider)
        if isinstance(operation, SetTraits):
            return self._set_traits(actual, operation)
        if isinstance(operation, SetInventories):
            if operation.uuid in self.created_uuids and not actual.inventories:
                self._unfilled[operation.uuid] = actual, operation
                return actual
            return self._set_inventories_or_close(actual, operation)
        return actual  # ``create_providers`` has created it

    def _raise_generation(self, actual: ActualProvider, *, has_written: bool) -> None:
        """Write an unchanged provider if this sync must fence off earlier writes."""
        if not self._fence or has_written:
            return
        node = actual.node
        result = self._placement.set_inventories(
            node.uuid, node.generation, actual.inventories
        )
        node = replace(node, generation=result.generation)
        self._store(replace(actual, node=node))

    # --- position in the tree ---

    def _create(self, desired: DesiredProvider) -> TreeNode | None:
        """Create an empty provider.

        :returns: None: another provider has the name or the uuid
        :raises PlacementConflict: the provider exists already
        """
        try:
            node = self._placement.create_provider(
                desired.uuid, desired.name, desired.parent_uuid
            )
        except ProviderExists:
            self._handle_existing(desired)
            return None
        self.created_uuids.add(node.uuid)
        self._record_change(node, 'created')
        return self._store(ActualProvider(node, {}, frozenset())).node

    def _handle_existing(self, desired: DesiredProvider) -> None:
        """Handle a provider with the same uuid or name outside the tree of the host.

        :raises PlacementConflict: the provider was created or deleted since the tree
            was read
        """
        existing = self._placement.find_provider(desired.uuid)
        if existing is not None and existing.parent_uuid != desired.parent_uuid:
            self.outside_uuids.add(existing.uuid)
            return
        namesake = None
        if existing is None:
            namesake = self._placement.find_provider_by_name(desired.name)
        if namesake is None:
            raise PlacementConflict(provider=desired.uuid)
        problem = name_taken_problem(desired, namesake.uuid)
        self._creation_problems[desired.uuid] = problem

    def _rename_or_move(
        self, actual: ActualProvider, desired: DesiredProvider
    ) -> ActualProvider | None:
        node = actual.node
        try:
            if node.parent_uuid == desired.parent_uuid:
                renamed = self._placement.rename_provider(node, desired.name)
                self._record_change(renamed, f'was named {node.name}')
                return self._store(replace(actual, node=renamed))
            return self._move(actual, desired)
        except ProviderExists:
            namesake = self._placement.find_provider_by_name(desired.name)
            namesake_uuid = namesake.uuid if namesake else 'unknown'
            self.problems.append(name_taken_problem(desired, namesake_uuid))
            return actual

    def _move(
        self, actual: ActualProvider, desired: DesiredProvider
    ) -> ActualProvider | None:
        node = actual.node
        obstacle = self._find_obstacle(node)
        if obstacle is not None:
            self.problems.append(immovable_problem(desired, node, obstacle))
            return None
        try:
            moved = self._placement.move_provider(
                node, desired.name, desired.parent_uuid
            )
        except RemoteError as error:
            if error.kwargs['status'] != _NOT_ACCEPTABLE:
                raise
            reason = 'this Placement does not support microversion 1.37'
            self.problems.append(immovable_problem(desired, node, reason))
            return None
        self._record_change(moved, f'was below {node.parent_uuid}')
        return self._store(replace(actual, node=moved))

    def _find_obstacle(self, node: TreeNode) -> str | None:
        """Return why the provider cannot be moved safely, or None."""
        if any(self._placement.get_usages(node.uuid).values()):
            return 'it has allocations'
        tree = self._placement.list_tree(node.uuid)
        if any(child.parent_uuid == node.uuid for child in tree):
            return 'it has child providers'
        return None

    def _delete(self, node: TreeNode) -> bool:
        """Delete a provider.

        :returns: False if it has allocations, and is closed, or if it has children, and
            is empty
        """
        actual = self.read(node)
        try:
            # A DELETE demands no generation, so a write with one precedes it.
            result = self._placement.set_inventories(node.uuid, node.generation, {})
        except ProviderInUse:
            self._close(actual)
            return False
        try:
            self._placement.delete_provider(node.uuid)
        except ProviderInUse:
            node = replace(node, generation=result.generation)
            if actual.inventories:
                self._record_inventories(actual, {})
            self._store(replace(actual, node=node, inventories={}))
            return False
        self.deleted_uuids.add(node.uuid)
        self._record_change(node, 'deleted')
        return True

    def _empty(self, actual: ActualProvider) -> ActualProvider | None:
        """Remove all inventories; return None if the provider is closed instead."""
        if not actual.inventories:
            return actual
        try:
            return self._set_inventories(actual, {})
        except ProviderInUse:
            self._close(actual)
            return None

    def _close(self, actual: ActualProvider) -> None:
        """Reserve all inventories."""
        closed = {
            name: inventory.fully_reserved
            for name, inventory in actual.inventories.items()
        }
        if closed != actual.inventories:
            self._set_inventories(actual, closed)
        else:
            self._raise_generation(actual, has_written=False)

    # --- traits and inventories ---

    def _set_traits(
        self, actual: ActualProvider, operation: SetTraits
    ) -> ActualProvider:
        node, before = actual.node, actual.traits
        self._placement.create_custom_names((), operation.traits)
        result = self._placement.set_traits(
            node.uuid, node.generation, operation.traits
        )
        added = [f'+{name}' for name in sorted(result.traits - before)]
        removed = [f'-{name}' for name in sorted(before - result.traits)]
        self._record_change(node, f'traits {" ".join(added + removed)}')
        node = replace(node, generation=result.generation)
        return self._store(replace(actual, node=node, traits=result.traits))

    def _set_inventories(
        self, actual: ActualProvider, inventories: Inventories
    ) -> ActualProvider:
        node = actual.node
        self._placement.create_custom_names(inventories, ())
        result = self._placement.set_inventories(
            node.uuid, node.generation, inventories
        )
        self._record_inventories(actual, result.inventories)
        node = replace(node, generation=result.generation)
        return self._store(replace(actual, node=node, inventories=result.inventories))

    def _record_inventories(
        self, actual: ActualProvider, inventories: Inventories
    ) -> None:
        before = _format_inventories(actual.inventories)
        after = _format_inventories(inventories)
        self._record_change(actual.node, f'inventory {after}, was {before}')

    def _set_inventories_or_close(
        self, actual: ActualProvider, operation: SetInventories
    ) -> ActualProvider:
        """Set inventories. Obsolete resource classes in use are closed, not deleted."""
        try:
            return self._set_inventories(actual, operation.inventories)
        except ProviderInUse:
            obsolete = {
                name: inventory.fully_reserved
                for name, inventory in actual.inventories.items()
                if name not in operation.inventories
            }
            classes = ', '.join(sorted(obsolete))
            reason = f'resource class {classes} is obsolete, but allocated'
            node = actual.node
            self.problems.append(ProviderProblem(node.uuid, node.name, reason))
            merged = {**obsolete, **operation.inventories}
            if merged == actual.inventories:
                return actual
            return self._set_inventories(actual, merged)


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
