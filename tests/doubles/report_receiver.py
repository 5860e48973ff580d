# SPDX-License-Identifier: Apache-2.0
"""Conductor as agents see it, without a message bus or database; it records reports."""

from collections.abc import Callable, Mapping, Sequence

from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.events import (
    HandleComparison,
    HostEvent,
    HostHandle,
    RecoveryResult,
)
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark
from cyborg_lite.model.hosts.services import Heartbeat, HeartbeatDetails
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.inventory.report_changes import ReportChanges, apply_changes
from cyborg_lite.rpc.client import build_conductor, serve_locally
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import Dispatcher, serves
from cyborg_lite.rpc.interface import NO_DETAILS, NO_TELEMETRY, Conductor
from cyborg_lite.rpc.methods import CONDUCTOR


class ReportKeeper:
    """Services that answer the calls of agents."""

    def __init__(self) -> None:
        self.reports: dict[str, HostReport] = {}  # by host
        self.calls: list[str] = []
        self.heartbeats: list[HeartbeatDetails] = []
        self.outcomes: list[RecoveryResult] = []
        self.provisioning: list[AllocatedHandle] = []  # handles that hosts must rebuild
        self.events: list[HostEvent] = []
        self.last_event = 0
        self.last_report = 0
        self.abandoned: set[str] = set()  # uuids of handles that no ARQ owns
        self.prepared: tuple[HostHandle, ...] = ()  # of the last comparison
        self.unmentioned: tuple[AllocatedHandle, ...] = ()
        self.on_comparison: Callable[[], object] = lambda: None  # before its answer
        self.answer_lost = False  # report_events: executed, then not answered
        self.remembers_heartbeats = False  # False: it has just started
        self.token = ''  # of the last whole heartbeat
        self.mark = NO_MARK  # of the database
        self.refusal: Exception | None = None  # raised by every call
        self.timeouts: list[float] = []  # seconds; one per client

    @property
    def client(self) -> Conductor:
        """A client of the services."""
        return build_conductor(serve_locally(Dispatcher(CONDUCTOR, [self])))

    def connect(self, seconds: float) -> Conductor:
        """Return a client that records its timeout."""
        self.timeouts.append(seconds)
        return self.client

    @serves(Conductor.heartbeat)
    def heartbeat(
        self,
        context: RequestContext,
        host: str,
        digest: str,
        version: str,
        details: HeartbeatDetails = NO_DETAILS,
    ) -> bool:
        self._record_call('heartbeat', context)
        self.heartbeats.append(details)
        identity = details.boot_id, details.identity
        self.token = Heartbeat(host, version, digest, *identity).token
        stored = self.reports.get(host)
        return stored is None or stored.digest != digest

    @serves(Conductor.repeat)
    def repeat(
        self,
        context: RequestContext,
        host: str,
        token: str,
        telemetry: Mapping[str, Usage] = NO_TELEMETRY,
    ) -> DatabaseMark | None:
        if not self.remembers_heartbeats:
            return None
        self.calls.append('repeat')
        if self.refusal is not None:
            raise self.refusal
        if token != self.token:
            return None
        self.heartbeats.append(HeartbeatDetails(telemetry=telemetry))
        return self.mark

    @serves(Conductor.repeat_without_answer)
    def repeat_without_answer(
        self,
        context: RequestContext,
        host: str,
        token: str,
        telemetry: Mapping[str, Usage] = NO_TELEMETRY,
    ) -> None:
        self.calls.append('repeat_without_answer')
        if token == self.token:
            self.heartbeats.append(HeartbeatDetails(telemetry=telemetry))

    def _store(self, report: HostReport) -> int:
        if report.number > self.last_report:
            self.reports[report.hostname] = report
            self.last_report = report.number
            return report.number
        return self.last_report + 1

    @serves(Conductor.report_changes)
    def report_changes(
        self, context: RequestContext, host: str, changes: ReportChanges
    ) -> int | None:
        self._record_call('report_changes', context)
        base = self.reports.get(changes.report.hostname)
        if not changes.base:
            return self._store(changes.report)
        if base is None or base.digest != changes.base:
            return None
        report = apply_changes(changes, base)
        return None if report is None else self._store(report)

    @serves(Conductor.reconcile_handles)
    def reconcile_handles(
        self, context: RequestContext, host: str, handles: Sequence[HostHandle]
    ) -> HandleComparison:
        self._record_call('reconcile_handles', context)
        self.prepared = tuple(handles)
        self.on_comparison()
        abandoned = (item.uuid for item in handles if item.uuid in self.abandoned)
        return HandleComparison(tuple(abandoned), self.unmentioned)

    @serves(Conductor.report_recovery)
    def report_recovery(
        self, context: RequestContext, host: str, result: RecoveryResult
    ) -> tuple[AllocatedHandle, ...]:
        self._record_call('report_recovery', context)
        self.outcomes.append(result)
        finished = {*result.rebuilt, *result.lost}
        self.provisioning = [
            handle for handle in self.provisioning if handle.uuid not in finished
        ]
        return tuple(self.provisioning)

    @serves(Conductor.report_events)
    def report_events(
        self, context: RequestContext, host: str, events: Sequence[HostEvent]
    ) -> int:
        self._record_call('report_events', context)
        self.events += [event for event in events if event.number > self.last_event]
        if self.events:
            self.last_event = max(self.last_event, self.events[-1].number)
        if self.answer_lost:
            raise ServiceUnavailable(what='cyborg-lite-conductor')
        return self.last_event

    def _record_call(self, method: str, context: RequestContext) -> None:
        self.calls.append(method)
        if not context.is_admin:
            raise CyborgError
        if self.refusal is not None:
            raise self.refusal
