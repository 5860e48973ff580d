# SPDX-License-Identifier: Apache-2.0
"""Compares the prepared handles with those of the conductor.

A handle can stay prepared although its ARQ is gone: an operator cancelled its release,
or the database was restored from a backup. The agent releases such a handle as soon as
the conductor knows that no instance uses it. An agent that has lost its state does not
know handles that are prepared. It stores them again.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from oslo_log import log

from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import HostHandle
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.interface import Conductor

LOG = log.getLogger(__name__)

# Seconds between two comparisons without a new report.
_INTERVAL: Final = 600.0
_INTERVAL_OF_RELEASES: Final = 30.0  # after an answer with handles to release


class Reconciliation:
    """Asks the conductor at the start, with each host report and periodically."""

    def __init__(
        self,
        hostname: str,
        cache: Cache,
        release: Callable[[Sequence[AllocatedHandle]], None],
        adopt: Callable[[Sequence[AllocatedHandle]], None],
    ) -> None:
        self._hostname = hostname
        self._cache = cache
        # Releases handles later, in another thread: a driver may hang.
        self._release = release
        self._adopt = adopt  # stores prepared handles, likewise
        self._due = 0.0  # by the monotonic clock; the first is due at once
        # The conductor may believe that the host has prepared handles.
        self._must_compare = True

    def request(self) -> None:
        """Compare with the next call: a host report was sent."""
        self._due = 0.0
        self._must_compare = True

    def reconcile(self, conductor: Conductor) -> None:
        """Compare the handles if that is due.

        :raises CyborgError: the conductor does not answer; retry later
        """
        if time.monotonic() < self._due:
            return
        interval = _INTERVAL
        handles = {uuid: entry.handle for uuid, entry in self._cache.handles.items()}
        if handles or self._must_compare:
            interval = self._compare(conductor, handles)
            self._must_compare = bool(handles)
        self._due = time.monotonic() + interval

    def _compare(
        self, conductor: Conductor, handles: Mapping[str, AllocatedHandle]
    ) -> float:
        """Compare the handles; return the seconds until the next comparison."""
        context = daemon_context()
        prepared = [HostHandle.describe(handle) for handle in handles.values()]
        comparison = conductor.reconcile_handles(context, self._hostname, prepared)
        uuids = comparison.abandoned
        if comparison.unmentioned:
            self._adopt(comparison.unmentioned)
        self._release_abandoned([handles[u] for u in uuids if u in handles])
        if not handles.keys() <= self._cache.handles.keys():
            # A release ended meanwhile, so the conductor saw an outdated list.
            return 0.0
        return _INTERVAL_OF_RELEASES if uuids else _INTERVAL

    def _release_abandoned(self, handles: Sequence[AllocatedHandle]) -> None:
        for handle in handles:
            LOG.warning(
                'Releasing handle %s: ARQ %s does not own it any more',
                handle.key,
                handle.arq_uuid,
            )
        if handles:
            self._release(handles)
