# SPDX-License-Identifier: Apache-2.0
"""An FPGA from its image in Glance to its traits in Placement, all of them real."""

import os
from pathlib import Path
from uuid import uuid4

import pytest

from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.image_cache import ImageCache
from cyborg_lite.agent.loaded import LoadedRegions
from cyborg_lite.agent.programming import Programming, Stock
from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.binding import BindHandler, bind_job
from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.conductor.loading import Loader
from cyborg_lite.conductor.placement_sync import PlacementSync
from cyborg_lite.conductor.releasing import ReleaseHandler
from cyborg_lite.db import arqs, binding, inventory, jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.intel_fpga import IntelFpga
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.drivers.xilinx_fpga import XilinxFpga
from cyborg_lite.model.arqs import Binding, Scope
from cyborg_lite.model.bitstreams import TAG, LoadOrder
from cyborg_lite.model.inventory import Deployable, Device
from cyborg_lite.model.jobs import Kind
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from tests.fakes import sysfs_tree
from tests.fakes.agents import FakeAgents
from tests.fakes.bitstream_files import LARGEST, OTHER_FUNCTION, gbs, image
from tests.fakes.consumers import FakeConsumers
from tests.fakes.databases import database_fixture
from tests.fakes.fpga import FACTORY, function_trait
from tests.fakes.host_tools import FakeTool, Fate
from tests.fakes.real_glance import RealGlance, real_glance
from tests.fakes.real_placement import CountedRemote, remote
from tests.fakes.rows import OWNER, PROJECT, add_profile, states
from tests.functional.test_glance import client
from tests.unit.conductor.test_binding import RULES

__all__ = ['real_glance', 'remote']

database = database_fixture('sqlite')

_CARD = '0000:5e:00.0'
_OPTIONS = {'offer_without_reset': False, 'program_timeout': 60}


class HostAgents(FakeAgents):
    """The agent of one host as it is, without a bus; messages are packed as on it."""

    def __init__(self, programming: Programming) -> None:
        super().__init__()
        self._programming = programming

    def program(self, context: RequestContext, host: str, order: LoadOrder) -> Device:
        self._told('program', host, [])
        unpacked = wire.load(LoadOrder, wire.dump(order))
        return wire.load(Device, wire.dump(self._programming.program(unpacked)))


class Site:
    """A host of the fixtures under a name of its own, and the services around it."""

    def __init__(self, database: Database, remote: CountedRemote, root: Path) -> None:
        self.database = database
        # A Placement serves all tests of a process.
        self.host = Host(f'compute-{uuid4()}', root)
        self.placement = Placement(remote)
        self.placement.create_provider(str(uuid4()), self.host.name, None)
        self.sync = PlacementSync(database, self.placement)
        self.discovery: Discovery

    def enable(self, *drivers: Driver, loaded: LoadedRegions | None = None) -> None:
        by_name = {driver.NAME: driver for driver in drivers}
        if loaded is None:
            self.discovery = Discovery(self.host, by_name, 60)
        else:
            self.discovery = Discovery(self.host, by_name, 60, loaded.amended)

    def report(self) -> None:
        """From the hardware to Placement."""
        self.discovery.look()
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


@pytest.mark.parametrize('name', ['fpga-intel', 'fpga-xilinx-u250'])
def test_the_hosts_come_to_placement_as_expected(
    name: str, database: Database, remote: CountedRemote, tmp_path: Path
) -> None:
    built = sysfs_tree.build(name, tmp_path)
    site = Site(database, remote, tmp_path)
    site.enable(
        IntelFpga(site.host, {**_OPTIONS, 'tool': 'fpgaconf'}),
        XilinxFpga(site.host, {**_OPTIONS, 'tool': 'xbutil'}),
    )
    site.report()
    for fields in built.expect['devices']:
        traits, inventories = site.shown(fields['pci'])
        expected = {'FPGA': (1, 0)} if fields['total'] else {}
        assert inventories == expected
        if 'traits' in fields:
            assert traits == {each.lstrip('+') for each in fields['traits']}


