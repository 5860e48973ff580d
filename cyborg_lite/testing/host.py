# SPDX-License-Identifier: Apache-2.0
"""A host whose agent process can crash, and the RPC client of the conductor for it."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.bitstreams.image_cache import ImageCache
from cyborg_lite.agent.bitstreams.loaded_bitstreams import LoadedBitstreams
from cyborg_lite.agent.bitstreams.programming import BitstreamStore, Programming
from cyborg_lite.agent.devices.cleaning import Cleaning
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.devices.modes import Modes, ModeStore
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.inventory.hardware_monitor import AgentIntervals, HardwareMonitor
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal
from cyborg_lite.clients.glance import Glance
from cyborg_lite.drivers.base import Driver, TracksHandles
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.inventory.host_report import DiscoveryResult, HostReport
from cyborg_lite.rpc.client import build_agents, serve_locally
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import Dispatcher
from cyborg_lite.rpc.interface import Agents
from cyborg_lite.rpc.methods import AGENTS
from cyborg_lite.rpc.transport import Message
from cyborg_lite.testing.crash_points import CrashableKernel, CrashPoint
from cyborg_lite.testing.driver_checks import HOSTNAME, Bench
from cyborg_lite.testing.fault_injection import ProcessCrash

T = TypeVar('T')

MAX_IMAGE_SIZE: Final = 1 << 30  # bytes, of one image and of the cache
_INTERVALS: Final = AgentIntervals(
    discovery_interval=60, heartbeat_interval=60, driver_timeout=60, removal_scans=1
)


class AgentProcess:
    """A process of the agent, with the state that it read at its start."""

    def __init__(self, driver: Driver, host: Host, state: Path, images: Glance) -> None:
        """Start the process and scan the host.

        :param state: directory of the state files
        """
        self.cache, journal = Cache(state), Journal(state)
        self.cache.open()
        journal.open()
        loaded = LoadedBitstreams(state, host)
        self._discovery = Discovery(host, {driver.NAME: driver}, 60, loaded.amend)
        components = self._discovery, self.cache, journal
        self._monitor = HardwareMonitor(*components, _INTERVALS, threading.Event())
        if isinstance(driver, TracksHandles):
            driver.restore_handles(
                [prepared.handle for prepared in self.cache.handles.values()]
            )
        self._monitor.restore_results()
        locks = DeviceLocks()
        self.preparation = Preparation(*components, locks)
        self.cleaning = Cleaning(self._discovery, self.cache, locks, self._defer_clean)
        self._deferred_cleans: list[Callable[[], None]] = []
        image_cache = ImageCache(
            state / 'images', images, largest=MAX_IMAGE_SIZE, capacity=MAX_IMAGE_SIZE
        )
        store = BitstreamStore(image_cache, loaded)
        self.programming = Programming(self._discovery, store, locks)
        self.modes = Modes(self._discovery, self.cache, ModeStore(state), locks)
        services = self.preparation, self.cleaning, self.programming, self.modes
        self._serve = serve_locally(Dispatcher(AGENTS, services))
        self._monitor.scan()
        self.modes.restore_all()

    def _defer_clean(self, work: Callable[[], None], _name: str) -> None:
        """Keep a cleaning run until the next call.

        Without a thread each crash point is reached in the same order.
        """
        self._deferred_cleans.append(work)

    # Any: the answer is JSON.
    def answer(self, context: RequestContext, message: Message) -> Any:
        """Complete the cleaning runs that have started, and serve a call."""
        while self._deferred_cleans:
            self._deferred_cleans.pop()()
        return self._serve(context, message)

    @property
    def results(self) -> tuple[DiscoveryResult, ...]:
        """The results of the last scan."""
        return self._discovery.results

    def report(self) -> HostReport:
        """Scan the host and return the report."""
        self._monitor.scan()
        return self._discovery.report()


class CrashableHost:
    """A host whose files persist while agent processes crash and restart."""

    def __init__(
        self, bench: Bench, images: Glance, root: Path, crash_point: CrashPoint
    ) -> None:
        """Build the host of the bench in a new directory ``root``."""
        self.crash_point = crash_point
        self._bench = bench
        self._images = images
        self._state = root / 'agent'
        tree = root / 'host'
        tree.mkdir(parents=True)
        kernel = CrashableKernel(bench.build(tree), crash_point)
        self._host = Host(HOSTNAME, tree, kernel)
        self._agent: AgentProcess | None = None  # None: crashed or not started
        self._is_calling = False
        crash_point.on_crash = self._freeze_state

    @property
    def agent(self) -> AgentProcess:
        """The running agent process; it is started if there is none."""
        if self._agent is None:
            driver = self._bench.make(self._host)
            self._agent = AgentProcess(driver, self._host, self._state, self._images)
        return self._agent

    def restart_agent(self) -> AgentProcess:
        """Start a new agent process and return it."""
        self._agent = None
        return self.agent

    def call(self, operation: Callable[[AgentProcess], T]) -> T:
        """Call the agent.

        :raises HostAway: the agent crashed during the call
        """
        self._is_calling = True
        try:
            return operation(self.agent)
        except ProcessCrash:
            self._agent = None
            self.crash_point.restart()
            raise HostAway(host=HOSTNAME) from None
        finally:
            self._is_calling = False

    def _freeze_state(self) -> None:
        """Copy the state files at a crash, so that later writes have no effect.

        The crashed process still runs its cleanup, which a killed process would not.
        """
        if not self._is_calling:
            return  # the conductor crashed
        frozen = self._state.with_name(f'{self._state.name}-left')
        if self._state.exists():
            shutil.copytree(self._state, frozen)
        self._state = frozen


def connect_crashable(host: CrashableHost) -> Agents:
    """Return the RPC client of the conductor. Each call is a step of both processes."""
    crash_point = host.crash_point

    # Any: the answer is JSON.
    def send(context: RequestContext, message: Message) -> Any:
        def work(agent: AgentProcess) -> Any:
            with crash_point.step(f'the work of {message.method}'):
                return agent.answer(context, message)

        with crash_point.step(f'the call of {message.method}'):
            return host.call(work)

    return build_agents(send)
