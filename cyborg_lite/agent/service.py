# SPDX-License-Identifier: Apache-2.0
"""Builds the agent of one host from its components, starts it and stops it."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from oslo_log import log

from cyborg_lite.agent.arqs.handle_repair import HandleRepair
from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.arqs.readiness import record_rebuilt
from cyborg_lite.agent.arqs.reconciliation import Reconciliation
from cyborg_lite.agent.arqs.recovery import HostRecovery
from cyborg_lite.agent.bitstreams.programming import BitstreamStore, Programming
from cyborg_lite.agent.devices.cleaning import Cleaning
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.devices.modes import LONGEST_LATER_RESTORE, Modes, ModeStore
from cyborg_lite.agent.hosts.reporting import Reporter, ReportSources
from cyborg_lite.agent.hosts.server_gate import ServerGate
from cyborg_lite.agent.inventory.device_health import DeviceHealth
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.inventory.hardware_monitor import AgentIntervals, HardwareMonitor
from cyborg_lite.agent.inventory.health_rule_files import load_rules
from cyborg_lite.agent.inventory.privilege_check import PrivilegeCheck
from cyborg_lite.agent.inventory.telemetry import TelemetryCollector
from cyborg_lite.agent.ownership.ownership import Ownership
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.identity import StateLock, check_host, load_identity
from cyborg_lite.agent.state.journal import Journal, NewEvent
from cyborg_lite.agent.state.remembered_mark import RememberedMark
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.kernel_log import LogLine
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.devices.health_rules import HealthRules
from cyborg_lite.model.hosts.events import HostEventKind
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from cyborg_lite.rpc.client import connect_conductor
from cyborg_lite.rpc.dispatcher import Dispatcher
from cyborg_lite.rpc.methods import AGENTS
from cyborg_lite.rpc.transport import Transport

LOG = log.getLogger(__name__)

BINARY: Final = 'cyborg-lite-agent'

# Seconds to wait for a running report at the stop. Nothing is lost if it is exceeded:
# the next process reports again. The conductor may be unreachable.
_STOP_TIMEOUT: Final = 5.0
# The same while the conductor does not answer: the report would wait for its timeout.
_UNANSWERED_STOP_TIMEOUT: Final = 0.5
_REPORT: Final = 'report'  # name of the thread
_FIRST_REPORT_TIMEOUT: Final = 10.0  # seconds; a conductor that hangs delays no longer


@dataclass(frozen=True, slots=True)
class AgentResources:
    """Drivers, files and settings of the host that the agent uses."""

    host: Host
    drivers: Mapping[str, Driver]  # by entry point name
    state_path: Path  # directory of the state that survives a restart
    bitstreams: BitstreamStore | None = None  # None: Glance is not configured
    ownership: Ownership | None = None  # None: no device is excluded
    health_rules: HealthRules = field(default_factory=load_rules)
    # Returns the lines of the kernel log after a record.
    read_log: Callable[[int], Sequence[LogLine]] = lambda after: ()


class AgentService:
    """The agent of one host. It owns the transport and closes it at its end."""

    def __init__(
        self, transport: Transport, resources: AgentResources, intervals: AgentIntervals
    ) -> None:
        self._transport = transport
        self._resources = resources
        self._intervals = intervals
        self._cache = Cache(resources.state_path)
        self._journal = Journal(resources.state_path)
        rules, host = resources.health_rules, resources.host
        self._health = DeviceHealth(resources.state_path, rules, host)
        self._health.report = self._report_event
        self._telemetry = TelemetryCollector(resources.drivers, self._health.count)
        self._stopping = threading.Event()
        self._lock = StateLock(resources.state_path)
        self._gate = ServerGate(transport, resources.host.name)
        self._wake_calls: list[Callable[[], None]] = []  # wake-up of each loop
        self._loops: list[threading.Thread] = []
        self._modes: Modes | None = None  # None: not started
        self._reporter: Reporter | None = None  # None: not started
        self._is_stop_reported = False

    def start(self) -> None:
        """Rebuild the prepared handles after a host reboot, then serve RPCs.

        Heartbeats are sent meanwhile. The rebuild needs neither the conductor nor the
        message bus. The RPC server starts when the conductor accepts the agent.

        :raises ConfigurationError: two drivers claim one function, or the broker
            refuses the user or the queues
        :raises StateLocked: another agent uses the state directory
        :raises ForeignState: the state directory is a copy from another host
        """
        resources, intervals = self._resources, self._intervals
        self._open_state()
        discovery = self._create_discovery()
        state = self._cache, self._journal
        monitor = HardwareMonitor(discovery, *state, intervals, self._stopping)
        discovery.restore_handles(
            entry.handle for entry in self._cache.handles.values()
        )
        monitor.restore_results()
        self._health.read_log(resources.read_log)
        monitor.scan()
        _check_conflicts(discovery)
        store, locks = resources.bitstreams, DeviceLocks()
        on_change = monitor.request_scan
        programming = Programming(discovery, store, locks, on_change)
        preparation = Preparation(discovery, *state, locks, programming.program)
        mode_store = ModeStore(resources.state_path)
        modes = Modes(discovery, self._cache, mode_store, locks, on_change)
        self._modes = modes
        patience = intervals.recovery_patience
        recovery = HostRecovery(discovery, preparation, *state, patience)
        recovery.restore_mode = modes.restore
        repair = HandleRepair(preparation, self._cache, self._journal, self._stopping)
        reporter = self._start_reporter(discovery, recovery, repair)
        if modes.restore_all() | recovery.rebuild(self._stopping):
            monitor.scan()
        if self._stopping.is_set():
            return
        record_rebuilt(resources.state_path, resources.host.boot_id)
        reporter.set_rebuilt()
        self._start_monitor(monitor, reporter, repair)
        LOG.info('Enabled drivers: %s', ', '.join(resources.drivers) or 'none')
        cleaning = Cleaning(discovery, self._cache, locks)
        cleaning.on_reset = self._health.record_reset
        self._gate.check_queues()
        services = preparation, programming, recovery, cleaning, modes, monitor
        self._gate.set_services(Dispatcher(AGENTS, (*services, reporter)))

    def find_fault(self) -> str:
        """Return why the conductor refuses this agent; empty: it does not.

        An agent without a conductor is ready: nova-compute waits for the agent, and the
        devices of its instances exist.
        """
        if self._reporter is None:
            return ''
        # Whether the conductor refuses this agent must be known before it is ready.
        self._reporter.has_tried.wait(_FIRST_REPORT_TIMEOUT)
        return self._reporter.refusal

    def _open_state(self) -> None:
        """Lock the state directory and read its files.

        :raises StateLocked: another agent uses it
        :raises ForeignState: it is a copy from another host
        """
        self._lock.acquire()
        check_host(self._resources.state_path, self._resources.host.name)
        self._cache.open()
        self._journal.open()

    def _create_discovery(self) -> Discovery:
        store, telemetry = self._resources.bitstreams, self._telemetry
        health = self._health
        ownership = self._resources.ownership
        privileges = PrivilegeCheck(self._resources.host)

        def amend(result: DiscoveryResult) -> DiscoveryResult:
            result = telemetry.amend(store.loaded.amend(result) if store else result)
            result = health.amend(result)
            result = self._modes.amend(result) if self._modes else result
            result = ownership.amend(result) if ownership else result
            return privileges.amend(result)

        return Discovery(
            self._resources.host,
            self._resources.drivers,
            self._intervals.driver_timeout,
            amend,
            self._intervals.removal_scans,
        )

    def _start_reporter(
        self, discovery: Discovery, recovery: HostRecovery, repair: HandleRepair
    ) -> Reporter:
        resources = self._resources
        sources = ReportSources(
            discovery,
            self._telemetry,
            recovery,
            self._journal,
            RememberedMark(resources.state_path),
            load_identity(resources.state_path),
            Reconciliation(
                resources.host.name,
                self._cache,
                repair.release_later,
                repair.adopt_later,
            ),
        )
        reporter = Reporter(
            sources,
            partial(connect_conductor, self._transport),
            self._intervals.heartbeat_interval,
            self._stopping,
            self._gate.set_accepted,
        )
        self._reporter = reporter
        self._wake_calls.append(reporter.wake)
        self._start_loop(_REPORT, reporter.run)
        return reporter

    def _start_monitor(
        self, monitor: HardwareMonitor, reporter: Reporter, repair: HandleRepair
    ) -> None:
        """Start scans and repairs; after a scan, set up devices before handles."""
        monitor.on_change = reporter.wake
        self._telemetry.on_health_change = monitor.request_scan
        self._health.on_change = monitor.request_scan
        monitor.on_check = lambda: self._health.read_log(self._resources.read_log)
        self._wake_calls.append(repair.wake)
        self._start_loop('repair', repair.run)

        def set_up() -> None:
            if self._modes is not None:
                self._modes.restore_all(LONGEST_LATER_RESTORE)
            repair.wake()

        self._start_loop('monitor', lambda: monitor.run(set_up))

    def _report_event(self, event: NewEvent) -> None:
        """Store an event of a device, unless the conductor still has to get it."""
        is_request = event.kind in (HostEventKind.QUARANTINE, HostEventKind.RESET)
        if not is_request or not self._journal.has_unsent(event.kind, event.address):
            self._journal.append([event])

    def _start_loop(self, name: str, loop: Callable[[], None]) -> None:
        # Daemon threads, because a driver or the conductor may never answer.
        thread = threading.Thread(target=loop, name=name, daemon=True)
        self._loops.append(thread)
        thread.start()

    def list_threads(self) -> list[threading.Thread]:
        """Return the threads that run until the stop."""
        return self._loops

    def retire(self) -> None:
        """End the reports, and wait for the last one to be answered.

        RPCs are still served: a stopping conductor may need them to complete a job.
        """
        self._join_loops()

    def stop(self) -> None:
        """Stop accepting RPCs. Running RPCs continue."""
        self._stop_loops()
        self._gate.close()

    def wait(self) -> None:
        """Wait until the running RPCs have ended, then close the transport."""
        self._gate.wait()
        self._join_loops()
        self._transport.cleanup()
        self._lock.release()

    def _stop_loops(self) -> None:
        self._stopping.set()
        for wake in self._wake_calls:
            wake()

    def _join_loops(self) -> None:
        """Wait for the end of the loops, but not for an absent conductor."""
        self._stop_loops()
        is_answered = self._reporter is not None and self._reporter.is_answered
        for loop in self._loops:
            is_stuck = loop.name == _REPORT and not is_answered
            loop.join(_UNANSWERED_STOP_TIMEOUT if is_stuck else _STOP_TIMEOUT)
        # Not during a report: a heartbeat after this message would undo it.
        if self._reporter is not None and not self._is_stop_reported:
            self._is_stop_reported = True
            if not any(
                loop.name == _REPORT and loop.is_alive() for loop in self._loops
            ):
                self._reporter.report_stop()


def _check_conflicts(discovery: Discovery) -> None:
    """Check that no two drivers claim the same function.

    :raises ConfigurationError: at least two drivers do
    """
    conflicts = discovery.list_conflicts()
    if conflicts:
        raise ConfigurationError(reason=f'{"; ".join(conflicts)}.')
