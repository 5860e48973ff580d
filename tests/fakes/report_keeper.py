# SPDX-License-Identifier: Apache-2.0
"""A conductor as agents know it, without a bus or a database: it keeps reports."""

from collections.abc import Mapping, Sequence

from cyborg_lite.exceptions import CyborgError, ServiceUnavailable
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.host_events import HostEvent, Outcome
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.services import Vitals
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import RequestContext


class ReportKeeper(ConductorAPI):
    """What the real one does with the calls of agents."""

    def __init__(self) -> None:
        self.reports: dict[str, HostReport] = {}  # by host
        self.calls: list[str] = []
        self.vitals: list[Vitals] = []
        self.outcomes: list[Outcome] = []
        self.provisioning: list[HeldHandle] = []  # what hosts have to rebuild
        self.events: list[HostEvent] = []
        self.last_event = 0
        self.answer_lost = False  # of report_events: it is heard all the same
        self.refusal: Exception | None = None  # what every call raises

    def heartbeat(
        self,
        context: RequestContext,
        host: str,
        digest: str,
        version: str,
        vitals: Vitals | None = None,
    ) -> bool:
        self._called('heartbeat', context)
        self.vitals.append(vitals or Vitals())
        held = self.reports.get(host)
        return held is None or held.digest != digest

    def report_host(self, context: RequestContext, report: HostReport) -> None:
        self._called('report_host', context)
        self.reports[report.hostname] = report

    def report_recovery(
        self,
        context: RequestContext,
        host: str,
        boot_id: str,
        *,
        rebuilt: Sequence[str],
        lost: Mapping[str, str],
    ) -> tuple[HeldHandle, ...]:
        self._called('report_recovery', context)
        self.outcomes.append(Outcome(host, boot_id, tuple(rebuilt), lost))
        told = {*rebuilt, *lost}
        self.provisioning = [one for one in self.provisioning if one.uuid not in told]
        return tuple(self.provisioning)

    def report_events(
        self, context: RequestContext, host: str, events: Sequence[HostEvent]
    ) -> int:
        self._called('report_events', context)
        self.events += [event for event in events if event.number > self.last_event]
        if self.events:
            self.last_event = max(self.last_event, self.events[-1].number)
        if self.answer_lost:
            raise ServiceUnavailable(what='cyborg-lite-conductor')
        return self.last_event

    def _called(self, method: str, context: RequestContext) -> None:
        self.calls.append(method)
        if not context.is_admin:
            raise CyborgError
        if self.refusal is not None:
            raise self.refusal
