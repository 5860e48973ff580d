# SPDX-License-Identifier: Apache-2.0
"""Application of a plan to Placement, and its rehearsal."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from cyborg_lite.clients.placement import Placement, ProviderInventories
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.errors.providers import (
    PlacementConflict,
    ProviderExists,
    ProviderInUse,
)
from cyborg_lite.model.providers.changes import (
    CreateProvider,
    DeleteProvider,
    MoveProvider,
    Operation,
    ProviderChange,
    ProviderProblem,
    SetInventories,
    SetTraits,
    describe_change,
    describe_immovable,
)
from cyborg_lite.model.providers.providers import ActualProvider, Inventories, TreeNode

# --- cache of providers, validated by their generations ---


_CAPACITY: Final = 10_000  # providers, 1 to 2 kB each
# Seconds. A generation is not reliable after the database of Placement was restored.
_LIFETIME: Final = 3600.0


class ProviderCache:
    """Providers as last read.

    An entry is valid for an hour while its generation is unchanged.
    """

    def __init__(self, read_clock: Callable[[], float] = time.monotonic) -> None:
        self._read_clock = read_clock  # returns seconds, and never steps back
        # By uuid: the provider, and when it was last read from Placement.
        self._providers: dict[str, tuple[ActualProvider, float]] = {}
        self._lock = threading.Lock()

    def find(self, node: TreeNode) -> ActualProvider | None:
        """Return the cached provider, or None if its generation has changed."""
        with self._lock:
            cached, read_at = self._providers.get(node.uuid, (None, 0.0))
        if cached is None or cached.node.generation != node.generation:
            return None
        if self._read_clock() - read_at > _LIFETIME:
            return None
        # A rename or a move does not change the generation.
        return replace(cached, node=node)

    def store(self, provider: ActualProvider) -> None:
        """Store a provider. The oldest entry is dropped if the cache is full."""
        with self._lock:
            self._providers.pop(provider.node.uuid, None)
            self._providers[provider.node.uuid] = provider, self._read_clock()
            while len(self._providers) > _CAPACITY:
                del self._providers[next(iter(self._providers))]

    def invalidate(self, nodes: Iterable[TreeNode]) -> None:
        """Drop the entries of the providers, whatever their generation.

        A generation is not reliable after the database of Placement was restored.
        """
        with self._lock:
            for node in nodes:
                self._providers.pop(node.uuid, None)


_NOT_ACCEPTABLE: Final = 406  # HTTP status: Placement lacks the microversion
_MAX_FILLED: Final = 50  # providers whose inventories one request sets


@dataclass(slots=True)
class SyncProgress:
    """The effects of a sync so far. A restart of the sync keeps them."""

    changes: list[ProviderChange] = field(default_factory=list)
    created: set[str] = field(default_factory=set)  # uuids of providers
    deleted: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)  # desired, in trees of other roots


class ProviderWriter:
    """Applies the operations of one plan.

    Each write demands the generation that the sync read before the rows of the
    database. A provider that has changed since then raises PlacementConflict, and the
    caller reads providers and rows again.
    """

    def __init__(
        self,
        placement: Placement,
        cache: ProviderCache,
        progress: SyncProgress,
        actual: Mapping[str, ActualProvider],
    ) -> None:
        self._placement = placement
        self._cache = cache
        self._progress = progress
        # actual: the providers of the plan that exist, by uuid.
        self._actual = dict(actual)
        self._stopped: set[str] = set()  # their further operations are skipped
        self.problems: list[ProviderProblem] = []
        self.error: RemoteError | None = None  # Placement rejected a provider

    def apply(self, operations: Iterable[Operation]) -> None:
        """Apply operations in order, and the first inventories of providers last.

        A rejected operation affects no other provider.

        :raises PlacementConflict: another client has changed a provider
        """
        unfilled = []
        for operation in operations:
            if operation.uuid in self._stopped:
                continue
            if (
                isinstance(operation, SetInventories)
                and operation.inventories
                and not self._actual[operation.uuid].inventories
            ):
                unfilled.append(operation)
            else:
                self._apply(operation)
        for start in range(0, len(unfilled), _MAX_FILLED):
            batch = unfilled[start : start + _MAX_FILLED]
            if len(batch) == 1 or not self._fill(batch):
                for item in batch:
                    self._apply(item)

    def _apply(self, operation: Operation) -> None:
        try:
            self._record(operation.uuid, self._send(operation))
        except ProviderExists:
            self._handle_existing(operation)
        except ProviderInUse:
            self._close(operation)
        except RemoteError as error:
            self.error = error
            self._stop(operation, error.text)

    def _record(self, uuid: str, after: ActualProvider | None) -> None:
        """Record the state of a provider after an operation; None: it is deleted."""
        before = self._actual.get(uuid)
        change = describe_change(before, after)
        if change is not None:
            self._progress.changes.append(change)
        if after is None:
            self._progress.deleted.add(uuid)
            return
        if before is None:
            self._progress.created.add(uuid)
        self._actual[uuid] = after
        self._cache.store(after)

    def _stop(self, operation: Operation, reason: str) -> None:
        """Report a problem, and skip the further operations of the provider."""
        self._stopped.add(operation.uuid)
        self._report(operation, reason)

    def _report(self, operation: Operation, reason: str) -> None:
        if isinstance(operation, CreateProvider | MoveProvider):
            name = operation.name
        else:
            name = self._actual[operation.uuid].node.name
        self.problems.append(ProviderProblem(operation.uuid, name, reason))

    # --- requests ---

    def _send(self, operation: Operation) -> ActualProvider | None:
        """Send an operation to Placement.

        :returns: the provider afterwards; None: it is deleted
        """
        if isinstance(operation, CreateProvider):
            return ActualProvider(self._create(operation), {}, frozenset())
        before = self._actual[operation.uuid]
        match operation:
            case MoveProvider():
                return replace(before, node=self._move(before.node, operation))
            case SetTraits():
                return self._set_traits(before, operation.traits)
            case SetInventories():
                return self._set_inventories(before, operation.inventories)
            case DeleteProvider():
                return self._delete(before, operation)

    def _create(self, operation: CreateProvider) -> TreeNode:
        return self._placement.create_provider(
            operation.uuid, operation.name, operation.parent_uuid
        )

    def _move(self, node: TreeNode, operation: MoveProvider) -> TreeNode:
        if node.parent_uuid == operation.parent_uuid:
            return self._placement.rename_provider(node, operation.name)
        try:
            return self._placement.move_provider(
                node, operation.name, operation.parent_uuid
            )
        except RemoteError as error:
            if error.kwargs['status'] != _NOT_ACCEPTABLE:
                raise
            reason = 'this Placement does not support microversion 1.37'
            self._stop(operation, describe_immovable(node, reason))
            return node

    def _set_traits(
        self, before: ActualProvider, traits: frozenset[str]
    ) -> ActualProvider:
        node = before.node
        self._placement.create_custom_names((), traits)
        result = self._placement.set_traits(node.uuid, node.generation, traits)
        node = replace(node, generation=result.generation)
        return replace(before, node=node, traits=result.traits)

    def _set_inventories(
        self, before: ActualProvider, inventories: Inventories
    ) -> ActualProvider:
        node = before.node
        self._placement.create_custom_names(inventories, ())
        result = self._placement.set_inventories(
            node.uuid, node.generation, inventories
        )
        node = replace(node, generation=result.generation)
        return replace(before, node=node, inventories=result.inventories)

    def _delete(
        self, before: ActualProvider, operation: DeleteProvider
    ) -> ActualProvider | None:
        if not operation.children <= self._progress.deleted:
            return before
        # A DELETE demands no generation, so a write with one precedes it.
        emptied = self._set_inventories(before, {})
        try:
            self._remove(operation.uuid)
        except ProviderInUse:  # It has children.
            if operation.closure.reason:
                self._stop(operation, operation.closure.reason)
            return emptied
        return None

    def _remove(self, uuid: str) -> None:
        self._placement.delete_provider(uuid)

    def _fill(self, operations: Sequence[SetInventories]) -> bool:
        """Set the inventories of several providers; return False if none is changed."""
        for operation in operations:
            self._placement.create_custom_names(operation.inventories, ())
        targets = {
            operation.uuid: ProviderInventories(
                self._actual[operation.uuid].node.generation, operation.inventories
            )
            for operation in operations
        }
        generations = self._placement.fill_providers(targets)
        if generations is None:
            return False
        for uuid, target in targets.items():
            before = self._actual[uuid]
            node = replace(before.node, generation=generations[uuid])
            self._record(
                uuid, replace(before, node=node, inventories=target.inventories)
            )
        return True

    # --- refused operations ---

    def _close(self, operation: Operation) -> None:
        """Reserve inventories that allocations keep from being removed."""
        if not isinstance(operation, SetInventories | DeleteProvider):
            return
        closure = operation.closure
        if closure.reason:
            self._stop(operation, closure.reason)
        if closure.inventories is not None:
            closed = SetInventories(operation.uuid, closure.inventories)
            self._record(operation.uuid, self._send(closed))

    def _handle_existing(self, operation: Operation) -> None:
        """Handle a provider with the same uuid or name outside the tree of the host."""
        uuid = operation.uuid
        if isinstance(operation, MoveProvider):
            # The other operations of the provider do not need the name.
            namesake = self._placement.find_provider_by_name(operation.name)
            holder = namesake.uuid if namesake else 'unknown'
            self._report(operation, f'provider {holder} has its name')
        if not isinstance(operation, CreateProvider):
            return
        if operation.parent_uuid is None:
            raise PlacementConflict(provider=uuid)
        existing = self._placement.find_provider(uuid)
        if existing is not None and existing.parent_uuid != operation.parent_uuid:
            self._progress.outside.add(uuid)
            self._stopped.add(uuid)
            return
        namesake = None
        if existing is None:
            namesake = self._placement.find_provider_by_name(operation.name)
        if namesake is None:
            raise PlacementConflict(provider=uuid)
        self._stop(operation, f'provider {namesake.uuid} has its name')


class RehearsalWriter(ProviderWriter):
    """Predicts the effects of a plan: reads are real, writes are simulated.

    Refusals because of allocations, children or names of new providers are predicted.
    Name conflicts at a rename or move, and unknown names, are not.
    """

    def _create(self, operation: CreateProvider) -> TreeNode:
        uuid, name, parent = operation.uuid, operation.name, operation.parent_uuid
        if self._placement.find_provider(uuid):
            raise ProviderExists(name=name)
        namesake = self._placement.find_provider_by_name(name)
        if namesake is not None and namesake.uuid not in self._progress.deleted:
            raise ProviderExists(name=name)
        return TreeNode(uuid, name, 0, parent, parent or uuid)

    def _move(self, node: TreeNode, operation: MoveProvider) -> TreeNode:
        return replace(node, name=operation.name, parent_uuid=operation.parent_uuid)

    def _set_traits(
        self, before: ActualProvider, traits: frozenset[str]
    ) -> ActualProvider:
        return replace(before, traits=traits)

    def _set_inventories(
        self, before: ActualProvider, inventories: Inventories
    ) -> ActualProvider:
        uuid = before.node.uuid
        if set(before.inventories) - set(inventories):
            usages = self._placement.get_usages(uuid)
            if any(usages[name] for name in usages if name not in inventories):
                raise ProviderInUse(provider=uuid)
        return replace(before, inventories=inventories)

    def _remove(self, uuid: str) -> None:
        children = {
            node.uuid
            for node in self._placement.list_tree(uuid)
            if node.parent_uuid == uuid
        }
        if children - self._progress.deleted:
            raise ProviderInUse(provider=uuid)

    def _fill(self, operations: Sequence[SetInventories]) -> bool:
        return False
