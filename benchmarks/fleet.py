# SPDX-License-Identifier: Apache-2.0
"""How many hosts one conductor process bears: ``python -m benchmarks.fleet --help``.

Simulated agents speak the real RPC over RabbitMQ to one conductor in a process of its
own, with a real database and a real Placement. Three parts:

start    so many hosts report at once; the time until each device is in Placement
steady   all hosts send their heartbeats, spread over the interval
limit    heartbeats as fast as they are answered

Needs the RabbitMQ and the database server of the functional tests. The agents run on
the same machine and take their share of it: the CPU time of the conductor is what
carries over to others.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

from oslo_config import cfg

from benchmarks.process_cost import Cost, Meter
from cyborg_lite.db import jobs, services
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import of_daemon
from cyborg_lite.version import version
from tests.fakes import rabbitmq
from tests.fakes.cards import HOST, numbered
from tests.fakes.databases import fresh_database
from tests.fakes.stack import Cloud, expect

_BREATHS: Final = 4  # threads on which hosts that have started go on living
_PAUSE: Final = 0.2  # seconds between two looks at what is left to do
_FINISH: Final = 3600.0  # seconds after which the first part is given up


@dataclass(frozen=True, slots=True)
class Plan:
    hosts: int
    starting: int  # of the hosts, those that report at once
    devices: int  # of each host
    interval: float  # seconds between two heartbeats of a host
    seconds: float  # of each part that is measured by time
    clients: int  # threads that play agents


class Fleet:
    """The agents, and what they are told."""

    def __init__(self, plan: Plan, conductor: ConductorAPI, database: Database) -> None:
        self.plan = plan
        self.conductor = conductor
        self.database = database
        prefix = f'compute-{uuid4().hex[:6]}'
        self.names = [f'{prefix}-{number:05d}' for number in range(plan.hosts)]
        self._devices = tuple(numbered(plan.devices, 1))

    def report(self, name: str) -> HostReport:
        devices = (
            replace(one, root=replace(one.root, name=one.root.name.replace(HOST, name)))
            for one in self._devices
        )
        return HostReport(name, 'boot', tuple(devices))

    def begin(self, name: str) -> tuple[str, str]:
        """What an agent does when it starts; the host and its digest."""
        report = self.report(name)
        while True:
            try:
                if self.beat(name, report.digest):
                    self.conductor.report_host(of_daemon(), report)
                return name, report.digest
            except CyborgError as error:
                print(f'{name}: {error.text}', file=sys.stderr)

    def beat(self, name: str, digest: str) -> bool:
        return self.conductor.heartbeat(of_daemon(), name, digest, version())

    def digests(self) -> list[tuple[str, str]]:
        return [(name, self.report(name).digest) for name in self.names]

    def adopt(self, digests: Sequence[tuple[str, str]]) -> None:
        """Hosts without their devices that the database has known for long."""
        for name, digest in digests:
            self.database.write(services.keep_digest, name, digest, 'boot')

    def greet(self, digests: Sequence[tuple[str, str]]) -> None:
        """The conductor has heard each of them before."""
        with ThreadPoolExecutor(self.plan.clients) as pool:
            list(pool.map(lambda one: self.beat(*one), digests))

    def left(self) -> int:
        return sum(one.count for one in self.database.read(jobs.count))


# --- the parts ----------------------------------------------------------------------


def start(fleet: Fleet, meter: Meter) -> None:
    """All at once, and until Placement has everything."""
    names = fleet.names[: fleet.plan.starting]
    began = time.monotonic()
    with (
        meter.measured() as cost,
        ThreadPoolExecutor(fleet.plan.clients) as pool,
        _alive(fleet) as alive,
    ):
        alive.extend(pool.map(fleet.begin, names))
        reported = time.monotonic() - began
        while fleet.left() and time.monotonic() - began < _FINISH:
            time.sleep(_PAUSE)
    took = time.monotonic() - began
    print(f'start: {len(names)} hosts with {fleet.plan.devices} devices each')
    print(f'  reports stored after           {reported:9.1f} s')
    print(f'  all in Placement after         {took:9.1f} s')
    _print_cost(cost, len(names), 'host')


@contextmanager
def _alive(fleet: Fleet) -> Iterator[list[tuple[str, str]]]:
    """Hosts that are added are not called silent while others still start."""
    hosts: list[tuple[str, str]] = []
    ended = threading.Event()

    def breathe(first: int) -> None:
        while not ended.wait(fleet.plan.interval):
            for name, digest in hosts[first::_BREATHS]:
                with suppress(CyborgError):
                    fleet.beat(name, digest)

    threads = [threading.Thread(target=breathe, args=(n,)) for n in range(_BREATHS)]
    for thread in threads:
        thread.start()
    try:
        yield hosts
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def steady(fleet: Fleet, meter: Meter, digests: Sequence[tuple[str, str]]) -> None:
    """Each host at its own moment of the interval."""
    plan = fleet.plan
    due = _moments(len(digests), plan.interval, plan.seconds)
    lags = _Lags()
    lock, began = threading.Lock(), time.monotonic()

    def play() -> None:
        while True:
            with lock:
                moment, number = next(due, (None, 0))
            if moment is None:
                return
            time.sleep(max(0.0, began + moment - time.monotonic()))
            lags.time(partial(fleet.beat, *digests[number]), began + moment)

    with meter.measured() as cost:
        _all(play, plan.clients)
        took = time.monotonic() - began
    print(f'steady: {len(digests)} hosts, a heartbeat each {plan.interval:.0f} s')
    lags.show(took, len(digests) / plan.interval)
    _print_cost(cost, len(lags.seconds), 'heartbeat')


def limit(fleet: Fleet, meter: Meter, digests: Sequence[tuple[str, str]]) -> None:
    """Each client sends the next heartbeat when it has the answer to the last."""
    lags = _Lags()
    began = time.monotonic()
    numbers = iter(range(10**9))
    lock = threading.Lock()

    def play() -> None:
        while (now := time.monotonic()) - began < fleet.plan.seconds:
            with lock:
                number = next(numbers)
            mine = digests[number % len(digests)]
            lags.time(partial(fleet.beat, *mine), now)

    with meter.measured() as cost:
        _all(play, fleet.plan.clients)
        took = time.monotonic() - began
    print(f'limit: {fleet.plan.clients} agents at a time, without a pause')
    lags.show(took, None)
    _print_cost(cost, len(lags.seconds), 'heartbeat')


def _moments(
    hosts: int, interval: float, seconds: float
) -> Iterator[tuple[float, int]]:
    """When whose heartbeat is due, seconds from the beginning."""
    number = 0
    while (moment := number * interval / hosts) < seconds:
        yield moment, number % hosts
        number += 1


def _all(play: Callable[[], None], clients: int) -> None:
    threads = [threading.Thread(target=play) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class _Lags:
    """Seconds from the moment a heartbeat was due until its answer was there."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.failed = 0

    def time(self, send: Callable[[], object], due: float) -> None:
        try:
            send()
        except CyborgError:
            self.failed += 1
            return
        self.seconds.append(time.monotonic() - due)

    def show(self, took: float, wanted: float | None) -> None:
        ordered = sorted(self.seconds) or [0.0]
        of_wanted = '' if wanted is None else f' of {wanted:.1f} wanted'
        print(f'  heartbeats a second            {len(ordered) / took:9.1f}{of_wanted}')
        for percent in (50, 95, 99):
            lag = ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
            print(f'  lag, {percent} in 100                {lag * 1000:9.1f} ms')
        print(f'  failed                         {self.failed:9d}')


