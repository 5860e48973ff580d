# SPDX-License-Identifier: Apache-2.0
"""What Placement said of providers, for as long as their generations stand."""

import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from cyborg_lite.model.providers import ActualProvider, TreeNode

_REMEMBERED: Final = 10_000  # providers, of 1 to 2 kB each


class ProviderMemory:
    """Providers as they were last seen; worth something while the generation stands."""

    def __init__(self) -> None:
        self._seen: dict[str, ActualProvider] = {}
        self._lock = threading.Lock()

    def recall(self, node: TreeNode) -> ActualProvider | None:
        with self._lock:
            seen = self._seen.get(node.uuid)
        if seen is None or seen.node.generation != node.generation:
            return None
        # A rename or a move is no new generation.
        return replace(seen, node=node)

    def keep(self, provider: ActualProvider) -> None:
        with self._lock:
            self._seen.pop(provider.node.uuid, None)
            self._seen[provider.node.uuid] = provider
            while len(self._seen) > _REMEMBERED:
                del self._seen[next(iter(self._seen))]

    def drop(self, nodes: Iterable[TreeNode]) -> None:
        """For who doubts that a generation tells all: a database may be restored."""
        with self._lock:
            for node in nodes:
                self._seen.pop(node.uuid, None)
