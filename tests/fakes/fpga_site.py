# SPDX-License-Identifier: Apache-2.0
"""A host of the fixtures with FPGAs: its kernel, its agent, and the rooms around it.

No bus is between them; what travels is packed as on one.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.image_cache import ImageCache
from cyborg_lite.agent.journal import Journal
from cyborg_lite.agent.loaded import LoadedRegions
from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.agent.programming import Programming, Stock
from cyborg_lite.agent.recovery import Recovery as HostRecovery
from cyborg_lite.clients.glance import Glance
from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.binding import BindHandler, bind_job
from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.conductor.loading import Loader
from cyborg_lite.conductor.placement_sync import PlacementSync
from cyborg_lite.conductor.recovery import Recovery
from cyborg_lite.conductor.releasing import ReleaseHandler
from cyborg_lite.db import arqs, binding, inventory, jobs, recovery, release
from cyborg_lite.db.engine import Database
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.model.arqs import Arq, Binding, Scope
from cyborg_lite.model.bitstreams import Image, LoadOrder
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.host_events import Outcome
from cyborg_lite.model.inventory import Deployable, Device
from cyborg_lite.model.jobs import Job, Kind
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.agent import AgentAPI
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import RequestContext
from tests.fakes.bitstream_files import LARGEST
from tests.fakes.consumers import FakeConsumers
from tests.fakes.kernel import FakeKernel
from tests.fakes.real_placement import CountedRemote
from tests.fakes.rows import OWNER, PROJECT, add_profile
from tests.unit.conductor.test_binding import RULES
from tests.unit.drivers.benches import LOADING

# What the drivers of cards show only while they are bound to them.
_HIDDEN: Final = ('fpga_region', 'xclbinuuid', 'interface_uuids', 'logic_uuids')
_EVERYBODY: Final = Scope(project_id=None)


class HostAgents(AgentAPI):
    """The agent of one host as it is now."""

    def __init__(self, site: 'FpgaSite') -> None:
        self._site = site

    def prepare(
        self, context: RequestContext, host: str, handles: Sequence[HeldHandle]
    ) -> None:
        sent = wire.load_all(HeldHandle, wire.dump(list(handles)))
        self._site.preparation.prepare(sent)

    def release(
        self, context: RequestContext, host: str, handles: Sequence[HeldHandle]
    ) -> None:
        sent = wire.load_all(HeldHandle, wire.dump(list(handles)))
        self._site.preparation.release(sent)

    def program(self, context: RequestContext, host: str, order: LoadOrder) -> Device:
        sent = wire.load(LoadOrder, wire.dump(order))
        return wire.load(Device, wire.dump(self._site.programming.program(sent)))


class Listening(ConductorAPI):
    """The conductor, as far as an agent tells it of a boot."""

    def __init__(self, conductor: Recovery) -> None:
        self._conductor = conductor

    def report_recovery(
        self,
        context: RequestContext,
        host: str,
        boot_id: str,
        *,
        rebuilt: Sequence[str],
        lost: Mapping[str, str],
    ) -> tuple[HeldHandle, ...]:
        told = Outcome(host, boot_id, tuple(rebuilt), lost)
        return self._conductor.settle(wire.load(Outcome, wire.dump(told)))


class Shop:
    """A real Glance that can be cut off."""

    def __init__(self, glance: Glance) -> None:
        self.away = False
        self._glance = glance

    def _reached(self) -> Glance:
        if self.away:
            raise ServiceUnavailable(what='Glance')
        return self._glance

    def image(self, uuid: str) -> Image:
        return self._reached().image(uuid)

    def bitstreams(self, properties: Mapping[str, str]) -> tuple[Image, ...]:
        return self._reached().bitstreams(properties)

    def content(self, uuid: str, algorithm: str, expected: str) -> Iterator[bytes]:
        return self._reached().content(uuid, algorithm, expected)


class FpgaSite:
    """One host under a name of its own: a Placement serves all tests of a process."""

    def __init__(
        self,
        database: Database,
        remote: CountedRemote,
        root: Path,
        cards: str,
        shop: Shop,
    ) -> None:
        """:param cards: of ``LOADING``"""
        self._bench, self._shop = LOADING[cards], shop
        self.database = database
        tree = root / 'host'
        tree.mkdir()
        kernel = self._bench.build(tree)
        assert isinstance(kernel, FakeKernel)
        self.kernel = kernel
        self.host = Host(f'compute-{uuid4()}', tree, kernel)
        self.kept = root / 'images'
        self._state = root / 'state'
        self.placement = Placement(remote)
        self.placement.create_provider(str(uuid4()), self.host.name, None)
        self.sync = PlacementSync(database, self.placement)
        self.consumers = FakeConsumers()
        agents = HostAgents(self)
        loader = Loader(database, agents, Library(shop, LARGEST), self.sync.sync)
        self.binder = BindHandler(database, agents, self.consumers, RULES, loader)
        self.releaser = ReleaseHandler(database, agents, loader)
        self.start()
        self.report()

    def start(self) -> None:
        """A process of the agent; an earlier one has ended."""
        driver = self._bench.make(self.host)
        loaded = LoadedRegions(self.kept)
        self.discovery = Discovery(self.host, {driver.NAME: driver}, 60, loaded.amended)
        self.cache, journal = Cache(self._state), Journal(self._state)
        self.cache.open()
        self.discovery.recall(self.cache.findings or ())
        journal.open()
        store = ImageCache(self.kept, self._shop, largest=LARGEST, capacity=LARGEST)
        self.programming = Programming(self.discovery, Stock(store, loaded))
        parts = self.discovery, self.cache, journal
        self.preparation = Preparation(*parts, self.programming.program)
        self.recovery = HostRecovery(
            self.discovery, self.preparation, self.cache, journal, patience=0
        )
        self.discovery.look()

    def report(self) -> None:
        """From the hardware to Placement."""
        self.discovery.look()
        self.cache.keep_findings(self.discovery.reported())
        self.tell()

    def tell(self) -> None:
        """As at a heartbeat, for which nobody looks."""
        self.database.write(inventory.store, self.discovery.report())
        self.sync.sync(self.host.name)

    def deployable(self, address: str) -> Deployable:
        devices = self.discovery.report().devices
        (found,) = (each.root for each in devices if each.address == address)
        return found

    def shown(self, address: str) -> tuple[frozenset[str], dict[str, tuple[int, int]]]:
        """Traits and inventories in Placement."""
        uuid = self.deployable(address).provider_uuid
        inventories = self.placement.inventories(uuid).inventories
        return self.placement.traits(uuid).traits, {
            name: (each.total, each.reserved) for name, each in inventories.items()
        }

    # --- requests ---

    def bind(self, address: str, group: Mapping[str, str]) -> str:
        """The instance for which the card is asked, once that has ended."""
        profile = add_profile(self.database, [{'resources:FPGA': '1', **group}])
        made = self.database.write(arqs.create, profile, PROJECT)
        instance = str(uuid4())
        provider = self.deployable(address).provider_uuid
        self.consumers.allocate(instance, [provider], PROJECT)
        wanted = {arq.uuid: Binding(self.host.name, provider, instance) for arq in made}
        new = bind_job(wanted, RULES, None)
        job = self.database.write(binding.accept, wanted, _EVERYBODY, new, OWNER)
        self.binder.run(job)
        self._clean()
        return instance

    def release(self, instance: str) -> None:
        self.database.write(release.delete_of_instance, instance, _EVERYBODY, None)
        self._clean()

    def _clean(self) -> None:
        for job in self._jobs(Kind.RELEASE):
            self.releaser.run(job)
        self.sync.sync(self.host.name)

    def _jobs(self, kind: Kind) -> Sequence[Job]:
        return self.database.write(jobs.take, OWNER, 10, [kind])

    def arqs(self, instance: str) -> tuple[Arq, ...]:
        query = Query({'instance_uuid': (instance,)})
        return self.database.read(arqs.listed, query, _EVERYBODY)

    def state(self, instance: str) -> str:
        """That all of its requests are in."""
        (state,) = {arq.state.value for arq in self.arqs(instance)}
        return state

    # --- guests ---

    @contextmanager
    def guest(self, address: str) -> Iterator[None]:
        """One has the function, and nobody else sees what is in it."""
        device = (self.host.root / 'sys/bus/pci/devices' / address).resolve()
        driver, aside = device / 'driver', self._state.with_name('aside')
        before = driver.readlink()
        aside.mkdir()
        hidden = [one for one in _HIDDEN if (device / one).exists()]
        for name in hidden:
            (device / name).rename(aside / name)
        guests = self.host.root / 'sys/bus/pci/drivers/vfio-pci'
        guests.mkdir(parents=True, exist_ok=True)
        driver.unlink()
        driver.symlink_to(guests)
        yield
        driver.unlink()
        driver.symlink_to(before)
        for name in hidden:
            (aside / name).rename(device / name)
        aside.rmdir()

    # --- boots ---

    def boot(self) -> None:
        """The host comes back, and its agent tells what it could make of it."""
        self.kernel.reboot()
        name, boot_id = self.host.name, self.host.boot_id
        self.database.write(recovery.notice_boot, name, boot_id)
        self.start()
        self.recovery.rebuild(threading.Event(), 0)
        conductor = Recovery(self.database, lambda: None, 60)
        self.recovery.tell(Listening(conductor))
        self.report()
