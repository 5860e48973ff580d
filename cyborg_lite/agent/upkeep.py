# SPDX-License-Identifier: Apache-2.0
"""Makes again what guests were given and the host has lost without a boot.

A vendor's driver that is unloaded takes its vGPUs and virtual functions with it, and
does not bring them back. Where that cannot be made good it is said, and tried again at
each look at the hardware: the driver may come back.
"""

import threading
from collections.abc import Mapping
from typing import Final

from oslo_log import log

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.journal import Journal, News
from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.host_events import HostEventKind

LOG = log.getLogger(__name__)

_FAILED: Final = 'The driver failed; see its log.'


class Upkeep:
    """A loop of its own: a card that hangs must not keep the others from being seen."""

    def __init__(
        self,
        preparation: Preparation,
        cache: Cache,
        journal: Journal,
        stopping: threading.Event,
    ) -> None:
        self._preparation = preparation
        self._cache = cache
        self._journal = journal
        self._stopping = stopping
        self._bell = threading.Event()
        self._troubles: Mapping[str, str] = {}  # what was told last, by uuid of handle

    def wake(self) -> None:
        """The hardware was looked at, or the agent is about to end."""
        self._bell.set()

    def run(self) -> None:
        """Until it is told to stop. The first turn is due at once."""
        while not self._stopping.is_set():
            self._bell.clear()
            try:
                self.turn()
            except Exception:
                # A mistake of ours in one turn must not end the upkeep.
                LOG.exception('What guests were given was not looked after.')
            self._bell.wait()

    def turn(self) -> None:
        """Look after each handle, and tell once what cannot be helped."""
        held = [kept.handle for kept in self._cache.kept.values()]
        troubles = {handle.uuid: self._see_to(handle) for handle in held}
        news = []
        for handle in held:
            trouble = troubles[handle.uuid]
            if trouble and trouble != self._troubles.get(handle.uuid):
                LOG.error('%s is lost, and not made again: %s', handle.key, trouble)
                kind = HostEventKind.NOT_REBUILT
                news.append(News(kind, handle.address, handle.arq_uuid, trouble))
        self._journal.note(news)
        self._troubles = troubles

    def _see_to(self, handle: HeldHandle) -> str:
        """Why it is lost; empty: it is there."""
        try:
            self._preparation.restore(handle)
        except CyborgError as error:
            return error.text
        except Exception:
            # A mistake in one driver must not cost others their devices.
            LOG.exception('%s is not looked after.', handle.key)
            return _FAILED
        return ''
