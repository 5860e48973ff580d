# SPDX-License-Identifier: Apache-2.0
"""The conductor daemon: its parts, their start and their stop."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from oslo_log import log

from cyborg_lite.clients.glance import Glance
from cyborg_lite.clients.limits import KeystoneLimits
from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.clients.playbooks import PlaybookRunner, check_installed
from cyborg_lite.conductor.arqs.arqs import ArqService, LimitService
from cyborg_lite.conductor.arqs.audit import (
    Audit,
    AuditHandler,
    AuditRules,
    AuditScheduler,
)
from cyborg_lite.conductor.arqs.binding import BindHandler, BindRules, ConnectHandler
from cyborg_lite.conductor.arqs.nova_events import NovaEventHandler
from cyborg_lite.conductor.arqs.recovery import RecoveryService
from cyborg_lite.conductor.arqs.releasing import ReleaseHandler
from cyborg_lite.conductor.arqs.unowned_handles import UnownedHandles
from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.conductor.bitstreams.loading import BitstreamLoader
from cyborg_lite.conductor.bitstreams.programming import (
    ProgramHandler,
    ProgrammingService,
    ProgramWaiters,
)
from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.conductor.devices.cleaning import CleanHandler, CleaningService
from cyborg_lite.conductor.devices.devices import DeviceService, HostPeers
from cyborg_lite.conductor.devices.modes import ModeHandler, ModeService
from cyborg_lite.conductor.devices.reconfiguring import (
    ReconfigurationService,
    ReconfigureHandler,
)
from cyborg_lite.conductor.hosts.database_watch import DatabaseWatch
from cyborg_lite.conductor.hosts.faults import FaultLog
from cyborg_lite.conductor.hosts.heartbeat_batch import HeartbeatBatch
from cyborg_lite.conductor.hosts.hosts import HostService
from cyborg_lite.conductor.hosts.liveness import LivenessMonitor
from cyborg_lite.conductor.inventory.inventory import InventoryService
from cyborg_lite.conductor.jobs.notifications import NotificationSender
from cyborg_lite.conductor.jobs.operations import OperationService, Restart
from cyborg_lite.conductor.jobs.purging import DEFAULT_RETENTION, Purger, Retention
from cyborg_lite.conductor.jobs.runner import Handler, JobRunner, Workers, create_owner
from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.conductor.ownership.allocations import Pace
from cyborg_lite.conductor.ownership.sharing import SharingCheck
from cyborg_lite.conductor.profiles.device_profiles import (
    AlternativeService,
    DeviceProfileService,
)
from cyborg_lite.conductor.providers.host_jobs import (
    HostSyncJobs,
    PlacementAuditScheduler,
    ProviderRemovalHandler,
)
from cyborg_lite.conductor.providers.selectors import SelectorsHandler
from cyborg_lite.conductor.providers.sync import PlacementSync, PlacementSyncHandler
from cyborg_lite.conductor.transactions import Transactions
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.schema_check import check_revision
from cyborg_lite.db.hosts import services
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import DatabaseRefused, ServiceUnavailable
from cyborg_lite.model.attention import AttentionKind
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.reconfiguration import HardwareSets
from cyborg_lite.model.hosts.services import CONDUCTOR
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.rpc.client import connect_agents, connect_conductor, is_reachable
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher
from cyborg_lite.rpc.interface import Agents
from cyborg_lite.rpc.methods import CONDUCTOR as INTERFACE
from cyborg_lite.rpc.notifications import NotificationBus
from cyborg_lite.rpc.transport import Server, Transport, find_signer, serve
from cyborg_lite.version import VERSION

LOG = log.getLogger(__name__)

_HEARTBEAT_INTERVAL: Final = 30.0  # seconds
_SENDER_LEASE: Final = 30  # seconds until another conductor sends the notifications
_DATABASE_INTERVAL: Final = 5.0  # seconds between attempts to connect at the start
_CHECK_INTERVAL: Final = 30.0  # seconds between checks of a Placement that answers
_RECHECK_INTERVAL: Final = 6.0  # the same after a failure


@dataclass(frozen=True, slots=True)
class JobDependencies:
    """Objects from which the job handlers of one process are built."""

    database: Database
    placement: Placement
    nova: Nova
    agents: Agents
    loader: BitstreamLoader
    sync: PlacementSync
    sync_jobs: HostSyncJobs
    metrics: Metrics
    bind_rules: BindRules
    audit_rules: AuditRules
    playbooks: PlaybookRunner
    hardware_sets: HardwareSets = field(default_factory=HardwareSets)
    reap_orphans: bool = False
    program_waiters: ProgramWaiters = field(default_factory=ProgramWaiters)

    @property
    def peers(self) -> HostPeers:
        """Peers of a change of the devices of a host."""
        return HostPeers(self.agents, self.placement, self.sync_jobs.sync)


HANDLERS: Final[Mapping[OperationKind, Callable[[JobDependencies], Handler]]] = {
    OperationKind.BIND: lambda needs: BindHandler(
        needs.database, needs.agents, needs.placement, needs.bind_rules, needs.loader
    ).observe_stages(needs.metrics.time_stage),
    OperationKind.RELEASE: lambda needs: ReleaseHandler(
        needs.database, needs.agents, needs.loader
    ),
    OperationKind.NOVA_EVENT: lambda needs: NovaEventHandler(
        needs.database, needs.nova, needs.metrics
    ),
    OperationKind.CONNECT: lambda needs: ConnectHandler(
        needs.database, needs.nova, needs.agents
    ),
    OperationKind.RECONCILE: lambda needs: PlacementSyncHandler(
        needs.database, needs.sync
    ),
    OperationKind.PROGRAM: lambda needs: ProgramHandler(
        needs.database, needs.loader, needs.program_waiters
    ),
    OperationKind.AUDIT: lambda needs: AuditHandler(
        needs.database,
        Audit(needs.database, needs.nova, needs.placement, needs.audit_rules),
        needs.reap_orphans,
        SharingCheck(needs.database, needs.placement),
        partial(needs.metrics.count, 'audit_findings'),
    ),
    OperationKind.CLEANING: lambda needs: CleanHandler(
        needs.database, needs.agents, needs.placement
    ),
    OperationKind.SELECTORS: lambda needs: SelectorsHandler(
        needs.database, needs.placement, needs.loader.catalog
    ),
    OperationKind.PROVIDER_REMOVAL: lambda needs: ProviderRemovalHandler(
        needs.database, needs.sync_jobs
    ),
    OperationKind.MODE: lambda needs: ModeHandler(needs.database, needs.peers),
    OperationKind.CONFIGURATION: lambda needs: ReconfigureHandler(
        needs.database,
        needs.hardware_sets,
        needs.playbooks,
        needs.peers,
    ),
}
"""One factory for each job type."""


def build_handlers(dependencies: JobDependencies) -> dict[str, Handler]:
    """Return a handler for each job type."""
    return {job_type: build(dependencies) for job_type, build in HANDLERS.items()}


@dataclass(frozen=True, slots=True)
class Connections:
    """Connections of a conductor, opened by the entry point, closed by the service."""

    transport: Transport
    database: Database
    placement: Placement
    nova: Nova
    glance: Glance | None = None  # None: no bitstreams are available
    notifications: NotificationBus | None = None  # None: they are disabled
    limits: KeystoneLimits | None = None  # None: projects have no limits
    own_api: Transport | None = None  # to the API in this process; None: there is none


@dataclass(frozen=True, slots=True)
class ConductorSettings:
    """Options of the operator; times in seconds."""

    host: str
    rules: BindRules
    workers: Workers
    job_lease: int
    agent_timeout: int
    agent_down_after: int
    placement_audit_interval: int
    audit_interval: int
    orphan_grace: int
    reap_orphans: bool
    metrics_host: str
    metrics_ports: range  # empty: the metrics are not served
    serves_each_device: bool  # in the metrics
    load_timeout: int
    largest_image: int  # bytes
    default_images: Sequence[str] = ()  # uuids of images for released regions
    hosts_without_compute: Sequence[str] = ()  # patterns of hostnames
    new_status: DeviceStatus = DeviceStatus.ENABLED  # of new devices
    retention: Retention = DEFAULT_RETENTION
    alternative_lifetime: int = 5
    max_backlog: int = 500_000  # notifications
    hardware_sets: HardwareSets = field(default_factory=HardwareSets)
    max_unbound_requests: int = 100  # of a project; -1: any number
    audit_rate: int = 50  # requests to Placement per second


class ConductorService:
    """A conductor process."""

    def __init__(self, connections: Connections, settings: ConductorSettings) -> None:
        self._connections = connections
        self._settings = settings
        self._stopping = threading.Event()
        self.watch = DatabaseWatch(
            connections.database, connections.placement, settings.agent_down_after
        )
        self._metrics = Metrics()
        self._faults = FaultLog(
            connections.database,
            settings.agent_down_after,
            self._stopping,
        )
        self._check_due = 0.0  # of Placement, by the monotonic clock
        self._fault = ''  # found by the last check
        self._runner: JobRunner | None = None  # None: not started
        self._servers: list[Server] = []
        self._loops: list[threading.Thread] = []

    def start(self) -> None:
        """Wait for the database, then start the job runner, the loops and RPC.

        :raises ConfigurationError: no metrics port is free, the broker refuses the user
            or the queues, or the hardware sets need Ansible
        :raises SchemaOutdated: the database has no schema, or an earlier one
        :raises DatabaseRefused: the user, the password or the database name is wrong
        """
        connections, settings = self._connections, self._settings
        database = connections.database
        if settings.hardware_sets.sets:
            check_installed()
        if not self._wait_for_database():
            return
        self._start_metrics()
        dependencies = self.build_dependencies(
            connect_agents(
                connections.transport, settings.agent_timeout, settings.load_timeout
            )
        )
        self._faults.agents = dependencies.agents
        runner = JobRunner(
            database,
            build_handlers(dependencies),
            create_owner(settings.job_lease),
            settings.workers,
            self._metrics,
        )
        heartbeats = HeartbeatBatch(database, self._stopping)
        dispatcher = self.build_dispatcher(dependencies, runner, heartbeats)
        self._servers = [
            serve(bus, settings.host, dispatcher, database.once)
            for bus in (connections.own_api, connections.transport)
            if bus is not None
        ]
        self._runner = runner
        self._loops = [
            threading.Thread(target=loop, name=name, daemon=True)
            for name, loop in self._build_loops(heartbeats, runner.wake).items()
        ]
        runner.start(partial(self.watch.check, dependencies.agents))
        for thread in self._loops:
            thread.start()
        for server in self._servers:
            server.start()

    def find_fault(self) -> str:
        """Return why Placement or Keystone cannot be used; empty: they can.

        A conductor with a fault serves calls, and repeats its jobs until they succeed.
        """
        if time.monotonic() >= self._check_due:
            self._fault = ''
            try:
                self._connections.placement.check_connection()
            except CyborgError as error:
                self._fault = error.full_text
            pause = _RECHECK_INTERVAL if self._fault else _CHECK_INTERVAL
            self._check_due = time.monotonic() + pause
            host, kind = self._settings.host, AttentionKind.NOT_READY
            self._faults.note(kind, host, CONDUCTOR, self._fault)
        return self._fault

    def _wait_for_database(self) -> bool:
        """Check the schema; return False if the stop came before the database."""
        while True:
            try:
                self._connections.database.read(check_revision)
                return True
            except DatabaseRefused:
                raise
            except ServiceUnavailable as error:
                LOG.warning(
                    '%s Next attempt in %.0f s. %s',
                    error.text,
                    _DATABASE_INTERVAL,
                    error.advice,
                )
            if self._stopping.wait(_DATABASE_INTERVAL):
                return False

    def build_dependencies(self, agents: Agents) -> JobDependencies:
        """Return the objects that handlers and services share."""
        connections, settings = self._connections, self._settings
        database = connections.database
        sync = PlacementSync(
            database, connections.placement, settings.hosts_without_compute
        )
        sync_jobs = HostSyncJobs(database, sync, create_owner(settings.job_lease))
        catalog = BitstreamCatalog(
            connections.glance, settings.largest_image, settings.default_images
        )
        return JobDependencies(
            database=database,
            placement=connections.placement,
            nova=connections.nova,
            agents=agents,
            loader=BitstreamLoader(database, agents, catalog, sync_jobs.sync),
            sync=sync,
            sync_jobs=sync_jobs,
            metrics=self._metrics,
            bind_rules=settings.rules,
            audit_rules=AuditRules(
                settings.orphan_grace,
                settings.rules.require_allocation,
                Pace(settings.audit_rate, self._stopping.wait),
            ),
            playbooks=PlaybookRunner(settings.job_lease, self._stopping),
            hardware_sets=settings.hardware_sets,
            reap_orphans=settings.reap_orphans,
        )

    def build_dispatcher(
        self,
        dependencies: JobDependencies,
        runner: JobRunner,
        heartbeats: HeartbeatBatch,
    ) -> Dispatcher:
        """Return the services behind the interface of the conductor."""
        settings = self._settings
        database, rules = dependencies.database, settings.rules
        catalog = dependencies.loader.catalog
        explanations = ExplanationService(
            database, dependencies.placement, rules.nova, catalog
        )
        limits = LimitService(
            database, self._connections.limits, settings.max_unbound_requests
        )
        services = (
            DeviceProfileService(database, explanations, runner.wake),
            AlternativeService(
                database, dependencies.placement, settings.alternative_lifetime
            ),
            ArqService(
                database,
                runner,
                rules,
                catalog,
                dependencies.agents,
                limits,
                self.watch,
            ),
            DeviceService(database, dependencies.sync_jobs.sync),
            Transactions(database),
            HostService(database, dependencies.sync_jobs),
            self._build_inventory(runner, heartbeats),
            limits,
            ModeService(database, dependencies.agents, runner.wake),
            *_build_operations(dependencies, runner),
            RecoveryService(
                database, runner.wake, rules.event_deadline, rules.connect_deadline
            ),
            UnownedHandles(
                database, dependencies.placement, dependencies.nova, runner.wake
            ),
        )
        return Dispatcher(INTERFACE, services)

    def _build_inventory(
        self, runner: JobRunner, heartbeats: HeartbeatBatch
    ) -> InventoryService:
        return InventoryService(
            self._connections.database,
            runner.wake,
            heartbeats,
            partial(self._metrics.count, 'agent_heartbeats'),
            self._faults.note_duplicate,
            self._settings.new_status,
            self.watch,
        )

    def _build_loops(
        self, heartbeats: HeartbeatBatch, wake: Callable[[], None]
    ) -> Mapping[str, Callable[[], None]]:
        """Return the functions that run until the stop, by the name of their thread."""
        settings, stopping = self._settings, self._stopping
        database = self._connections.database
        conductor = connect_conductor(self._connections.transport)
        liveness = LivenessMonitor(
            database,
            wake,
            settings.agent_down_after,
            stopping,
            lambda: is_reachable(conductor, daemon_context()),
        )
        audits = AuditScheduler(database, wake, settings.audit_interval, stopping)
        placement_audits = PlacementAuditScheduler(
            database, wake, settings.placement_audit_interval, stopping
        )
        return {
            'database-watch': partial(self.watch.run, stopping),
            'placement-audits': placement_audits.run,
            'purge': Purger(
                database, self._connections.placement, stopping, settings.retention
            ).run,
            'heartbeat': self._send_heartbeats,
            'heartbeat-batch': heartbeats.run,
            'faults': self._faults.run,
            'liveness': liveness.run,
            'audits': audits.run,
            **self._build_sender(),
        }

    def _build_sender(self) -> Mapping[str, Callable[[], None]]:
        """Return the loop that sends notifications; empty if they are disabled."""
        bus = self._connections.notifications
        if bus is None:
            return {}
        sender = NotificationSender(
            self._connections.database,
            bus,
            create_owner(_SENDER_LEASE),
            self._settings.max_backlog,
            lambda result, number: self._metrics.count(
                'notifications', result, number=number
            ),
        )
        return {'notifications': partial(sender.run, self._stopping)}

    def _start_metrics(self) -> None:
        """Count calls of Placement, and serve the metrics if ports are configured."""
        self._connections.placement.observe_requests(self._metrics.count_placement_call)
        self._metrics.add_database_metrics(
            self._connections.database,
            serves_each_device=self._settings.serves_each_device,
        )
        signer = find_signer(self._connections.transport)
        if signer is not None:
            signer.note_refusal = self._note_refusal
            signer.note_key = self._faults.note_key
        if self._settings.metrics_ports:
            address = self._settings.metrics_host
            self._metrics.serve(address, self._settings.metrics_ports)

    def _note_refusal(self, reason: str, sender: str) -> None:
        self._metrics.count('refused_messages', reason)
        self._faults.note_refusal(reason, sender)

    def list_threads(self) -> list[threading.Thread]:
        """Return the threads that run until the stop."""
        jobs = [] if self._runner is None else self._runner.list_threads()
        return [*self._loops, *jobs]

    def stop(self) -> None:
        """Accept no more calls and lease no more jobs."""
        self._stopping.set()
        for server in self._servers:
            server.stop()
        if self._runner is not None:
            self._runner.stop()

    def wait(self) -> None:
        """Return when running calls and jobs have ended. Call ``stop`` before."""
        for server in self._servers:
            server.wait()
        if self._runner is not None:
            self._runner.wait()
        for thread in self._loops:
            thread.join()
        self._connections.transport.cleanup()
        if self._connections.own_api is not None:
            self._connections.own_api.cleanup()
        if self._connections.notifications is not None:
            self._connections.notifications.close()
        self._connections.database.close()

    def _send_heartbeats(self) -> None:
        pause = min(_HEARTBEAT_INTERVAL, self._settings.agent_down_after / 3)
        record = services.record_start
        while True:
            try:
                self._connections.database.write(
                    record, CONDUCTOR, self._settings.host, VERSION
                )
                record = services.record_heartbeat
            except CyborgError as error:
                LOG.error(
                    'Writing the heartbeat of conductor %s failed: %s',
                    self._settings.host,
                    error.text,
                )
            if self._stopping.wait(pause):
                return


def _build_operations(
    dependencies: JobDependencies, runner: JobRunner
) -> tuple[object, ...]:
    """Return the service of operations, and those that do the work of an operation."""
    database = dependencies.database
    cleaning = CleaningService(database)
    programming = ProgrammingService(
        database, dependencies.loader, runner, dependencies.program_waiters
    )
    configuration = ReconfigurationService(
        database, dependencies.hardware_sets, runner.wake
    )
    restarts: dict[str, Restart] = {
        OperationKind.CLEANING: cleaning.restart,
        OperationKind.PROGRAM: programming.restart,
        OperationKind.CONFIGURATION: configuration.restart,
    }
    operations = OperationService(database, runner.wake, restarts)
    return cleaning, programming, configuration, operations
