# SPDX-License-Identifier: Apache-2.0
"""The number of hosts that one conductor process can serve.

Usage: ``python -m benchmarks.fleet --help``

Simulated agents send the real RPCs over RabbitMQ to one conductor process with a real
database and a real Placement. There are five phases:

floor    RPCs without any work, and requests to Placement by the library alone
start    many hosts report at once; time until each device is in Placement
steady   all hosts send their heartbeats, spread over the interval
limit    heartbeats without a pause; every second one is answered
silence  all agents stop and start again; without the conductor process

The floor of a heartbeat is an RPC without any work. That of a host that starts is two
such RPCs and its requests to Placement.

The benchmark requires the RabbitMQ and database servers of the functional tests. The
agents run on the same machine and use its CPUs, so only the CPU time of the conductor
is comparable between machines.
"""

import argparse
import itertools
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import requests
from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from benchmarks.deployment import connect, create_cloud
from benchmarks.process_cost import Cost, Meter
from cyborg_lite.conductor.hosts.liveness import LivenessMonitor
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job, Service
from cyborg_lite.db.inventory import agents, reports
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.services import AGENT, Heartbeat, HeartbeatDetails
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.inventory.report_changes import diff_reports
from cyborg_lite.rpc.client import connect_conductor, is_reachable
from cyborg_lite.rpc.context import bare_context, daemon_context
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.version import VERSION
from tests.builders.reports import HOST, list_cards
from tests.servers.stack import expect

