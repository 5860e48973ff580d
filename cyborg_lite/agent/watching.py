# SPDX-License-Identifier: Apache-2.0
"""Looks at the hardware at every sign of change, and now and then without one."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from oslo_log import log

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.fingerprint import fingerprint
from cyborg_lite.agent.journal import Journal, News
from cyborg_lite.model.host_events import HostEventKind
from cyborg_lite.model.inventory import Device, Finding

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """All in seconds, but for a number of looks."""

    discovery_interval: float
    heartbeat_interval: float
    driver_timeout: float
    fingerprint_interval: float = 5.0
    recovery_patience: float = 180.0
    removal_scans: int = 3


class Watcher:
    """A loop of its own: a driver that is slow must not keep the agent silent."""

    def __init__(
        self,
        discovery: Discovery,
        cache: Cache,
        journal: Journal,
        timing: Timing,
        stopping: threading.Event,
    ) -> None:
        self._discovery = discovery
        self._cache = cache
        self._journal = journal
        self._timing = timing
        self._stopping = stopping
        self._wanted = threading.Event()
        self._fingerprint: int | None = None  # None: not taken yet
        self._look_due = 0.0  # by the monotonic clock
        # None: the host was never looked at, and nothing of it can have changed.
        self._devices: Mapping[str, Device] | None = None

    def recall(self) -> None:
        """What an earlier process of the agent knew; before the first look."""
        findings = self._cache.findings
        if findings is not None:
            self._discovery.recall(findings)
            self._devices = _devices(findings)

    def run(
        self, changed: Callable[[], None], looked: Callable[[], None] = lambda: None
    ) -> None:
        """Until it is told to stop. The first look was taken by whoever started it.

        :param changed: the report is another one now
        :param looked: it was looked at, whatever was seen
        """
        while not self._stopping.wait(self._timing.fingerprint_interval):
            try:
                before = self._devices
                if self.turn():
                    changed()
                if self._devices is not before:
                    looked()
            except Exception:
                # A mistake of ours in one turn must not end the watch.
                LOG.exception('The hardware was not looked at.')

    def turn(self) -> bool:
        """Look if there is a reason to; True: the report is another one now."""
        seen = fingerprint(self._discovery.host)
        reasons = (
            seen != self._fingerprint,
            self._wanted.is_set(),
            self._discovery.unsettled,
            time.monotonic() >= self._look_due,
        )
        if not any(reasons):
            return False
        self._wanted.clear()
        before = self._discovery.report().digest
        self.look(seen)
        return self._discovery.report().digest != before

    def want(self) -> None:
        """There is a sign of change that the fingerprint does not show."""
        self._wanted.set()

    def look(self, seen: int | None = None) -> None:
        """At all of it, and note what came, went, fell ill or got well.

        :param seen: the fingerprint; None: take it
        """
        self._fingerprint = fingerprint(self._discovery.host) if seen is None else seen
        self._look_due = time.monotonic() + self._timing.discovery_interval
        found = _devices(self._discovery.look())
        if self._devices is not None:
            self._journal.note(_news(self._devices, found))
        self._devices = found
        self._cache.keep_findings(self._discovery.reported())


def _devices(findings: Iterable[Finding]) -> Mapping[str, Device]:
    return {one.address: one.device for one in findings if one.device is not None}


def _news(before: Mapping[str, Device], after: Mapping[str, Device]) -> Iterator[News]:
    for address in sorted({*before, *after}):
        old, new = before.get(address), after.get(address)
        if new is None:
            yield News(HostEventKind.LOSS, address)
        elif old is None:
            yield News(HostEventKind.HOTPLUG, address, reason=new.model)
        elif (old.health, old.health_reason) != (new.health, new.health_reason):
            said = f'{new.health}: {new.health_reason}'.removesuffix(': ')
            yield News(HostEventKind.HEALTH, address, reason=said)
