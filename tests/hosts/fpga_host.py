# SPDX-License-Identifier: Apache-2.0
"""Fixture host with FPGAs: its emulated kernel, its agent and the conductor's services.

There is no message bus; messages are serialized as on a real one.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.arqs.recovery import HostRecovery
from cyborg_lite.agent.bitstreams.image_cache import ImageCache
from cyborg_lite.agent.bitstreams.loaded_bitstreams import LoadedBitstreams
from cyborg_lite.agent.bitstreams.programming import BitstreamStore, Programming
from cyborg_lite.agent.devices.cleaning import Cleaning
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal
from cyborg_lite.clients.glance import Glance
from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.arqs.binding import BindHandler, build_bind_job
from cyborg_lite.conductor.arqs.recovery import RecoveryService
from cyborg_lite.conductor.arqs.releasing import ReleaseHandler
from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.conductor.bitstreams.loading import BitstreamLoader
from cyborg_lite.conductor.devices.cleaning import CleanHandler
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.arqs import arqs, binding, recovery, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import queue
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.arqs.arqs import Arq, Binding, Scope
from cyborg_lite.model.bitstreams.bitstreams import Image
from cyborg_lite.model.inventory.host_report import Deployable
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.client import build_agents, build_conductor, serve_locally
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import Dispatcher
from cyborg_lite.rpc.interface import Agents
from cyborg_lite.rpc.methods import AGENTS, CONDUCTOR
from cyborg_lite.rpc.transport import Message
from tests.builders.bind_rules import RULES
from tests.builders.bitstream_files import LARGEST
from tests.builders.rows import OWNER, PROJECT, add_profile
from tests.doubles.consumers import FakeConsumers
from tests.hosts.driver_benches import LOADING
from tests.hosts.kernel import FakeKernel
from tests.servers.placement import CountedRemote

# Attributes that drivers show only while they are bound to the card.
_HIDDEN: Final = ('fpga_region', 'xclbinuuid', 'interface_uuids', 'logic_uuids')
_EVERYBODY: Final = Scope(project_id=None)


def connect_site(site: 'FpgaHost') -> Agents:
    """Return a client of the agent of the host at the time of the call."""

    # Any: the answer is JSON.
    def send(context: RequestContext, message: Message) -> Any:
        services = site.preparation, site.programming, site.cleaning
        return serve_locally(Dispatcher(AGENTS, services))(context, message)

    return build_agents(send)


class DisconnectableGlance(Glance):
    """Real Glance that can be disconnected."""

    def __init__(self, glance: Glance) -> None:
        self.is_down = False
        self._glance = glance

    def _connect(self) -> Glance:
        if self.is_down:
            raise ServiceUnavailable(what='Glance')
        return self._glance

    def image(self, uuid: str) -> Image:
        return self._connect().image(uuid)

    def bitstreams(self, properties: Mapping[str, str]) -> tuple[Image, ...]:
        return self._connect().bitstreams(properties)

    def content(self, uuid: str, algorithm: str, expected: str) -> Iterator[bytes]:
        return self._connect().content(uuid, algorithm, expected)


class FpgaHost:
    """Host with a unique name, because all tests of a process share one Placement."""

    def __init__(
        self,
        database: Database,
        remote: CountedRemote,
        root: Path,
        cards: str,
        shop: DisconnectableGlance,
    ) -> None:
        """Build the host.

        :param cards: names of ``LOADING``
        """
        self._bench, self._shop = LOADING[cards], shop
        self.database = database
        tree = root / 'host'
        tree.mkdir()
        kernel = self._bench.build(tree)
        assert isinstance(kernel, FakeKernel)
        self.kernel = kernel
        self.host = Host(f'compute-{uuid4()}', tree, kernel)
        self.image_directory = root / 'images'
        self._state = root / 'state'
        self.placement = Placement(remote)
        self.placement.create_provider(str(uuid4()), self.host.name, None)
        self.sync = PlacementSync(database, self.placement)
        self.consumers = FakeConsumers()
        agents = connect_site(self)
        loader = BitstreamLoader(
            database, agents, BitstreamCatalog(shop, LARGEST), self.sync.sync
        )
        self.binder = BindHandler(database, agents, self.consumers, RULES, loader)
        self.releaser = ReleaseHandler(database, agents, loader)
        self.cleaner = CleanHandler(database, agents, self.placement)
        self.start()
        self.report()

    def start(self) -> None:
        """Start a new process of the agent."""
        driver = self._bench.make(self.host)
        loaded = LoadedBitstreams(self.image_directory, self.host)
        self.discovery = Discovery(self.host, {driver.NAME: driver}, 60, loaded.amend)
        self.cache, journal = Cache(self._state), Journal(self._state)
        self.cache.open()
        self.discovery.restore_results(self.cache.results or ())
        journal.open()
        store = ImageCache(
            self.image_directory, self._shop, largest=LARGEST, capacity=LARGEST
        )
        locks = DeviceLocks()
        self.programming = Programming(
            self.discovery, BitstreamStore(store, loaded), locks
        )
        parts = self.discovery, self.cache, journal, locks
        self.preparation = Preparation(*parts, self.programming.program)
        self.cleaning = Cleaning(
            self.discovery, self.cache, locks, lambda work, name: work()
        )
        self.recovery = HostRecovery(
            self.discovery, self.preparation, self.cache, journal, patience=0
        )
        self.discovery.scan()

    def report(self) -> None:
        """Scan, store the report and synchronize with Placement."""
        self.discovery.scan()
        self.cache.save_results(self.discovery.list_reported_results())
        self.store_last_report()

    def store_last_report(self) -> None:
        """Store the last report without a scan, as at a heartbeat."""
        self.database.write(reports.store_report, self.discovery.report())
        self.sync.sync(self.host.name)

    def deployable(self, address: str) -> Deployable:
        devices = self.discovery.report().devices
        (device_root,) = (
            device.root for device in devices if device.control_address == address
        )
        return device_root

    def read_provider(
        self, address: str
    ) -> tuple[frozenset[str], dict[str, tuple[int, int]]]:
        """Return traits and inventories in Placement."""
        uuid = self.deployable(address).provider_uuid
        inventories = self.placement.get_inventories(uuid).inventories
        return self.placement.get_traits(uuid).traits, {
            name: (device.total, device.reserved)
            for name, device in inventories.items()
        }

    # --- requests ---

    def bind(self, address: str, group: Mapping[str, str]) -> str:
        """Bind a new instance to the card and return it after the job has ended."""
        profile = add_profile(self.database, [{'resources:FPGA': '1', **group}])
        created = self.database.write(arqs.create_arqs, profile, PROJECT)
        instance = str(uuid4())
        provider = self.deployable(address).provider_uuid
        self.consumers.allocate(instance, [provider], PROJECT, 'FPGA')
        bindings_by_arq = {
            arq.uuid: Binding(self.host.name, provider, instance) for arq in created
        }
        new = build_bind_job(bindings_by_arq, RULES, None)
        job = self.database.write(
            binding.accept_bind, bindings_by_arq, _EVERYBODY, new, OWNER
        )
        self.binder.run(job)
        self._clean()
        return instance

    def release(self, instance: str) -> None:
        self.database.write(release.delete_arqs_of_instance, instance, _EVERYBODY, None)
        self.consumers.forget(instance)
        self._clean()

    def _clean(self) -> None:
        for job in self._jobs(OperationKind.RELEASE):
            self.releaser.run(job)
        for job in self._jobs(OperationKind.CLEANING):
            self.cleaner.run(job)
        self.sync.sync(self.host.name)

    def _jobs(self, kind: OperationKind) -> Sequence[Job]:
        return self.database.write(queue.lease_jobs, OWNER, 10, [kind])

    def arqs(self, instance: str) -> tuple[Arq, ...]:
        query = Query({'instance_uuid': (instance,)})
        return self.database.read(arqs.list_arqs, query, _EVERYBODY)

    def state(self, instance: str) -> str:
        """Return the state that all ARQs of an instance have."""
        (state,) = {arq.state.value for arq in self.arqs(instance)}
        return state

    # --- guests ---

    @contextmanager
    def guest(self, address: str) -> Iterator[None]:
        """Give the function to a guest, which hides its driver attributes."""
        device = (self.host.root / 'sys/bus/pci/devices' / address).resolve()
        driver, aside = device / 'driver', self._state.with_name('aside')
        before = driver.readlink()
        aside.mkdir()
        hidden = [name for name in _HIDDEN if (device / name).exists()]
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
        """Reboot the host; its agent sends the recovery results."""
        self.kernel.reboot()
        name, boot_id = self.host.name, self.host.boot_id
        self.database.write(recovery.record_host_reboot, name, boot_id)
        self.start()
        self.recovery.rebuild(threading.Event(), 0)
        conductor = RecoveryService(self.database, lambda: None, 60, 3600)
        receiver = Dispatcher(CONDUCTOR, [conductor])
        self.recovery.report_recovery(build_conductor(serve_locally(receiver)))
        self.report()
