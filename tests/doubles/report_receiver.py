# SPDX-License-Identifier: Apache-2.0
"""Conductor as agents see it, without a message bus or database; it records reports."""

from collections.abc import Mapping, Sequence
from typing import Self

from cyborg_lite.exceptions import CyborgError, ServiceUnavailable
from cyborg_lite.model.devices import AllocatedHandle
from cyborg_lite.model.host_events import HostEvent, RecoveryResult
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.services import HeartbeatDetails
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import RequestContext


class ReportKeeper(ConductorAPI):
    """Conductor that answers the calls of agents."""

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
        self.compares_handles = True  # False: as in an earlier release
        self.answer_lost = False  # report_events: executed, then not answered
        self.refusal: Exception | None = None  # raised by every call
        self.timeouts: list[float] = []  # seconds; one per client

    def with_timeout(self, seconds: float) -> Self:
        self.timeouts.append(seconds)
        return self

    def heartbeat(
        self,
        context: RequestContext,
        host: str,
        digest: str,
        version: str,
        vitals: HeartbeatDetails | None = None,
    ) -> bool:
        self._record_call('heartbeat', context)
        self.heartbeats.append(vitals or HeartbeatDetails())
        stored = self.reports.get(host)
        return stored is None or stored.digest != digest

    def report_host(self, context: RequestContext, report: HostReport) -> int:
        self._record_call('report_host', context)
        if report.number > self.last_report:
            self.reports[report.hostname] = report
            self.last_report = report.number
            return report.number
        return self.last_report + 1

    def reconcile_handles(
        self, context: RequestContext, host: str, handles: Sequence[str]
    ) -> tuple[str, ...] | None:
        self._record_call('reconcile_handles', context)
        if not self.compares_handles:
            return None
        return tuple(uuid for uuid in handles if uuid in self.abandoned)

    def report_recovery(
        self,
        context: RequestContext,
        host: str,
        boot_id: str,
        *,
        rebuilt: Sequence[str],
        lost: Mapping[str, str],
    ) -> tuple[AllocatedHandle, ...]:
        self._record_call('report_recovery', context)
        self.outcomes.append(RecoveryResult(host, boot_id, tuple(rebuilt), lost))
        finished = {*rebuilt, *lost}
        self.provisioning = [
            handle for handle in self.provisioning if handle.uuid not in finished
        ]
        return tuple(self.provisioning)

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
