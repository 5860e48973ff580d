# SPDX-License-Identifier: Apache-2.0
"""The conductor as a daemon: what it is made of, and how it starts and stops."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from oslo_log import log

from cyborg_lite.clients.glance import Glance
from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.arqs import Arqs
from cyborg_lite.conductor.audit import AuditRules
from cyborg_lite.conductor.audit_rounds import AuditRounds
from cyborg_lite.conductor.binding import BindRules
from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.conductor.device_profiles import Profiles
from cyborg_lite.conductor.devices import Devices
from cyborg_lite.conductor.explaining import Explaining
from cyborg_lite.conductor.inventory import Inventory
from cyborg_lite.conductor.jobs import JobRunner, owner_of_process
from cyborg_lite.conductor.kinds import handlers
from cyborg_lite.conductor.kinds.workplace import Workplace
from cyborg_lite.conductor.liveness import Liveness
from cyborg_lite.conductor.loading import Loader
from cyborg_lite.conductor.manager import Manager, Rooms
from cyborg_lite.conductor.metrics import Metrics
from cyborg_lite.conductor.placement_rounds import PlacementRounds
from cyborg_lite.conductor.placement_sync import PlacementSync
from cyborg_lite.conductor.programming import Programming
from cyborg_lite.conductor.pulses import Pulses
from cyborg_lite.conductor.recovery import Recovery
from cyborg_lite.db import services
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.rpc.agent import AgentAPI
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import of_daemon
from cyborg_lite.rpc.transport import CONDUCTOR_TOPIC, Server, Transport, serve
from cyborg_lite.version import version

LOG = log.getLogger(__name__)

BINARY: Final = 'cyborg-lite-conductor'
_HEARTBEAT: Final = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Peers:
    """What a conductor talks to; made by the entry point, closed by the service."""

    transport: Transport
    database: Database
    placement: Placement
    nova: Nova
    glance: Glance | None = None  # None: there are no bitstreams to load


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator chose; times in seconds."""

    host: str
    rules: BindRules
    job_workers: int
    job_lease: int
    agent_timeout: int
    agent_down_after: int
    placement_audit_interval: int
    audit_interval: int
    orphan_grace: int
    reap_orphans: bool
    metrics_host: str
    metrics_ports: range  # empty: they are not served
    load_timeout: int
    largest_image: int  # bytes
    default_images: Sequence[str] = ()  # for regions that were released
    hosts_without_compute: Sequence[str] = ()  # patterns of their names


class ConductorService:
    """One process of the conductor."""

    def __init__(self, peers: Peers, settings: Settings) -> None:
        self._peers = peers
        self._settings = settings
        self._stopping = threading.Event()
        self._metrics = Metrics()
        self._runner: JobRunner | None = None  # None, with the next: not started
        self._server: Server | None = None
        self._loops: list[threading.Thread] = []

    def start(self) -> None:
        owner = owner_of_process(self._settings.job_lease)
        workers = self._settings.job_workers
        database = self._peers.database
        self._show_metrics()
        sync = PlacementSync(
            database, self._peers.placement, self._settings.hosts_without_compute
        )
        agents = AgentAPI(
            self._peers.transport,
            self._settings.agent_timeout,
            self._settings.load_timeout,
        )
        library = self._library()
        loader = Loader(database, agents, library, sync.sync)
        workplace = self._workplace(sync, agents, loader)
        of_kinds = handlers(workplace)
        runner = JobRunner(database, of_kinds, owner, workers, self._metrics)
        pulses = Pulses(database, self._stopping)
        heard = self._metrics.heartbeat_heard
        rooms = Rooms(
            profiles=Profiles(database, Explaining(database, self._peers.placement)),
            arqs=Arqs(database, runner, self._settings.rules, library),
            devices=Devices(database, sync),
            inventory=Inventory(database, runner.wake, pulses, heard),
            programming=Programming(database, loader, runner, workplace.waiting),
            recovery=Recovery(
                database, runner.wake, self._settings.rules.event_deadline
            ),
        )
        manager = Manager(database, rooms)
        host = self._settings.host
        self._server = serve(self._peers.transport, CONDUCTOR_TOPIC, host, [manager])
        self._runner = runner
        self._loops = [
            threading.Thread(target=loop, name=name, daemon=True)
            for name, loop in self._work(pulses, runner.wake).items()
        ]
        runner.start()
        for loop in self._loops:
            loop.start()
        self._server.start()

    def _work(
        self, pulses: Pulses, wake: Callable[[], None]
    ) -> Mapping[str, Callable[[], None]]:
        """What goes on all the time, each on a thread of that name."""
        database, settings = self._peers.database, self._settings
        stopping, hears = self._stopping, ConductorAPI(self._peers.transport).is_heard
        liveness = Liveness(
            database,
            wake,
            settings.agent_down_after,
            stopping,
            lambda: hears(of_daemon()),
        )
        rounds = AuditRounds(database, wake, settings.audit_interval, stopping)
        every = settings.placement_audit_interval
        placement = PlacementRounds(database, wake, every, stopping)
        return {
            'placement': placement.run,
            'heartbeat': self._beat,
            'pulses': pulses.run,
            'liveness': liveness.run,
            'audit': rounds.run,
        }

    def _library(self) -> Library:
        largest, defaults = self._settings.largest_image, self._settings.default_images
        return Library(self._peers.glance, largest, defaults)

    def _workplace(
        self, sync: PlacementSync, agents: AgentAPI, loader: Loader
    ) -> Workplace:
        peers, settings = self._peers, self._settings
        return Workplace(
            database=peers.database,
            placement=peers.placement,
            nova=peers.nova,
            agents=agents,
            loader=loader,
            sync=sync,
            metrics=self._metrics,
            rules=settings.rules,
            audit_rules=AuditRules(
                settings.orphan_grace, settings.rules.require_allocation
            ),
            reap_orphans=settings.reap_orphans,
        )

    def _show_metrics(self) -> None:
        """:raises ConfigurationError: the port is taken"""
        self._peers.placement.watch(self._metrics.placement_answered)
        self._metrics.watch(self._peers.database)
        if self._settings.metrics_ports:
            address = self._settings.metrics_host
            self._metrics.serve(address, self._settings.metrics_ports)

    def stop(self) -> None:
        """Take no more calls and no more jobs."""
        self._stopping.set()
        if self._server is not None:
            self._server.stop()
        if self._runner is not None:
            self._runner.stop()

    def wait(self) -> None:
        """Return when the calls and jobs that were begun have ended."""
        if self._server is not None:
            self._server.wait()
        if self._runner is not None:
            self._runner.wait()
        for loop in self._loops:
            loop.join()
        self._peers.transport.cleanup()
        self._peers.database.close()

    def _beat(self) -> None:
        pause = min(_HEARTBEAT, self._settings.agent_down_after / 3)
        while True:
            try:
                self._peers.database.write(
                    services.beat, BINARY, self._settings.host, version()
                )
            except CyborgError as error:
                LOG.error('Cannot write the heartbeat: %s', error.text)
            if self._stopping.wait(pause):
                return