_HEARTBEAT_THREADS: Final = 4  # send heartbeats of started hosts
_POLL_INTERVAL: Final = 0.2  # seconds between two counts of the jobs
_BOOT_ID: Final = str(uuid4())
_DOWN_AFTER: Final = 100.0  # seconds
_START_TIMEOUT: Final = 3600.0  # seconds for the phase ``start``
_FLOOR_REQUESTS: Final = 200
# Requests to Placement for a new host, which the functional tests count.
_REQUESTS_PER_HOST, _REQUESTS_PER_DEVICE = 3, 2


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of the benchmark."""

    hosts: int
    starting: int  # hosts that report at once
    devices: int  # per host
    interval: float  # seconds between two heartbeats of a host
    seconds: float  # duration of the phases steady and limit
    clients: int  # threads that simulate agents
    telemetry: bool  # in each heartbeat of the phases steady and limit


@dataclass(frozen=True, slots=True)
class Floor:
    """CPU seconds of basic operations."""

    call: float  # of the conductor for an RPC without any work
    request: float  # of a client of Placement for a request


class Fleet:
    """The simulated agents."""

    def __init__(self, plan: Plan, conductor: Conductor, database: Database) -> None:
        self.plan = plan
        self.conductor = conductor
        self.database = database
        prefix = f'compute-{uuid4().hex[:6]}'
        self.names = [f'{prefix}-{number:05d}' for number in range(plan.hosts)]
        self._devices = tuple(list_cards(plan.devices, 1))
        self._tokens: dict[str, str] = {}  # by host
        self._hosts_without_answer: set[str] = set()  # to their next heartbeat
        self._watts = itertools.count()

    def report(self, name: str) -> HostReport:
        """Return the report of a host."""
        devices = (
            replace(
                device,
                root=replace(device.root, name=device.root.name.replace(HOST, name)),
            )
            for device in self._devices
        )
        return HostReport(name, _BOOT_ID, tuple(devices))

    def start_agent(self, name: str) -> tuple[str, str]:
        """Send the first report of a host; return the host and its digest."""
        report = self.report(name)
        while True:
            try:
                if self.send_heartbeat(name, report.digest):
                    changes = diff_reports(report)
                    self.conductor.report_changes(daemon_context(), name, changes)
                return name, report.digest
            except CyborgError as error:
                print(f'{name}: {error.text}', file=sys.stderr)

    def send_heartbeat(self, name: str, digest: str) -> bool:
        """Send a heartbeat as an agent does.

        :returns: True if the conductor requests a report
        """
        token = self._tokens.get(name)
        if token and self._send_short(name, token):
            return False
        heartbeat = Heartbeat(name, VERSION, digest, _BOOT_ID, '')
        needs_report = self.conductor.heartbeat(
            daemon_context(), name, digest, VERSION, HeartbeatDetails(_BOOT_ID)
        )
        if not needs_report:
            self._tokens[name] = heartbeat.token
        return needs_report

    def _send_short(self, name: str, token: str) -> bool:
        """Send a short heartbeat, every second one without an answer.

        :returns: False if the conductor requests a whole heartbeat
        """
        message = bare_context(), name, token, self._read_usages()
        if name in self._hosts_without_answer:
            self._hosts_without_answer.remove(name)
            self.conductor.repeat_without_answer(*message)
            return True
        if not self.conductor.repeat(*message):
            return False
        self._hosts_without_answer.add(name)
        return True

    def _read_usages(self) -> dict[str, Usage]:
        """Return new telemetry of all devices, if the plan has telemetry."""
        if not self.plan.telemetry:
            return {}
        usage = Usage(power=float(next(self._watts)), busy_percent=50.0, memory_used=1)
        return {device.control_address: usage for device in self._devices}

    def echo(self) -> None:
        """Send an RPC without any work."""
        is_reachable(self.conductor, daemon_context())

    def age_heartbeats(self, seconds: float) -> None:
        """Make the last heartbeats of all hosts old."""
        heartbeat_at = datetime.now(UTC) - timedelta(seconds=seconds)
        self.database.write(
            lambda session: session.execute(
                update(Service)
                .where(Service.binary == AGENT)
                .values(heartbeat_at=heartbeat_at)
            )
        )

    def list_digests(self) -> list[tuple[str, str]]:
        """Return each host with the digest of its report."""
        return [(name, self.report(name).digest) for name in self.names]

    def store_hosts(self, digests: Sequence[tuple[str, str]]) -> None:
        """Store hosts in the database, with devices only if they have telemetry."""
        for name, digest in digests:
            if self.plan.telemetry:
                self.database.write(_store_report, self.report(name))
            else:
                self.database.write(agents.store_digest, name, digest, _BOOT_ID)

    def send_first_heartbeats(self, digests: Sequence[tuple[str, str]]) -> None:
        """Send one heartbeat per host, so that later ones are repeated heartbeats."""
        with ThreadPoolExecutor(self.plan.clients) as pool:
            list(pool.map(lambda item: self.send_heartbeat(*item), digests))

    def count_jobs(self) -> int:
        """Return the number of unfinished jobs."""
        return sum(count.count for count in self.database.read(queue.count_jobs))


def _store_report(session: Session, report: HostReport) -> None:
    """Store a report without a Placement sync job."""
    reports.store_report(session, report)
    session.execute(delete(Job).where(Job.key == report.hostname))


# --- phases -------------------------------------------------------------------------


def floor(fleet: Fleet, meter: Meter, endpoint: str) -> Floor:
    """Measure RPCs without any work, and requests to Placement at a URL."""
    count, started_at = itertools.count(), time.monotonic()

    def run_client() -> None:
        while time.monotonic() - started_at < fleet.plan.seconds:
            fleet.echo()
            next(count)

    with meter.measure() as cost:
        _run_threads(run_client, fleet.plan.clients)
    call = cost.cpu / max(1, next(count))
    with requests.Session() as session:
        began = time.thread_time()
        for _ in range(_FLOOR_REQUESTS):
            session.get(endpoint)
        request = (time.thread_time() - began) / _FLOOR_REQUESTS
    print(f'floor: RPC {1000 * call:.2f} ms, request {1000 * request:.2f} ms\n')
    return Floor(call, request)


def start(fleet: Fleet, meter: Meter, least: Floor) -> None:
    """Start all agents at once and wait until Placement is up to date."""
    names = fleet.names[: fleet.plan.starting]
    started_at = time.monotonic()
    with (
        meter.measure() as cost,
        ThreadPoolExecutor(fleet.plan.clients) as pool,
        _heartbeats(fleet) as hosts,
    ):
        hosts.extend(pool.map(fleet.start_agent, names))
        report_time = time.monotonic() - started_at
        while fleet.count_jobs() and time.monotonic() - started_at < _START_TIMEOUT:
            time.sleep(_POLL_INTERVAL)
    duration = time.monotonic() - started_at
    print(f'start: {len(names)} hosts with {fleet.plan.devices} devices each')
    print(f'  reports stored after           {report_time:9.1f} s')
    print(f'  all in Placement after         {duration:9.1f} s')
    number = _REQUESTS_PER_HOST + _REQUESTS_PER_DEVICE * fleet.plan.devices
    _print_cost(cost, len(names), 'host', 2 * least.call + number * least.request)


@contextmanager
def _heartbeats(fleet: Fleet) -> Iterator[list[tuple[str, str]]]:
    """Send heartbeats for the hosts in the list, so that they do not go down."""
    hosts: list[tuple[str, str]] = []
    stopping = threading.Event()

    def send_heartbeats(first: int) -> None:
        while not stopping.wait(fleet.plan.interval):
            for name, digest in hosts[first::_HEARTBEAT_THREADS]:
                with suppress(CyborgError):
                    fleet.send_heartbeat(name, digest)

    threads = [
        threading.Thread(target=send_heartbeats, args=(n,))
        for n in range(_HEARTBEAT_THREADS)
    ]
    for thread in threads:
        thread.start()
    try:
        yield hosts
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def steady(
    fleet: Fleet, meter: Meter, digests: Sequence[tuple[str, str]], least: Floor
) -> None:
    """Send heartbeats of all hosts, spread over the interval."""
    plan = fleet.plan
    schedule = _schedule(len(digests), plan.interval, plan.seconds)
    delays = _Delays()
    lock, started_at = threading.Lock(), time.monotonic()

    def run_client() -> None:
        while True:
            with lock:
                moment, number = next(schedule, (None, 0))
            if moment is None:
                return
            time.sleep(max(0.0, started_at + moment - time.monotonic()))
            delays.time(
                partial(fleet.send_heartbeat, *digests[number]), started_at + moment
            )

    with meter.measure() as cost:
        _run_threads(run_client, plan.clients)
        duration = time.monotonic() - started_at
    print(f'steady: {len(digests)} hosts, a heartbeat each {plan.interval:.0f} s')
    delays.show(duration, len(digests) / plan.interval)
    _print_cost(cost, len(delays.seconds), 'heartbeat', least.call)


def limit(
    fleet: Fleet, meter: Meter, digests: Sequence[tuple[str, str]], least: Floor
) -> None:
    """Send heartbeats without a pause; each client waits for the answer."""
    delays = _Delays()
    started_at = time.monotonic()
    numbers = iter(range(10**9))
    lock = threading.Lock()

    def run_client() -> None:
        while (now := time.monotonic()) - started_at < fleet.plan.seconds:
            with lock:
                number = next(numbers)
            digest = digests[number % len(digests)]
            delays.time(partial(fleet.send_heartbeat, *digest), now)

    with meter.measure() as cost:
        _run_threads(run_client, fleet.plan.clients)
        duration = time.monotonic() - started_at
    print(f'limit: {fleet.plan.clients} agents at a time, without a pause')
    delays.show(duration, None)
    _print_cost(cost, len(delays.seconds), 'heartbeat', least.call)


def silence(fleet: Fleet) -> None:
    """Mark all hosts down, and then up, in this process."""
    monitor = LivenessMonitor(
        fleet.database, lambda: None, _DOWN_AFTER, threading.Event()
    )
    moment = 0.0
    while moment <= 2 * _DOWN_AFTER:  # the monitor waits after its start
        fleet.age_heartbeats(0.0)
        monitor.check_services(moment)
        moment += _DOWN_AFTER / 2
    print(f'silence: {fleet.plan.hosts} hosts')
    for title, age in (('marked down', 10 * _DOWN_AFTER), ('marked up', 0.0)):
        fleet.age_heartbeats(age)
        began, cpu = time.monotonic(), time.process_time()
        monitor.check_services(moment)
        duration, work = time.monotonic() - began, time.process_time() - cpu
        print(f'  {title:<11} after              {duration:9.1f} s, CPU {work:.2f} s')


def _schedule(
    hosts: int, interval: float, seconds: float
) -> Iterator[tuple[float, int]]:
    """Yield time in seconds since the start, and the number of the host."""
    number = 0
    while (moment := number * interval / hosts) < seconds:
        yield moment, number % hosts
        number += 1


def _run_threads(target: Callable[[], None], clients: int) -> None:
    threads = [threading.Thread(target=target) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class _Delays:
    """The seconds from the due time of each heartbeat to its answer."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.failures = 0

    def time(self, send: Callable[[], object], due: float) -> None:
        try:
            send()
        except CyborgError:
            self.failures += 1
            return
        self.seconds.append(time.monotonic() - due)

    def show(self, duration: float, target: float | None) -> None:
        ordered = sorted(self.seconds) or [0.0]
        suffix = '' if target is None else f' of {target:.1f} expected'
        print(
            f'  heartbeats a second            {len(ordered) / duration:9.1f}{suffix}'
        )
        for percent in (50, 95, 99):
            delay = ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
            print(f'  delay, {percent}th percentile         {delay * 1000:9.1f} ms')
        print(f'  failed                         {self.failures:9d}')


