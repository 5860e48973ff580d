# SPDX-License-Identifier: Apache-2.0
"""Host reports and heartbeats of agents."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from oslo_log import log

from cyborg_lite import codec
from cyborg_lite.conductor.hosts.database_watch import DatabaseWatch
from cyborg_lite.conductor.hosts.heartbeat_batch import HeartbeatBatch
from cyborg_lite.db.arqs import recovery
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import agents, reports
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.hosts import AgentIdentityRefused, ReportOutdated
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark
from cyborg_lite.model.hosts.services import (
    AgentRecord,
    Heartbeat,
    HeartbeatDetails,
    name_agent,
)
from cyborg_lite.model.inventory.diff import InventoryChanges
from cyborg_lite.model.inventory.host_report import UNUSABLE_HEALTH, HostReport
from cyborg_lite.model.inventory.report_changes import ReportChanges, apply_changes
from cyborg_lite.model.inventory.report_rules import check_report
from cyborg_lite.model.limits import check_message
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import NO_DETAILS, NO_TELEMETRY, Conductor

LOG = log.getLogger(__name__)

# --- last reports of hosts, to which their agents send changes ---


_MAX_SIZE: Final = 16 * 2**20  # characters: about 10 000 hosts with 8 devices


class ReportMemory:
    """The last report of each host, compressed. Thread-safe.

    It may forget a report at any time: the agent then sends its whole report.
    """

    def __init__(self, max_size: int = _MAX_SIZE) -> None:
        # Characters; above it, the oldest reports are forgotten.
        self._max_size = max_size
        self._size = 0
        self._lock = threading.Lock()
        self._reports: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def remember(self, report: HostReport) -> None:
        """Replace the report of a host."""
        digest, text = report.digest, codec.pack(report)
        with self._lock:
            self._forget(report.hostname)
            self._reports[report.hostname] = digest, text
            self._size += len(text)
            while self._size > self._max_size:
                self._forget(next(iter(self._reports)))

    def find(self, host: str, digest: str) -> HostReport | None:
        """Return the report of a host with a digest; None: not remembered."""
        with self._lock:
            known_digest, text = self._reports.get(host, ('', ''))
        if known_digest != digest or not text:
            return None
        return codec.unpack(HostReport, text, codec.UNLIMITED)

    def _forget(self, host: str) -> None:
        _, text = self._reports.pop(host, ('', ''))
        self._size -= len(text)


@dataclass(frozen=True, slots=True)
class InventoryService:
    """Stores what agents report about their hosts."""

    database: Database
    wake: Callable[[], None]  # called when jobs were written
    heartbeats: HeartbeatBatch  # writes the heartbeats that carry no new information
    # Called for each heartbeat, for the metrics.
    count_heartbeat: Callable[[], None] = lambda: None
    # Called with host and reason if a second agent has the name of a host.
    note_duplicate: Callable[[str, str], None] = lambda _host, _reason: None
    # Status of devices that a host did not have before.
    new_status: DeviceStatus = DeviceStatus.ENABLED
    watch: DatabaseWatch | None = None  # None: agents remember no mark
    _reports: ReportMemory = field(default_factory=ReportMemory, init=False)

    def store_report(self, context: RequestContext, report: HostReport) -> int:
        """Store the changes of a host report and schedule a Placement sync.

        The call may be repeated.

        :returns: the number of the report. A larger number: nothing was stored, because
            a later report is stored; the agent must send its report with this number
        :raises InvalidInput: the report cannot be stored, or names another host
        :raises AgentIdentityRefused: the host has another agent, which is up
        """
        check_report(report)
        host, boot_id = report.hostname, report.boot_id
        agent = self.database.read(agents.find_agent, host)
        if agent is not None:
            if (agent.digest, agent.boot_id) == (report.digest, boot_id):
                return report.number
            if agent.refuses(report.identity):
                name = name_agent(agent.identity or '', agent.machine)
                raise AgentIdentityRefused(host=host, machine=name)
            is_same = report.identity == agent.identity
            if is_same and 0 < report.number <= agent.report_number:
                LOG.info('Ignoring a report of host %s: a later one is stored', host)
                return _next_number(report, agent)
            if agent.boot_id not in (None, boot_id):
                self.database.write(recovery.record_host_reboot, host, boot_id)
        try:
            changes = self.database.write(
                reports.store_report, report, context.request_id, self.new_status
            )
        except ReportOutdated as error:
            LOG.info('Ignoring a report of host %s: %s', host, error.text)
            agent = self.database.read(agents.find_agent, host)
            return _next_number(report, agent)
        _log_changes(report.hostname, changes)
        _log_losses(report.hostname, changes)
        if changes.concern_placement:
            self.wake()
        return report.number

    @serves(Conductor.report_changes)
    def store_changes(
        self, context: RequestContext, host: str, changes: ReportChanges
    ) -> int | None:
        """Store the report that results from changes; see ``store_report``."""
        if changes.report.hostname != host:
            raise InvalidInput(reason='The report names another host.')
        report: HostReport | None = None
        if not changes.base:
            report = replace(changes.report, agent_digest=changes.digest)
        elif base := self._reports.find(host, changes.base):
            report = apply_changes(changes, base)
        if report is None:
            return None
        number = self.store_report(context, report)
        if number == report.number:
            self._reports.remember(report)
        return number

    @serves(Conductor.heartbeat)
    def record_heartbeat(
        self,
        host: str,
        digest: str,
        version: str,
        details: HeartbeatDetails = NO_DETAILS,
    ) -> bool:
        check_message(host, details)
        self.count_heartbeat()
        if self.watch is not None and details.mark != NO_MARK:
            self.watch.compare(details.mark, f'The agent of host {host}')
        heartbeat = Heartbeat(host, version, digest, details.boot_id, details.identity)
        if not details.started and self.heartbeats.add(heartbeat, details.telemetry):
            return False
        try:
            needs_report = self.database.write(
                services.record_agent_heartbeat, host, version, digest, details
            )
        except AgentIdentityRefused as error:
            second = name_agent(details.identity, details.machine)
            self.note_duplicate(
                host,
                f'Two agents have the name {host}: that on {error.kwargs["machine"]} '
                f'serves, that on {second} is refused.',
            )
            raise
        if not needs_report:
            self.heartbeats.remember(heartbeat)
        return needs_report

    @serves(Conductor.report_stop)
    def record_stop(self, host: str, identity: str) -> None:
        if self.database.write(services.record_stop, host, identity):
            LOG.info('The agent of host %s stops', host)

    @serves(Conductor.repeat)
    def repeat_heartbeat(
        self, host: str, token: str, telemetry: Mapping[str, Usage] = NO_TELEMETRY
    ) -> DatabaseMark | None:
        if telemetry:
            check_message(host, HeartbeatDetails(telemetry=telemetry))
        if not self.heartbeats.repeat(host, token, telemetry):
            return None
        self.count_heartbeat()
        return NO_MARK if self.watch is None else self.watch.mark

    @serves(Conductor.repeat_without_answer)
    def repeat_without_answer(
        self, host: str, token: str, telemetry: Mapping[str, Usage] = NO_TELEMETRY
    ) -> None:
        self.repeat_heartbeat(host, token, telemetry)


def _next_number(report: HostReport, agent: AgentRecord | None) -> int:
    """Return the number with which a refused report must be sent.

    It is never the number of the report: the first report of a new agent process may
    have the number of the stored report.
    """
    return 1 + max(report.number, agent.report_number if agent else 0)


def _log_changes(hostname: str, changes: InventoryChanges) -> None:
    if not changes:
        LOG.debug('Report of host %s contains no changes', hostname)
        return
    LOG.info(
        'Report of host %s stored: devices %s; deployables %s; attach handles %s; '
        'attributes %s',
        hostname,
        changes.devices,
        changes.deployables,
        changes.handles,
        changes.attributes,
    )


def _log_losses(hostname: str, changes: InventoryChanges) -> None:
    """Log devices that no instance can use any more, when this begins."""
    for device in changes.devices.changed.values():
        if device.health in UNUSABLE_HEALTH:
            LOG.warning(
                'Device %s of host %s is %s: %s',
                device.control_address,
                hostname,
                device.health,
                device.health_reason,
            )
    # A missing handle that no ARQ owns is deleted.
    missing = [
        handle.key for handle in changes.handles.changed.values() if handle.missing
    ]
    if missing:
        LOG.warning(
            'Attach handles of instances are missing on host %s: %s',
            hostname,
            ', '.join(missing),
        )
