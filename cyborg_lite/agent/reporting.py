# SPDX-License-Identifier: Apache-2.0
"""Tells the conductor that the host is alive and what it has, as seldom as will do."""

import threading
import time
from dataclasses import dataclass
from typing import Final

from oslo_log import log

from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.journal import Journal
from cyborg_lite.agent.measuring import Measurements
from cyborg_lite.agent.recovery import Recovery
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.services import Vitals
from cyborg_lite.model.usage import Usage
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import of_daemon
from cyborg_lite.version import version

LOG = log.getLogger(__name__)

_EVENTS_AT_ONCE: Final = 100
_SOON: Final = 2.0  # seconds until what is left to do is tried again


@dataclass(frozen=True, slots=True)
class Sources:
    """What there is to tell, and of what."""

    discovery: Discovery
    measurements: Measurements
    recovery: Recovery
    journal: Journal


class Reporter:
    """The loop that speaks. It outlives whatever the conductor does.

    While the host is being made what it was before a boot it is only a sign of life:
    what is half rebuilt is no inventory.
    """

    def __init__(
        self,
        sources: Sources,
        conductor: ConductorAPI,
        heartbeat_interval: float,
        stopping: threading.Event,
    ) -> None:
        """:param heartbeat_interval: seconds"""
        self._sources = sources
        self._conductor = conductor
        self._heartbeat_interval = heartbeat_interval
        self._stopping = stopping
        self._bell = threading.Event()
        self._rebuilt = threading.Event()
        self._heartbeat_due = 0.0  # by the monotonic clock; the first is due at once
        self._reported: str | None = None  # digest; None: the conductor lacks it
        self._recovered = False  # whether the conductor knows what was rebuilt
        self._figures_told: dict[str, Usage] = {}
        self._trouble = ''

    def wake(self) -> None:
        """There may be something to tell, or the agent is about to end."""
        self._bell.set()

    def rebuilt(self) -> None:
        """From now on the host is what it should be."""
        self._rebuilt.set()
        self.wake()

    def run(self) -> None:
        """Until it is told to stop; what is to be told then is tried once more."""
        while True:
            self._bell.clear()
            done = self.tell()
            if self._stopping.is_set():
                return
            self._bell.wait(self._pause(done))
            if self._stopping.is_set():
                return

    def tell(self) -> bool:
        """Send what is due. False: something is left, to be tried at the next turn."""
        try:
            done = self._send()
        except CyborgError as error:
            if error.text != self._trouble:
                LOG.warning(
                    'The conductor is not told: %s %s', error.text, error.advice
                )
            self._trouble = error.text
            return False
        except Exception:
            # A mistake of ours in one turn must not take the host off the air.
            LOG.exception('The conductor is not told.')
            return False
        if self._trouble:
            LOG.info('The conductor answers again.')
        self._trouble = ''
        return done

    def _pause(self, done: bool) -> float:
        left = max(0.0, self._heartbeat_due - time.monotonic())
        return left if done else min(_SOON, self._heartbeat_interval)

    def _send(self) -> bool:
        report = self._sources.discovery.report()
        digest = report.digest
        if time.monotonic() >= self._heartbeat_due:
            self._beat(digest)
        if not self._rebuilt.is_set():
            return True  # it rings when that has changed
        if not self._recovered:
            self._recovered = self._sources.recovery.tell(self._conductor)
        if digest != self._reported:
            self._conductor.report_host(of_daemon(), report)
            self._reported = digest
            self._figures_told = {}
            LOG.info('Reported %d devices, digest %s.', len(report.devices), digest)
        return self._tell_events() and self._recovered

    def _beat(self, digest: str) -> None:
        discovery, measurements = self._sources.discovery, self._sources.measurements
        figures = self._new_figures() if self._reported is not None else {}
        vitals = Vitals(discovery.host.boot_id, figures)
        lacking = self._conductor.heartbeat(
            of_daemon(), discovery.host.name, digest, version(), vitals
        )
        self._heartbeat_due = time.monotonic() + self._heartbeat_interval
        if lacking:
            # It may have forgotten more than the report.
            self._reported, self._recovered = None, False
        else:
            self._figures_told |= figures
        # To be told with the next heartbeat: nobody waits for figures.
        measurements.begin(discovery.findings)

    def _new_figures(self) -> dict[str, Usage]:
        told = self._figures_told
        measured = self._sources.measurements.figures
        return {
            address: usage
            for address, usage in measured.items()
            if told.get(address) != usage
        }

    def _tell_events(self) -> bool:
        journal, host = self._sources.journal, self._sources.discovery.host.name
        if not journal.joined:
            journal.heard(self._conductor.report_events(of_daemon(), host, ()))
        events = journal.waiting(_EVENTS_AT_ONCE)
        if not events:
            return True
        journal.heard(self._conductor.report_events(of_daemon(), host, events))
        return not journal.waiting(1)
