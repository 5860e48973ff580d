# SPDX-License-Identifier: Apache-2.0
"""A host whose agent may die, and how a conductor calls that agent."""

import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.image_cache import ImageCache, Source
from cyborg_lite.agent.journal import Journal
from cyborg_lite.agent.loaded import LoadedRegions
from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.agent.programming import Programming, Stock
from cyborg_lite.agent.watching import Timing, Watcher
from cyborg_lite.crash_kit.fate import Fate, MortalKernel
from cyborg_lite.drivers.base import Driver, Recalling
from cyborg_lite.drivers.kit import HOSTNAME, Bench
from cyborg_lite.drivers.kit_faults import Death
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import HostAway
from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Device, Finding, HostReport
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.agent import AgentAPI
from cyborg_lite.rpc.context import RequestContext

T = TypeVar('T')

LARGEST: Final = 1 << 30  # bytes, of one image and of all
_TIMING: Final = Timing(
    discovery_interval=60, heartbeat_interval=60, driver_timeout=60, removal_scans=1
)


class Agent:
    """One process: what it does, and what it has looked up of an earlier one."""

    def __init__(self, driver: Driver, host: Host, state: Path, images: Source) -> None:
        self.cache, journal = Cache(state), Journal(state)
        self.cache.open()
        journal.open()
        loaded = LoadedRegions(state)
        self._discovery = Discovery(host, {driver.NAME: driver}, 60, loaded.amended)
        parts = self._discovery, self.cache, journal
        self._watcher = Watcher(*parts, _TIMING, threading.Event())
        if isinstance(driver, Recalling):
            driver.recall([kept.handle for kept in self.cache.kept.values()])
        self._watcher.recall()
        self.preparation = Preparation(*parts)
        stored = ImageCache(state / 'images', images, largest=LARGEST, capacity=LARGEST)
        self.programming = Programming(self._discovery, Stock(stored, loaded))
        self._watcher.look()

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self._discovery.findings

    def report(self) -> HostReport:
        """After another look."""
        self._watcher.look()
        return self._discovery.report()


class MortalHost:
    """What is on disk and in the kernel stays; the agent is made anew when it died."""

    def __init__(self, bench: Bench, images: Source, root: Path, fate: Fate) -> None:
        self.fate = fate
        self._bench = bench
        self._images = images
        self._state = root / 'agent'
        tree = root / 'host'
        tree.mkdir(parents=True)
        self._host = Host(HOSTNAME, tree, MortalKernel(bench.build(tree), fate))
        self._agent: Agent | None = None  # None: it is dead, or not yet started
        self._at_work = False
        fate.at_death = self._keep_state

    @property
    def agent(self) -> Agent:
        if self._agent is None:
            driver = self._bench.make(self._host)
            self._agent = Agent(driver, self._host, self._state, self._images)
        return self._agent

    def successor(self) -> Agent:
        """The one that is there after a restart."""
        self._agent = None
        return self.agent

    def ask(self, act: Callable[[Agent], T]) -> T:
        """:raises HostAway: the agent died meanwhile"""
        self._at_work = True
        try:
            return act(self.agent)
        except Death:
            self._agent = None
            self.fate.succeed()
            raise HostAway(host=HOSTNAME) from None
        finally:
            self._at_work = False

    def _keep_state(self) -> None:
        """What the unwinding process still writes is read by nobody."""
        if not self._at_work:
            return  # it is the conductor that dies
        kept = self._state.with_name(f'{self._state.name}-left')
        if self._state.exists():
            shutil.copytree(self._state, kept)
        self._state = kept


class MortalAgents(AgentAPI):
    """Each call is a step of the conductor, and again one of the agent."""

    def __init__(self, host: MortalHost) -> None:
        self._host = host

    def prepare(
        self, context: RequestContext, host: str, handles: Sequence[HeldHandle]
    ) -> None:
        self._call('prepare', lambda one: one.preparation.prepare(_sent(handles)))

    def release(
        self, context: RequestContext, host: str, handles: Sequence[HeldHandle]
    ) -> None:
        self._call('release', lambda one: one.preparation.release(_sent(handles)))

    def program(self, context: RequestContext, host: str, order: LoadOrder) -> Device:
        sent = wire.load(LoadOrder, wire.dump(order))
        return self._call('program', lambda one: one.programming.program(sent))

    def _call(self, method: str, act: Callable[[Agent], T]) -> T:
        fate = self._host.fate

        def work(agent: Agent) -> T:
            with fate.step(f'the work of {method}'):
                return act(agent)

        with fate.step(f'the call of {method}'):
            return self._host.ask(work)


def _sent(handles: Sequence[HeldHandle]) -> tuple[HeldHandle, ...]:
    """As they arrive over the bus."""
    return wire.load_all(HeldHandle, wire.dump(list(handles)))
