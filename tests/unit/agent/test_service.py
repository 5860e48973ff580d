# SPDX-License-Identifier: Apache-2.0
"""The agent on a bus: it reports, serves and stops."""

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from oslo_config import cfg

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.service import AgentService, Resources
from cyborg_lite.agent.watching import Timing
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import ConfigurationError, DriverError, HostAway
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.rpc import conductor, transport, wire
from cyborg_lite.rpc.agent import AgentAPI
from cyborg_lite.rpc.context import of_daemon
from tests.fakes.drivers import PreparingDriver, finding, handle, refusal
from tests.fakes.rebooting import ForgetfulDriver, boot

_HOST = Host('compute-1', Path('/nonexistent'))
_PATIENCE = 30.0  # seconds; only a failing test waits that long


class Conductor:
    """Endpoints that keep what they are told, and say when."""

    target = transport.interface(conductor.VERSION)

    def __init__(self) -> None:
        self.reports: list[HostReport] = []
        self.outcomes: list[dict[str, Any]] = []
        self.boots: list[str] = []
        self.told = threading.Event()

    # Any, here and below: what arrives on the wire is of no known type.
    @transport.endpoint
    def heartbeat(
        self, context: object, host: str, digest: str, version: str, vitals: Any
    ) -> bool:
        self.boots.append(vitals['boot_id'])
        return not self.reports

    @transport.endpoint
    def report_recovery(self, context: object, **outcome: Any) -> list[Any]:
        self.outcomes.append(outcome)
        return []

    @transport.endpoint
    def report_events(self, context: object, host: str, events: Any) -> int:
        return 0

    @transport.endpoint
    def report_host(self, context: object, report: Any) -> None:
        self.reports.append(wire.load(HostReport, report))
        self.told.set()


@pytest.fixture
def conf(request: pytest.FixtureRequest, tmp_path: Path) -> cfg.ConfigOpts:
    file = tmp_path / 'agent.conf'
    # A bus of its own for each test.
    bus = f'transport_url = local:///{request.node.name}'
    file.write_text(f'[DEFAULT]\n{bus}\nrpc_response_timeout = 1\n')
    conf = cfg.ConfigOpts()
    conf(['--config-file', str(file)])
    return conf


@pytest.fixture
def listener(conf: cfg.ConfigOpts) -> Iterator[Conductor]:
    bus = transport.connect(conf)
    endpoints = Conductor()
    server = transport.serve(bus, transport.CONDUCTOR_TOPIC, 'any', [endpoints])
    server.start()
    yield endpoints
    server.stop()
    server.wait()
    bus.cleanup()


@pytest.fixture
def driver() -> PreparingDriver:
    driver = PreparingDriver(_HOST, {})
    driver.findings = [finding()]
    return driver


class Start(Protocol):
    def __call__(self, **drivers: Driver) -> AgentService: ...


@pytest.fixture
def made(conf: cfg.ConfigOpts, tmp_path: Path) -> Start:
    """A service with these drivers; all of them remember the same things."""

    def _made(**drivers: Driver) -> AgentService:
        resources = Resources(Host('compute-1', tmp_path), drivers, tmp_path / 'state')
        timing = Timing(3600.0, 3600.0, 60.0, 3600.0, recovery_patience=0.0)
        return AgentService(transport.connect(conf), resources, timing)

    return _made


def test_a_constructor_only_keeps(made: Start, driver: PreparingDriver) -> None:
    made(scripted=driver)
    assert driver.looks == 0


def test_it_reports_and_serves(
    conf: cfg.ConfigOpts, listener: Conductor, driver: PreparingDriver, made: Start
) -> None:
    service = made(scripted=driver)
    service.start()
    bus = transport.connect(conf)
    agents = AgentAPI(bus, _PATIENCE)
    try:
        assert listener.told.wait(_PATIENCE)
        assert [device.address for device in listener.reports[0].devices] == [
            '0000:01:00.0'
        ]
        agents.prepare(of_daemon(), 'compute-1', [handle(uuid='a')])
        assert driver.prepared == {'a'}
        driver.refused['b'] = refusal('The card is busy.')
        with pytest.raises(DriverError, match=r'The card is busy\.'):
            agents.prepare(of_daemon(), 'compute-1', [handle(uuid='b')])
        agents.release(of_daemon(), 'compute-1', [handle(uuid='a')])
        assert driver.prepared == set()
    finally:
        service.stop()
        service.wait()
        bus.cleanup()


