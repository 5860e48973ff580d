# SPDX-License-Identifier: Apache-2.0
"""Tests of the agent service on a message bus: report, serve, stop."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol
from unittest.mock import patch

import pytest
from oslo_config import cfg

from cyborg_lite.agent import service as service_module
from cyborg_lite.agent.arqs.readiness import are_rebuilt
from cyborg_lite.agent.bitstreams.image_cache import ImageCache
from cyborg_lite.agent.bitstreams.loaded_bitstreams import LoadedBitstreams
from cyborg_lite.agent.bitstreams.programming import BitstreamStore
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.inventory.hardware_monitor import AgentIntervals
from cyborg_lite.agent.service import AgentResources, AgentService
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.bitstreams.bitstreams import Bitstream, LoadOrder
from cyborg_lite.model.devices.cleaning import CleanOrder, CleanProgressState
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.devices.modes import DeviceMode, ModeOrder
from cyborg_lite.model.inventory.host_report import Device, HostReport
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_agents
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher
from cyborg_lite.rpc.interface import Agents
from cyborg_lite.rpc.methods import CONDUCTOR
from tests.builders.bitstream_files import LARGEST, bitstream
from tests.doubles.cleaning import CleaningDriver
from tests.doubles.drivers import PreparingDriver, discovery_result, handle, refusal
from tests.doubles.glance import FakeGlance
from tests.doubles.rebootable_host import ForgetfulDriver, boot
from tests.doubles.report_receiver import ReportKeeper

_HOST = Host('compute-1', Path('/nonexistent'))
_TIMEOUT = 30.0  # seconds; only a failing test waits this long


class RecordingConductor(ReportKeeper):
    """Services that signal each report."""

    def __init__(self) -> None:
        super().__init__()
        self.reported = threading.Event()

    def _store(self, report: HostReport) -> int:
        number = super()._store(report)
        self.reported.set()
        return number


@pytest.fixture
def listener(conf: cfg.ConfigOpts) -> Iterator[RecordingConductor]:
    bus = transport.connect(conf)
    services = RecordingConductor()
    server = transport.serve(bus, 'any', Dispatcher(CONDUCTOR, [services]))
    server.start()
    yield services
    server.stop()
    server.wait()
    bus.cleanup()


@pytest.fixture
def agents(conf: cfg.ConfigOpts) -> Iterator[Agents]:
    bus = transport.connect(conf)
    yield connect_agents(bus, _TIMEOUT)
    bus.cleanup()


@pytest.fixture
def driver() -> PreparingDriver:
    driver = PreparingDriver(_HOST, {})
    driver.results = [discovery_result()]
    return driver


class Start(Protocol):
    def __call__(
        self,
        store: BitstreamStore | None = None,
        patience: float = 0.0,
        **drivers: Driver,
    ) -> AgentService: ...


@pytest.fixture
def build_service(conf: cfg.ConfigOpts, tmp_path: Path) -> Start:
    """Return a factory of services that share one state directory."""

    def _build_service(
        store: BitstreamStore | None = None, patience: float = 0.0, **drivers: Driver
    ) -> AgentService:
        resources = AgentResources(
            Host('compute-1', tmp_path), drivers, tmp_path / 'state', store
        )
        intervals = AgentIntervals(3600.0, 3600.0, 60.0, 3600.0, patience)
        return AgentService(transport.connect(conf), resources, intervals)

    return _build_service


def test_start_reports_devices_and_serves_calls(
    agents: Agents,
    listener: RecordingConductor,
    driver: PreparingDriver,
    build_service: Start,
) -> None:
    service = build_service(scripted=driver)
    service.start()
    try:
        assert listener.reported.wait(_TIMEOUT)
        (device,) = listener.reports['compute-1'].devices
        assert device.control_address == '0000:01:00.0'
        agents.prepare(daemon_context(), 'compute-1', [handle(uuid='a')])
        assert driver.prepared == {'a'}
        driver.refusals['b'] = refusal('The card is busy.')
        with pytest.raises(DriverError, match=r'The card is busy\.'):
            agents.prepare(daemon_context(), 'compute-1', [handle(uuid='b')])
        agents.release(daemon_context(), 'compute-1', [handle(uuid='a')])
        assert driver.prepared == set()
    finally:
        service.stop()
        service.wait()


def test_services_implement_each_method_of_interface(
    build_service: Start, driver: PreparingDriver
) -> None:
    service = build_service(scripted=driver)
    service.start()
    dispatcher = service._gate._dispatcher
    assert dispatcher is not None
    assert dispatcher.list_missing() == ()
    service.stop()
    service.wait()


def test_stop_makes_agent_unreachable(
    conf: cfg.ConfigOpts,
    listener: RecordingConductor,
    driver: PreparingDriver,
    build_service: Start,
) -> None:
    service = build_service(scripted=driver)
    service.start()
    service.stop()
    service.wait()
    bus = transport.connect(conf)
    with pytest.raises(HostAway):
        connect_agents(bus, 0.1).prepare(daemon_context(), 'compute-1', [handle()])
    assert driver.prepared == set()


def test_stop_without_start_does_nothing(
    driver: PreparingDriver, build_service: Start
) -> None:
    service = build_service(scripted=driver)
    service.stop()
    service.wait()
    assert driver.scan_count == 0  # nor does the constructor scan


# --- reboots and restarts ---


@pytest.fixture
def rebooted_driver(tmp_path: Path) -> ForgetfulDriver:
    """Return the driver of a host that rebooted after a preparation."""
    boot(tmp_path, 'boot-1')
    cache = Cache(tmp_path / 'state')
    cache.add_handles([handle(uuid='a')])
    cache.mark_prepared(['a'], 'boot-1')
    boot(tmp_path, 'boot-2')
    return ForgetfulDriver(Host('compute-1', tmp_path), '0000:01:00.0')


def test_start_without_conductor_rebuilds_handles(
    rebooted_driver: ForgetfulDriver, build_service: Start, tmp_path: Path
) -> None:
    service = build_service(scripted=rebooted_driver)
    assert not are_rebuilt(tmp_path / 'state', 'boot-2')
    service.start()
    assert rebooted_driver.prepared == {'a'}
    assert are_rebuilt(tmp_path / 'state', 'boot-2')
    service.stop()
    service.wait()


def test_stop_interrupts_start_waiting_for_driver(
    rebooted_driver: ForgetfulDriver, build_service: Start
) -> None:
    rebooted_driver.slow = 10**9
    service = build_service(patience=3600.0, scripted=rebooted_driver)
    starting = threading.Thread(target=service.start)
    starting.start()
    service.stop()
    starting.join(_TIMEOUT)
    assert not starting.is_alive()
    service.wait()


class RestoringDriver(PreparingDriver):
    """Driver that records the handles restored before its first scan."""

    def __init__(self) -> None:
        super().__init__(_HOST, {})
        self.results = [discovery_result()]
        self.restored_uuids: list[str] = []

    def restore_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        assert self.scan_count == 0
        self.restored_uuids += [handle.uuid for handle in handles]


def test_start_restores_handles_before_first_scan(
    build_service: Start, tmp_path: Path
) -> None:
    Cache(tmp_path / 'state').add_handles([handle(uuid='a')])
    driver = RestoringDriver()
    service = build_service(scripted=driver)
    service.start()
    service.stop()
    service.wait()
    assert driver.restored_uuids == ['a']


def test_start_conflicting_drivers_raise_configuration_error(
    build_service: Start, driver: PreparingDriver
) -> None:
    rival = PreparingDriver(_HOST, {})
    rival.results = [discovery_result(driver='rival')]
    service = build_service(scripted=driver, rival=rival)
    with pytest.raises(ConfigurationError, match='claimed by rival and scripted'):
        service.start()
    service.stop()
    service.wait()


class _VersatileDriver(CleaningDriver, PreparingDriver):
    """Driver that cleans, prepares, sets modes and loads bitstreams."""

    def modes(self, device: Device) -> Sequence[DeviceMode]:
        return ()

    def has_mode(self, device: Device, mode: str) -> bool:
        return True

    def declared_mode(self, device: Device) -> str | None:
        return None

    def set_mode(self, device: Device, mode: str) -> Device:
        return device

    def program(self, deployable: str, image: Path, loaded: Bitstream) -> Device:
        raise DriverError(reason='never called')


_PLACE = daemon_context(), 'compute-1'
_ADDRESS = handle().control_address
_CHANGES: dict[str, Callable[[Agents], object]] = {
    'prepare': lambda agents: agents.prepare(*_PLACE, [handle(uuid='a')]),
    'set_mode': lambda agents: agents.set_mode(*_PLACE, ModeOrder(_ADDRESS, 'x')),
    'program': lambda agents: agents.program(
        *_PLACE, LoadOrder(_ADDRESS, '', bitstream())
    ),
}


@pytest.mark.parametrize('change', _CHANGES)
def test_change_of_device_during_clean_is_postponed(
    change: str,
    agents: Agents,
    listener: RecordingConductor,
    build_service: Start,
    tmp_path: Path,
) -> None:
    """The components of an agent share one table of locks."""
    driver = _VersatileDriver(_HOST, {})
    driver.results = [discovery_result()]
    driver.blocks['erase'] = threading.Event()
    images = tmp_path / 'images'
    cache = ImageCache(images, FakeGlance(), largest=LARGEST, capacity=LARGEST)
    store = BitstreamStore(cache, LoadedBitstreams(images))
    service = build_service(store, scripted=driver)
    with patch.object(service_module, 'DeviceLocks', lambda: DeviceLocks(0.01)):
        service.start()
    try:
        assert listener.reported.wait(_TIMEOUT)
        order = CleanOrder(1, handle(uuid='b'))
        session = agents.read_cleaning(*_PLACE, order).session
        agents.start_cleaning(*_PLACE, order, session)
        assert driver.started.wait(_TIMEOUT)
        with pytest.raises(HostAway):
            _CHANGES[change](agents)
        assert driver.prepared == set()
        progress = agents.read_cleaning(*_PLACE, order)
        assert progress.state is CleanProgressState.RUNNING
    finally:
        driver.blocks['erase'].set()
        service.stop()
        service.wait()