def _print_cost(cost: Cost, count: int, unit: str, least: float) -> None:
    """Print the cost of a unit.

    :param least: seconds of CPU time that a unit needs at least
    """
    per_unit = 1000 * cost.cpu / max(1, count)
    print(
        f'  conductor, CPU of a {unit:<10} {per_unit:9.2f} ms, '
        f'floor {1000 * least:.2f} ms'
    )
    print(f'  conductor, of one core         {100 * cost.cpu / cost.wall:9.1f} %')
    print(f'  conductor, memory              {cost.memory / 2**20:9.1f} MiB\n')


# --- the benchmark -----------------------------------------------------------------


def run(plan: Plan, kind: str, directory: Path) -> None:
    """Run all phases."""
    with create_cloud(kind, directory) as (cloud, url, connection):
        conductor_process = cloud.start('conductor')
        bus = connect(url, directory)
        database = Database(connection)
        fleet = Fleet(plan, connect_conductor(bus), database)
        try:
            for name in fleet.names[: plan.starting]:
                node = {'name': name, 'uuid': str(uuid4())}
                expect(cloud.placement.ask('POST', '/resource_providers', node), 200)
            meter = Meter(conductor_process)
            least = floor(fleet, meter, cloud.placement.endpoint)
            start(fleet, meter, least)
            digests = fleet.list_digests()
            fleet.store_hosts(digests[plan.starting :])
            fleet.send_first_heartbeats(digests)
            steady(fleet, meter, digests, least)
            limit(fleet, meter, digests, least)
            conductor_process.end()
            silence(fleet)
        finally:
            bus.cleanup()
            database.close()


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument(
        '--starting', type=int, help='hosts that start at once (default: all)'
    )
    parser.add_argument('--devices', type=int, default=8)
    parser.add_argument('--interval', type=float, default=30.0)
    parser.add_argument('--seconds', type=float, default=60.0)
    parser.add_argument('--clients', type=int, default=32)
    parser.add_argument('--telemetry', action='store_true', help='in each heartbeat')
    parser.add_argument(
        '--database', choices=['mariadb', 'postgresql'], default='mariadb'
    )
    arguments = parser.parse_args()
    plan = Plan(
        hosts=arguments.hosts,
        starting=arguments.hosts if arguments.starting is None else arguments.starting,
        devices=arguments.devices,
        interval=arguments.interval,
        seconds=arguments.seconds,
        clients=arguments.clients,
        telemetry=arguments.telemetry,
    )
    with tempfile.TemporaryDirectory(prefix='fleet-') as directory:
        run(plan, arguments.database, Path(directory))
    return 0


if __name__ == '__main__':
    sys.exit(main())
