# SPDX-License-Identifier: Apache-2.0
"""Cache of resource providers, validated by their generations."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from cyborg_lite.model.providers.providers import ActualProvider, TreeNode

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