class Bench(Site):
    """A site with an Intel card that can be loaded."""

    def __init__(
        self, database: Database, remote: CountedRemote, root: Path, glance: RealGlance
    ) -> None:
        super().__init__(database, remote, root)
        sysfs_tree.build('fpga-intel', root)
        directory = (root / f'sys/bus/pci/devices/{_CARD}').resolve()
        region = directory / 'fpga_region/region0'
        manager = region / 'dfl-fme.0/dfl-fme-mgr.0/fpga_manager/fpga0'
        self.tool = FakeTool(region / 'dfl-port.0/afu_id', manager, OTHER_FUNCTION)
        images = client(glance.endpoint)
        self.kept = root / 'stock'
        cache = ImageCache(self.kept, images, largest=LARGEST, capacity=LARGEST)
        loaded = LoadedRegions(self.kept)
        options = {**_OPTIONS, 'tool': 'fpgaconf'}
        self.enable(IntelFpga(self.host, options, self.tool), loaded=loaded)
        self.report()
        programming = Programming(self.discovery, Stock(cache, loaded))
        self.agents = HostAgents(programming)
        self.consumers = FakeConsumers()
        loader = Loader(database, self.agents, Library(images, LARGEST))
        self.handler = BindHandler(database, self.agents, self.consumers, RULES, loader)

    def bind(self, image_id: str) -> str:
        """The state that a request for the card ends in."""
        groups = [{'resources:FPGA': '1', 'accel:bitstream_id': image_id}]
        profile = add_profile(self.database, groups)
        (arq,) = self.database.write(arqs.create, profile, PROJECT)
        instance = str(uuid4())
        provider = self.deployable(_CARD).provider_uuid
        self.consumers.allocate(instance, [provider], PROJECT)
        wanted = {arq.uuid: Binding(self.host.name, provider, instance)}
        everybody = Scope(project_id=None)
        new = bind_job(wanted, RULES, None)
        job = self.database.write(binding.accept, wanted, everybody, new, OWNER)
        self.handler.run(job)
        self._release()
        self.sync.sync(self.host.name)
        (state,) = states(self.database, [arq.uuid])
        return state

    def _release(self) -> None:
        """Have the host take back what a bind that failed had claimed."""
        handler = ReleaseHandler(self.database, self.agents)
        for job in self.database.write(jobs.take, OWNER, 10):
            if job.kind is Kind.RELEASE:
                handler.run(job)


@pytest.fixture
def bench(
    database: Database,
    remote: CountedRemote,
    real_glance: RealGlance,
    tmp_path: Path,
) -> Bench:
    return Bench(database, remote, tmp_path, real_glance)


def test_a_bind_loads_and_placement_is_told(
    bench: Bench, real_glance: RealGlance
) -> None:
    before, _ = bench.shown(_CARD)
    assert function_trait(FACTORY) in before
    uuid = real_glance.upload(gbs(), (TAG,), image().properties)
    assert bench.bind(uuid) == 'Bound'
    traits, inventories = bench.shown(_CARD)
    assert function_trait(OTHER_FUNCTION) in traits
    assert function_trait(FACTORY) not in traits
    assert inventories == {'FPGA': (1, 0)}
    # What the agent reports next says the same.
    bench.report()
    assert bench.shown(_CARD)[0] == traits


@pytest.mark.parametrize(
    ('tags', 'properties', 'content'),
    [
        ((), {}, gbs()),
        ((TAG,), {'board': 'u250'}, gbs()),
        ((TAG,), {'bs-name': '../../etc/passwd'}, gbs()),
        ((TAG,), {'topology': '{"a":' * 50}, gbs()),
        ((TAG,), {}, b'x' * (LARGEST + 1)),
        ((TAG,), {}, b'no bitstream at all'),
    ],
)
def test_what_does_not_do_changes_nothing_and_leaves_nothing(
    tags: tuple[str, ...],
    properties: dict[str, str],
    content: bytes,
    bench: Bench,
    real_glance: RealGlance,
) -> None:
    before = bench.shown(_CARD)
    said = {**image().properties, **properties}
    assert bench.bind(real_glance.upload(content, tags, said)) == 'BindFailed'
    assert bench.tool.commands == []
    assert bench.shown(_CARD) == before
    assert not bench.kept.exists() or os.listdir(bench.kept) == []


@pytest.mark.parametrize('fate', [Fate.TIMEOUT, Fate.HALF_LOADED, Fate.WRONG_ID])
def test_a_load_that_fails_closes_the_card_in_placement(
    fate: Fate, bench: Bench, real_glance: RealGlance
) -> None:
    bench.tool.fate = fate
    uuid = real_glance.upload(gbs(), (TAG,), image().properties)
    assert bench.bind(uuid) == 'BindFailed'
    assert bench.shown(_CARD)[1] == {'FPGA': (1, 1)}
    bench.report()
    assert bench.shown(_CARD)[1] == {'FPGA': (1, 1)}
