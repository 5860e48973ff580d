# SPDX-License-Identifier: Apache-2.0
"""After a boot of the host: makes again what guests were given, and tells the outcome.

A boot takes every mdev and every virtual function with it, and guests that start
again expect them under the same names. Nobody is needed for this but the agent.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from oslo_log import log

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.journal import Journal, News
from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.host_events import HostEventKind
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import of_daemon

LOG = log.getLogger(__name__)

_PAUSE: Final = 1.0  # seconds between two attempts
_CARDS_AT_ONCE: Final = 8


class Recovery:
    """Once at each start of the agent; where nothing was lost it costs nothing."""

    def __init__(
        self,
        discovery: Discovery,
        preparation: Preparation,
        cache: Cache,
        journal: Journal,
        patience: float,
    ) -> None:
        """:param patience: seconds that vendor drivers get to come up"""
        self._discovery = discovery
        self._preparation = preparation
        self._cache = cache
        self._journal = journal
        self._patience = patience
        self._lost: dict[str, str] = {}  # why, by uuid of the handle
        # Of what the conductor asks for, by the monotonic clock; None: it does not.
        self._deadline: float | None = None

    def rebuild(self, stopping: threading.Event, pause: float = _PAUSE) -> bool:
        """Return when all is there again, or will not be, or the agent is to end.

        False: nothing was to be done.
        """
        missing = self._missing()
        if missing:
            LOG.info('%d handles are to be rebuilt on this host.', len(missing))
            self._until_done(stopping, pause)
        return bool(missing)

    def tell(self, conductor: ConductorAPI) -> bool:
        """Have the requests follow. False: there is more to tell, soon.

        What the conductor knows of and our cache does not is rebuilt, too: the cache
        may have been lost with the disk.

        :raises CyborgError: the conductor is not told; to be tried again
        """
        host, kept = self._discovery.host, self._cache.kept
        lost = {uuid: why for uuid, why in self._lost.items() if uuid in kept}
        ready = self._ready()
        wanted = conductor.report_recovery(
            of_daemon(), host.name, host.boot_id, rebuilt=ready, lost=lost
        )
        missing = [one for one in wanted if one.uuid not in {*lost, *ready}]
        if not missing:
            self._deadline = None
            return True
        if self._deadline is None:
            self._deadline = time.monotonic() + self._patience
            LOG.warning('%d handles are not known here; rebuilding.', len(missing))
        self._cache.intend(missing)
        failures = self._attempt(missing)
        if time.monotonic() >= self._deadline:
            self._give_up(missing, failures)
        return False

    def _missing(self) -> Sequence[HeldHandle]:
        boot_id = self._discovery.host.boot_id
        return [
            kept.handle
            for kept in self._cache.kept.values()
            if kept.boot_id != boot_id and kept.handle.uuid not in self._lost
        ]

    def _ready(self) -> list[str]:
        boot_id = self._discovery.host.boot_id
        kept = self._cache.kept.items()
        return [uuid for uuid, one in kept if one.boot_id == boot_id]

    def _until_done(self, stopping: threading.Event, pause: float) -> None:
        deadline = time.monotonic() + self._patience
        while missing := self._missing():
            failures = self._attempt(missing)
            if failures and time.monotonic() >= deadline:
                self._give_up(missing, failures)
                return
            if failures and stopping.wait(pause):
                return
            if failures:
                # A card whose driver comes up only now is seen by another look.
                self._discovery.look()

    def _attempt(self, handles: Iterable[HeldHandle]) -> Mapping[str, str]:
        """Why some could not be rebuilt; cards do not wait for one another."""
        cards: dict[str, list[HeldHandle]] = defaultdict(list)
        for handle in handles:
            cards[handle.address].append(handle)
        failures: dict[str, str] = {}
        with ThreadPoolExecutor(_CARDS_AT_ONCE, 'rebuild') as pool:
            for failed in pool.map(self._attempt_card, cards.values()):
                failures |= failed
        return failures

    def _attempt_card(self, handles: Sequence[HeldHandle]) -> Mapping[str, str]:
        failures = {}
        for handle in handles:
            try:
                self._preparation.rebuild(handle)
            except CyborgError as error:
                LOG.debug('%s is not rebuilt yet: %s', handle.key, error.text)
                failures[handle.uuid] = error.text
            except Exception:
                # A mistake in one driver must not cost others their devices.
                LOG.exception('%s is not rebuilt.', handle.key)
                failures[handle.uuid] = 'The driver failed; see its log.'
        return failures

    def _give_up(
        self, handles: Iterable[HeldHandle], failures: Mapping[str, str]
    ) -> None:
        news = []
        for handle in handles:
            reason = failures.get(handle.uuid)
            if reason is None:
                continue
            LOG.error('%s cannot be rebuilt: %s', handle.key, reason)
            self._lost[handle.uuid] = reason
            kind = HostEventKind.NOT_REBUILT
            news.append(News(kind, handle.address, handle.arq_uuid, reason))
        self._journal.note(news)
