# SPDX-License-Identifier: Apache-2.0
"""The agent as a daemon: what it is made of, and how it starts and stops."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from oslo_log import log

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.journal import Journal
from cyborg_lite.agent.manager import Manager
from cyborg_lite.agent.measuring import Measurements
from cyborg_lite.agent.ownership import Ownership
from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.agent.programming import Programming, Stock
from cyborg_lite.agent.recovery import Recovery
from cyborg_lite.agent.reporting import Reporter, Sources
from cyborg_lite.agent.upkeep import Upkeep
from cyborg_lite.agent.watching import Timing, Watcher
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import ConfigurationError
from cyborg_lite.model.inventory import Finding
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.transport import AGENT_TOPIC, Server, Transport, serve

LOG = log.getLogger(__name__)

BINARY: Final = 'cyborg-lite-agent'

# Seconds for a report under way at the end. Nothing is lost without it: the next
# process reports anew, and the conductor may well be the one that does not answer.
_LAST_REPORT: Final = 5.0


@dataclass(frozen=True, slots=True)
class Resources:
    """What the agent has of its host."""

    host: Host
    drivers: Mapping[str, Driver]  # by the name of their entry point
    state_path: Path  # what it must know after a restart is kept there
    stock: Stock | None = None  # None: it loads no bitstreams
    ownership: Ownership | None = None  # None: all that is found is ours


class AgentService:
    """The agent of one host. It closes the transport when it has ended."""

    def __init__(
        self, transport: Transport, resources: Resources, timing: Timing
    ) -> None:
        self._transport = transport
        self._resources = resources
        self._timing = timing
        self._cache = Cache(resources.state_path)
        self._journal = Journal(resources.state_path)
        self._measurements = Measurements(resources.drivers)
        self._stopping = threading.Event()
        self._server: Server | None = None  # None, with the next: not started
        self._bells: list[Callable[[], None]] = []  # of the loops
        self._loops: list[threading.Thread] = []

    def start(self) -> None:
        """Make the host what it was before it was booted, then serve.

        The conductor hears of the boot meanwhile if it is there; neither it nor the
        bus is needed for that.

        :raises ConfigurationError: two drivers claim one function
        """
        resources, timing = self._resources, self._timing
        self._cache.open()
        self._journal.open()
        discovery = self._discovery()
        parts = discovery, self._cache, self._journal
        watcher = Watcher(*parts, timing, self._stopping)
        discovery.own(kept.handle for kept in self._cache.kept.values())
        watcher.recall()
        watcher.look()
        _check_quarrels(discovery)
        stock = resources.stock
        programming = Programming(discovery, stock, watcher.want) if stock else None
        load = programming.program if programming else None
        preparation = Preparation(*parts, load)
        recovery = Recovery(
            discovery,
            preparation,
            self._cache,
            self._journal,
            timing.recovery_patience,
        )
        reporter = self._speak(discovery, recovery)
        if recovery.rebuild(self._stopping):
            watcher.look()
        if self._stopping.is_set():
            return
        reporter.rebuilt()
        self._measurements.watch(watcher.want)
        upkeep = Upkeep(preparation, self._cache, self._journal, self._stopping)
        self._bells.append(upkeep.wake)
        self._begin('upkeep', upkeep.run)
        self._begin('watch', lambda: watcher.run(reporter.wake, upkeep.wake))
        self._serve(Manager(preparation, programming))

    def _discovery(self) -> Discovery:
        loaded, ill = self._resources.stock, self._measurements.amended
        ours = self._resources.ownership

        def amend(finding: Finding) -> Finding:
            finding = ill(loaded.loaded.amended(finding) if loaded else finding)
            return ours.amended(finding) if ours else finding

        return Discovery(
            self._resources.host,
            self._resources.drivers,
            self._timing.driver_timeout,
            amend,
            self._timing.removal_scans,
        )

    def _speak(self, discovery: Discovery, recovery: Recovery) -> Reporter:
        sources = Sources(discovery, self._measurements, recovery, self._journal)
        reporter = Reporter(
            sources,
            ConductorAPI(self._transport),
            self._timing.heartbeat_interval,
            self._stopping,
        )
        self._bells.append(reporter.wake)
        self._begin('report', reporter.run)
        return reporter

    def _serve(self, manager: Manager) -> None:
        resources = self._resources
        name = resources.host.name
        self._server = serve(self._transport, AGENT_TOPIC, name, [manager])
        self._server.start()
        LOG.info('Drivers enabled: %s.', ', '.join(resources.drivers) or 'none')

    def _begin(self, name: str, loop: Callable[[], None]) -> None:
        # Daemons: what they wait for may never answer.
        thread = threading.Thread(target=loop, name=name, daemon=True)
        self._loops.append(thread)
        thread.start()

    def retire(self) -> None:
        """Report no more, and return when the last report has been answered.

        Calls are still served: a conductor that ends may need us to finish a job.
        """
        self._end_loops()

    def stop(self) -> None:
        """Take no more calls."""
        self._stop_loops()
        if self._server is not None:
            self._server.stop()

    def wait(self) -> None:
        """Return when the calls that were begun have ended."""
        if self._server is not None:
            self._server.wait()
        self._end_loops()
        self._transport.cleanup()

    def _stop_loops(self) -> None:
        self._stopping.set()
        for ring in self._bells:
            ring()

    def _end_loops(self) -> None:
        self._stop_loops()
        for loop in self._loops:
            loop.join(_LAST_REPORT)


def _check_quarrels(discovery: Discovery) -> None:
    """:raises ConfigurationError: two drivers claim one function"""
    quarrels = discovery.quarrels()
    if quarrels:
        raise ConfigurationError(reason=f'{"; ".join(quarrels)}.')
