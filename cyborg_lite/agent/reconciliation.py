# SPDX-License-Identifier: Apache-2.0
"""Compares the prepared handles with those of the conductor.

A handle can stay prepared although its ARQ is gone: an operator cancelled its release,
or the database was restored from a backup. The agent releases such a handle.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from oslo_log import log

from cyborg_lite.agent.cache import Cache
from cyborg_lite.model.devices import AllocatedHandle
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.interface import Conductor

LOG = log.getLogger(__name__)

_INTERVAL: Final = 600.0  # seconds between two comparisons without a new report


class Reconciliation:
    """Asks the conductor at the start, with each host report and periodically."""

    def __init__(
        self,
        hostname: str,
        cache: Cache,
        release: Callable[[Sequence[AllocatedHandle]], None],
    ) -> None:
        """Store the arguments.

        :param release: releases handles later, in another thread: a driver may hang
        """
        self._hostname = hostname
        self._cache = cache
        self._release = release
        self._due = 0.0  # by the monotonic clock; the first is due at once

    def request(self) -> None:
        """Compare with the next call: a host report was sent."""
        self._due = 0.0

    def reconcile(self, conductor: Conductor) -> None:
        """Compare the handles if that is due.

        :raises CyborgError: the conductor does not answer; retry later
        """
        if time.monotonic() < self._due:
            return
        handles = {uuid: entry.handle for uuid, entry in self._cache.handles.items()}
        if handles:
            context = daemon_context()
            uuids = conductor.reconcile_handles(context, self._hostname, list(handles))
            self._release_abandoned([handles[u] for u in uuids if u in handles])
        self._due = time.monotonic() + _INTERVAL

    def _release_abandoned(self, handles: Sequence[AllocatedHandle]) -> None:
        for handle in handles:
            LOG.warning(
                'Releasing handle %s: ARQ %s does not own it any more',
                handle.key,
                handle.arq_uuid,
            )
        if handles:
            self._release(handles)