def _print_cost(cost: Cost, count: int, what: str) -> None:
    each = 1000 * cost.cpu / max(1, count)
    print(f'  conductor, CPU of a {what:<10} {each:9.2f} ms')
    print(f'  conductor, of one core         {100 * cost.cpu / cost.wall:9.1f} %')
    print(f'  conductor, memory              {cost.memory / 2**20:9.1f} MiB\n')


# --- what they run against ----------------------------------------------------------


@contextmanager
def cloud(kind: str, directory: Path) -> Iterator[tuple[Cloud, str, str]]:
    """One conductor and a Placement; where the bus and the database are."""
    with ExitStack() as cleanup:
        url = cleanup.enter_context(rabbitmq.virtual_host())
        database = fresh_database(kind)
        connection = next(database)
        cleanup.callback(next, database, None)
        made = Cloud(directory, transport_url=url, connection=connection)
        cleanup.enter_context(made)
        made.migrate()
        yield made, url, connection


def bus(url: str, directory: Path) -> transport.Transport:
    file = directory / 'agents.conf'
    file.write_text(f'[DEFAULT]\ntransport_url = {url}\nrpc_response_timeout = 60\n')
    conf = cfg.ConfigOpts()
    conf(['--config-file', str(file)])
    return transport.connect(conf)


def run(plan: Plan, kind: str, directory: Path) -> None:
    with cloud(kind, directory) as (made, url, connection):
        conductor = made.start('conductor')
        wire = bus(url, directory)
        database = Database(connection)
        fleet = Fleet(plan, ConductorAPI(wire), database)
        try:
            for name in fleet.names[: plan.starting]:
                node = {'name': name, 'uuid': str(uuid4())}
                expect(made.placement.ask('POST', '/resource_providers', node), 200)
            meter = Meter(conductor)
            start(fleet, meter)
            digests = fleet.digests()
            fleet.adopt(digests[plan.starting :])
            fleet.greet(digests)
            steady(fleet, meter, digests)
            limit(fleet, meter, digests)
        finally:
            wire.cleanup()
            database.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument(
        '--starting', type=int, help='that start at once; default: all of them'
    )
    parser.add_argument('--devices', type=int, default=8)
    parser.add_argument('--interval', type=float, default=30.0)
    parser.add_argument('--seconds', type=float, default=60.0)
    parser.add_argument('--clients', type=int, default=32)
    parser.add_argument(
        '--database', choices=['mariadb', 'postgresql'], default='mariadb'
    )
    given = parser.parse_args()
    plan = Plan(
        hosts=given.hosts,
        starting=given.hosts if given.starting is None else given.starting,
        devices=given.devices,
        interval=given.interval,
        seconds=given.seconds,
        clients=given.clients,
    )
    with tempfile.TemporaryDirectory(prefix='fleet-') as directory:
        run(plan, given.database, Path(directory))
    return 0


if __name__ == '__main__':
    sys.exit(main())
