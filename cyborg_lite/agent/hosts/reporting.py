# SPDX-License-Identifier: Apache-2.0
"""Sends heartbeats, host reports and host events to the conductor.

A host report is sent only if its digest has changed.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from oslo_log import log

from cyborg_lite.agent.arqs.reconciliation import Reconciliation
from cyborg_lite.agent.arqs.recovery import HostRecovery
from cyborg_lite.agent.hosts.heartbeats import HeartbeatSender
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.inventory.telemetry import TelemetryCollector
from cyborg_lite.agent.state.journal import Journal
from cyborg_lite.agent.state.remembered_mark import RememberedMark
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import (
    ConfigurationError,
    MessageRefused,
    ServiceUnavailable,
)
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.hosts import AgentIdentityRefused
from cyborg_lite.model.hosts.incarnations import DatabaseMark
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.inventory.report_changes import diff_reports
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.dispatcher import serves_host
from cyborg_lite.rpc.interface import Agents, Conductor

LOG = log.getLogger(__name__)

_MAX_EVENTS_PER_CALL: Final = 100
_RETRY_INTERVAL: Final = 2.0  # seconds
_SHORTEST_TIMEOUT: Final = 1.0  # seconds
_LONGEST_START: Final = 120.0  # seconds until a host that serves no calls is silent
# Errors that an operator must correct. The agent waits for other errors to end.
_REFUSALS: Final = (
    AgentIdentityRefused,
    ConfigurationError,
    DriverError,
    MessageRefused,
)


@dataclass(frozen=True, slots=True)
class ReportSources:
    """Components that provide the content of the reports."""

    discovery: Discovery
    telemetry: TelemetryCollector
    recovery: HostRecovery
    journal: Journal
    remembered: RememberedMark
    identity: str = ''  # of the agent
    reconciliation: Reconciliation | None = None  # None: nothing can be prepared


class Reporter:
    """The loop that reports to the conductor. Errors of the conductor never end it.

    Until the handles are rebuilt after a host reboot, only heartbeats are sent: the
    inventory is incomplete.
    """

    def __init__(
        self,
        sources: ReportSources,
        # connect: returns a client whose calls wait that many seconds.
        connect: Callable[[float], Conductor],
        heartbeat_interval: float,
        stopping: threading.Event,
        set_accepted: Callable[[bool], None] = lambda _accepted: None,
    ) -> None:
        self._sources = sources
        timeout = max(_SHORTEST_TIMEOUT, heartbeat_interval)
        self._conductor = connect(timeout)
        self._heartbeats = HeartbeatSender(
            sources.discovery,
            sources.telemetry,
            sources.identity,
            sources.remembered,
            connect,
            heartbeat_interval,
        )
        self._heartbeat_interval = heartbeat_interval  # seconds
        self._stopping = stopping
        # Called after each heartbeat: True if the conductor accepts this agent, False
        # if it refuses it because the host has another agent.
        self._set_accepted = set_accepted
        self._wake_event = threading.Event()
        self._rebuilt = threading.Event()
        self._started = time.monotonic()
        self._heartbeat_due = 0.0  # by the monotonic clock; the first is due at once
        # Digest of the report that the conductor has; None: it has no report.
        self._reported_digest: str | None = None
        self._report_number = 0  # of the last report
        self._accepted_report: HostReport | None = None  # None: no report yet
        self._is_served = True  # False: the RPC server could not start
        self._recovery_reported = False
        self._error = ''
        # The reason why conductor or broker refuses this agent; empty: neither does. A
        # refusal lasts until a report is accepted.
        self.refusal = ''
        self.is_answered = False  # True: the conductor has answered the last reports
        # Set when the first reports were answered, refused or lost.
        self.has_tried = threading.Event()

    def wake(self) -> None:
        """Report changes now, or end the loop if the agent stops."""
        self._wake_event.set()

    def set_rebuilt(self) -> None:
        """Start to send reports: the handles are rebuilt."""
        self._rebuilt.set()
        self.wake()

    def run(self) -> None:
        """Send reports until the stop event is set, then once more."""
        while True:
            self._wake_event.clear()
            completed = self.send_reports()
            if self._stopping.is_set():
                return
            self._wake_event.wait(self.wait_seconds(completed))
            if self._stopping.is_set():
                return

    @serves_host(Agents.read_mark)
    def read_mark(self) -> DatabaseMark:
        """Return the latest mark that a conductor has told."""
        return self._sources.remembered.mark

    @serves_host(Agents.warn)
    def warn(self, text: str) -> None:
        """Log a warning of the conductor."""
        LOG.warning('%s', text)

    def report_stop(self) -> None:
        """Tell the conductor that the agent stops, if it has answered lately."""
        if self.is_answered and self._sources.identity:
            try:
                self._heartbeats.report_stop()
            except CyborgError as error:
                LOG.info('Stop not reported: %s', error.text)

    def send_reports(self) -> bool:
        """Send everything that is due. Return False if a part must be sent again.

        A failure is logged when it begins and when it ends.
        """
        try:
            completed = self._send()
            self.is_answered = True
        except CyborgError as error:
            self.is_answered = False
            if isinstance(error, AgentIdentityRefused):
                self._set_accepted(False)
            # The readiness of the agent states a refusal.
            if isinstance(error, _REFUSALS):
                self.refusal = error.full_text
            elif error.text != self._error:
                LOG.warning('Report to the conductor failed: %s', error.full_text)
            self._error = error.text
            return False
        except Exception:
            # A bug in one report must not end the heartbeats of the host.
            LOG.exception('Report to the conductor failed')
            return False
        finally:
            self.has_tried.set()
        if self._error:
            LOG.info('Reports to the conductor succeed again')
        self._error = self.refusal = ''
        return completed

    def wait_seconds(self, completed: bool) -> float:
        """Return the seconds until the next reports are due.

        :param completed: result of ``send_reports``
        """
        if not completed:
            return min(_RETRY_INTERVAL, self._heartbeat_interval)
        return max(0.0, self._heartbeat_due - time.monotonic())

    def _send(self) -> bool:
        report = self._sources.discovery.report()
        digest = report.digest
        if time.monotonic() >= self._heartbeat_due:
            self._send_heartbeat(digest)
        if not self._rebuilt.is_set():
            return True  # set_rebuilt() wakes the loop
        if not self._recovery_reported:
            recovery = self._sources.recovery
            self._recovery_reported = recovery.report_recovery(self._conductor)
        if digest != self._reported_digest:
            self._send_report(report)
            self._reported_digest = digest
            # A new report is stored without telemetry.
            self._heartbeats.known_usages = {}
            LOG.info('Reported %d devices, digest %s', len(report.devices), digest)
        completed = self._send_events() and self._recovery_reported
        if self._sources.reconciliation is not None:
            self._sources.reconciliation.reconcile(self._conductor)
        return completed

    def _send_report(self, report: HostReport) -> None:
        """Send a report with a number that is larger than that of the stored report."""
        next_number = self._report_number + 1
        while next_number > self._report_number:
            self._report_number = next_number
            numbered = replace(
                report, identity=self._sources.identity, number=next_number
            )
            next_number = self._send_changes(numbered)
        self._accepted_report = report
        if self._sources.reconciliation is not None:
            self._sources.reconciliation.request()

    def _send_changes(self, report: HostReport) -> int:
        """Send the changes of a report; send all of it if the base is not known."""
        context, host = daemon_context(), report.hostname
        changes = diff_reports(report, self._accepted_report)
        number = self._conductor.report_changes(context, host, changes)
        if number is None:
            changes = diff_reports(report)
            number = self._conductor.report_changes(context, host, changes)
        if number is None:
            raise ServiceUnavailable(what='cyborg-lite-conductor')
        return number

    def _send_heartbeat(self, digest: str) -> None:
        """Send a heartbeat, unless the host does not serve calls for too long.

        :raises DriverError: the start of the agent takes too long. The host counts as
            down, so its free units are withheld.
        """
        is_late = time.monotonic() > self._started + _LONGEST_START
        if is_late and not self._rebuilt.is_set():
            reason = f'Devices are not restored {_LONGEST_START:.0f} s after the start.'
            raise DriverError(reason=reason)
        if not self._is_served:
            self._serve()
        is_reported = self._reported_digest is not None
        needs_report = self._heartbeats.send(digest, is_reported=is_reported)
        self._heartbeat_due = time.monotonic() + self._heartbeat_interval
        self._serve()
        if needs_report:
            # The conductor may have lost the recovery report as well.
            self._reported_digest, self._recovery_reported = None, False

    def _serve(self) -> None:
        """Serve calls. Without a server, no heartbeat is sent: the host counts as down.

        :raises ConfigurationError: the broker refuses the user or the queues
        """
        self._is_served = False
        self._set_accepted(True)
        self._is_served = True

    def _send_events(self) -> bool:
        """Send a batch of events. Return True if no event is left."""
        journal, host = self._sources.journal, self._sources.discovery.host.name
        if not journal.is_joined:
            last = self._conductor.report_events(daemon_context(), host, ())
            journal.acknowledge(last)
        events = journal.list_unsent(_MAX_EVENTS_PER_CALL)
        if not events:
            return True
        last = self._conductor.report_events(daemon_context(), host, events)
        journal.acknowledge(last)
        return not journal.list_unsent(1)