def test_after_its_end_it_is_away(
    conf: cfg.ConfigOpts, listener: Conductor, driver: PreparingDriver, made: Start
) -> None:
    service = made(scripted=driver)
    service.start()
    service.stop()
    service.wait()
    bus = transport.connect(conf)
    with pytest.raises(HostAway):
        AgentAPI(bus, 0.1).prepare(of_daemon(), 'compute-1', [handle()])
    assert driver.prepared == set()


def test_it_starts_and_stops_without_a_conductor(
    driver: PreparingDriver, made: Start
) -> None:
    service = made(scripted=driver)
    service.start()
    service.stop()
    service.wait()
    assert driver.looks == 1


def test_what_was_never_started_can_be_stopped(
    driver: PreparingDriver, made: Start
) -> None:
    service = made(scripted=driver)
    service.stop()
    service.wait()
    assert driver.looks == 0


# --- boots and restarts -------------------------------------------------------------


@pytest.fixture
def booted(tmp_path: Path) -> ForgetfulDriver:
    """Of a host that was booted since it had prepared a handle."""
    boot(tmp_path, 'boot-1')
    cache = Cache(tmp_path / 'state')
    cache.intend([handle(uuid='a')])
    cache.ready(['a'], 'boot-1')
    boot(tmp_path, 'boot-2')
    return ForgetfulDriver(Host('compute-1', tmp_path), '0000:01:00.0')


def test_it_rebuilds_where_there_is_no_conductor(
    booted: ForgetfulDriver, made: Start
) -> None:
    service = made(scripted=booted)
    service.start()
    assert booted.prepared == {'a'}
    service.stop()
    service.wait()


def test_it_rebuilds_before_it_serves_and_tells_before_it_reports(
    booted: ForgetfulDriver, made: Start, listener: Conductor
) -> None:
    service = made(scripted=booted)
    service.start()
    try:
        assert listener.told.wait(_PATIENCE)
        assert listener.boots[0] == 'boot-2'
        (outcome,) = listener.outcomes
        assert (outcome['rebuilt'], outcome['lost']) == (['a'], {})
    finally:
        service.stop()
        service.wait()


def test_a_start_that_waits_for_a_vendor_driver_can_be_ended(
    booted: ForgetfulDriver, conf: cfg.ConfigOpts, tmp_path: Path
) -> None:
    booted.slow = 10**9
    resources = Resources(
        Host('compute-1', tmp_path), {'scripted': booted}, tmp_path / 'state'
    )
    timing = Timing(3600.0, 3600.0, 60.0, 3600.0, recovery_patience=3600.0)
    service = AgentService(transport.connect(conf), resources, timing)
    starting = threading.Thread(target=service.start)
    starting.start()
    service.stop()
    starting.join(_PATIENCE)
    assert not starting.is_alive()
    service.wait()


class RecallingDriver(PreparingDriver):
    """Keeps what it was told before its first look."""

    def __init__(self) -> None:
        super().__init__(_HOST, {})
        self.findings = [finding()]
        self.recalled: list[str] = []

    def recall(self, handles: Iterable[HeldHandle]) -> None:
        assert self.looks == 0
        self.recalled += [handle.uuid for handle in handles]


def test_drivers_are_told_what_is_ours_before_they_look(
    made: Start, tmp_path: Path
) -> None:
    Cache(tmp_path / 'state').intend([handle(uuid='a')])
    driver = RecallingDriver()
    service = made(scripted=driver)
    service.start()
    service.stop()
    service.wait()
    assert driver.recalled == ['a']


def test_two_drivers_that_claim_one_function_are_refused(
    made: Start, driver: PreparingDriver
) -> None:
    rival = PreparingDriver(_HOST, {})
    rival.findings = [finding(driver='rival')]
    service = made(scripted=driver, rival=rival)
    with pytest.raises(ConfigurationError, match='claimed by rival and scripted'):
        service.start()
    service.stop()
    service.wait()


def test_a_damaged_memory_is_no_reason_not_to_start(
    made: Start, driver: PreparingDriver, tmp_path: Path
) -> None:
    (tmp_path / 'state').mkdir()
    for name in ('handles.json', 'findings.json', 'journal.json'):
        (tmp_path / 'state' / name).write_text('{')
    service = made(scripted=driver)
    service.start()
    service.stop()
    service.wait()
    assert len(list((tmp_path / 'state').glob('*.damaged-*'))) == 3
