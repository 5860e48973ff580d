# SPDX-License-Identifier: Apache-2.0
"""The cost of a whole ARQ cycle, and of its basic operations.

A cycle consists of the calls of Nova for one instance: create, bind, receive the event,
read, delete. API and conductor run as processes with a real message broker, a real
database, a real Placement and a fake Nova. The same run measures the minimum cost of
the basic operations: an API call, an RPC echo, a committed row and a POST.

    python -m benchmarks.full_cycle --connection mysql+pymysql://root@127.0.0.1/bench \\
        --transport rabbit://guest:guest@127.0.0.1:5672/

The database must exist and be empty. CPU time is the sum of API and conductor. Compare
it only with the minimum of the same run, on an idle machine.

Profiles of both processes show where the CPU time is spent. The conductor uses about
two thirds. Before its transactions ran without the session of the ORM, they took 55 %
of its time, with seven transactions and 21 statements. The server of RPCs took 19 %,
Placement and Nova 13 %, and log lines 3 %. In the API two fifths are the client of
RPCs. A fifth is middlewares, of which a quarter is one log line for each request. A
fifth is Pecan and the controllers. Nearly all of the rest is the web server.
"""

import argparse
import http.client
import json
import os
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import oslo_messaging
import requests
from oslo_config import cfg
from sqlalchemy import create_engine, text

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Base
from tests.builders.bound_arqs import add_bound_arqs
from tests.servers.stack import NOVA, Cloud

Cloud.forks = False

_ARQS: Final = '/v2/accelerator_requests'
_TICK: Final = os.sysconf('SC_CLK_TCK')
_BATCH: Final = 5_000
_HOSTS: Final = 2  # with 16 handles each, enough for 32 clients
_DAEMONS: Final = ('conductor', 'api')
# Basic operations of a cycle, in addition to one POST to Nova.
_API_CALLS, _RPC_CALLS, _TRANSACTIONS = 4, 4, 8


@dataclass(frozen=True)
class Site:
    """A host and the resource provider of its card."""

    host: str
    provider: str


class Client:
    """A client with a persistent connection, which records the time of each step."""

    def __init__(self, cloud: Cloud, profile: str, site: Site) -> None:
        self._cloud = cloud
        self._profile = profile
        self._site = site
        self._connection = http.client.HTTPConnection('127.0.0.1', cloud.port)
        self.times: dict[str, list[float]] = defaultdict(list)

    def run_cycle(self) -> None:
        """Run one cycle for a new instance."""
        instance = str(uuid4())
        body = {'device_profile_name': self._profile}
        created = self._measure('create', 'POST', _ARQS, body)
        uuids = [arq['uuid'] for arq in created['arqs']]
        values = {
            '/hostname': self._site.host,
            '/device_rp_uuid': self._site.provider,
            '/instance_uuid': instance,
        }
        patch = [{'op': 'add', 'path': p, 'value': v} for p, v in values.items()]
        started_at = time.perf_counter()
        self._measure('bind', 'PATCH', _ARQS, dict.fromkeys(uuids, patch))
        while not self._has_event(uuids[-1]):
            time.sleep(0.001)
        self.times['event'].append(time.perf_counter() - started_at)
        self._measure('read', 'GET', f'{_ARQS}?instance={instance}')
        self._measure('delete', 'DELETE', f'{_ARQS}?instance={instance}')

    def _has_event(self, tag: str) -> bool:
        posts = self._cloud.nova.posts[-32:]
        return any(event['tag'] == tag for post in posts for event in post.events)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request and return the decoded JSON body, of any type."""
        headers = {'Content-Type': 'application/json', **NOVA}
        payload = None if body is None else json.dumps(body)
        self._connection.request(method, path, payload, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise SystemExit(f'{method} {path}: {answer.status} {content.decode()}')
        return json.loads(content) if content else None

    def _measure(self, step: str, method: str, path: str, body: object = None) -> Any:
        started_at = time.perf_counter()
        answer = self.ask(method, path, body)
        self.times[step].append(time.perf_counter() - started_at)
        return answer


def read_cpu_time(cloud: Cloud) -> float:
    """Return the CPU seconds that API and conductor have used so far."""
    total = 0
    for child in cloud.children:
        if child.status is None and not child.name.endswith('agent'):
            fields = Path(f'/proc/{child.group.pid}/stat').read_text().split(') ')[1]
            total += sum(map(int, fields.split()[11:13]))
    return total / _TICK


def average_cost(
    number: int, act: Callable[[], object], clock: Callable[[], float]
) -> float:
    """Return the average seconds of ``number`` calls, measured with ``clock``."""
    started_at = clock()
    for _ in range(number):
        act()
    return (clock() - started_at) / number


class Echo:
    """The RPC endpoint of the echo call."""

    def echo(self, context: object, value: object) -> object:
        """Return the value."""
        return value


@contextmanager
def echo(url: str) -> Iterator[Callable[[], object]]:
    """Yield a function that makes an RPC; client and server are in this process."""
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url)
    target = oslo_messaging.Target(topic=f'echo-{uuid4()}', server='here')
    server = oslo_messaging.get_rpc_server(transport, target, [Echo()])
    server.start()
    client = oslo_messaging.get_rpc_client(transport, target)
    payload = {'arqs': [{'uuid': str(uuid4())}] * 8}
    try:
        yield lambda: client.call({}, 'echo', value=payload)
    finally:
        server.stop()
        server.wait()
        transport.cleanup()


def measure_minimum(
    cloud: Cloud, client: Client, arguments: argparse.Namespace
) -> float:
    """Return the CPU seconds of the basic operations of a cycle."""
    before = read_cpu_time(cloud)
    for _ in range(200):
        client.ask('GET', '/v2')
    api = (read_cpu_time(cloud) - before) / 200
    with echo(arguments.transport) as call:
        call()
        bus = average_cost(200, call, time.process_time)
    engine = create_engine(arguments.connection)
    with engine.begin() as connection:
        connection.execute(text('CREATE TABLE floor_rows (word VARCHAR(64))'))

    def commit() -> None:
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO floor_rows VALUES ('x')"))

    row = average_cost(200, commit, time.process_time)
    with engine.begin() as connection:
        connection.execute(text('DROP TABLE floor_rows'))
    engine.dispose()
    with requests.Session() as session:
        url = f'{cloud.nova.endpoint}/nowhere'
        # Only this thread, because the server of the POST runs in this process.
        post = average_cost(200, lambda: session.post(url, json={}), time.thread_time)
    parts = _API_CALLS * api + _RPC_CALLS * bus + _TRANSACTIONS * row + post
    print(
        f'minimum: API call {api * 1e3:.2f} ms, bus {bus * 1e3:.2f} ms, '
        f'row {row * 1e3:.2f} ms, POST {post * 1e3:.2f} ms; '
        f'per cycle {parts * 1e3:.1f} ms CPU'
    )
    return parts


def measure(cloud: Cloud, clients: Sequence[Client], cycles: int, parts: float) -> None:
    """Print the cost of the cycles, also as a multiple of ``parts``.

    :param parts: CPU seconds of the basic operations of a cycle
    """
    before, started_at = read_cpu_time(cloud), time.perf_counter()
    remaining = threading.Semaphore(cycles)

    def work(client: Client) -> None:
        while remaining.acquire(blocking=False):
            client.run_cycle()

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(work, clients))
    seconds, used = time.perf_counter() - started_at, read_cpu_time(cloud) - before
    steps: dict[str, list[float]] = defaultdict(list)
    for client in clients:
        for step, times in client.times.items():
            steps[step] += times
    medians = ' '.join(
        f'{step} {statistics.median(times) * 1e3:.1f}' for step, times in steps.items()
    )
    print(
        f'{len(clients):3} clients: {cycles / seconds:6.1f} cycles/s, '
        f'{used / cycles * 1e3:5.1f} ms CPU each, {used / cycles / parts:.1f} times '
        f'the minimum; median ms: {medians}'
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description='The cost of ARQ cycles.')
    parser.add_argument('--connection', required=True)
    parser.add_argument('--transport', required=True)
    parser.add_argument('--others', type=int, nargs='+', default=[0, 10_000, 100_000])
    parser.add_argument('--clients', type=int, nargs='+', default=[1, 8, 32])
    parser.add_argument('--cycles', type=int, default=200)
    parser.add_argument(
        '--controller',
        action='store_true',
        help='run API and conductor in one process',
    )
    arguments = parser.parse_args()
    database = Database(arguments.connection)
    with tempfile.TemporaryDirectory() as folder:
        cloud = Cloud(
            Path(folder),
            transport_url=arguments.transport,
            connection=arguments.connection,
            options={'conductor': {'require_allocation': False}},
        )
        with cloud:
            cloud.migrate()
            for daemon in ('controller',) if arguments.controller else _DAEMONS:
                cloud.start(daemon)
            run(cloud, database, arguments)
    Base.metadata.drop_all(database.engines[0])
    with database.engines[0].begin() as connection:
        connection.execute(text('DROP TABLE alembic_version'))
    database.close()


def run(cloud: Cloud, database: Database, arguments: argparse.Namespace) -> None:
    """Measure the cycles for each number of ARQs and clients."""
    sites = [start_site(cloud, number) for number in range(_HOSTS)]
    single, eight = cloud.create_profile('FPGA'), cloud.create_profile('FPGA', 8)
    parts = measure_minimum(cloud, Client(cloud, single, sites[0]), arguments)
    existing = 0
    for number in sorted(arguments.others):
        while existing < number:
            batch = min(number - existing, _BATCH)
            database.write(add_bound_arqs, single, batch)
            existing += batch
        print(f'with {existing} other ARQs, one per instance:')
        for clients in arguments.clients:
            pool = [
                Client(cloud, single, sites[number % _HOSTS])
                for number in range(clients)
            ]
            measure(cloud, pool, arguments.cycles, parts)
        print('eight per instance:')
        measure(cloud, [Client(cloud, eight, sites[0])], arguments.cycles, parts)


def start_site(cloud: Cloud, number: int) -> Site:
    """Start the agent of another host."""
    if number:
        cloud.next_host()
    folder = cloud.directory / f'agent-{number}'
    cloud.configure({'agent': {'state_path': folder}})
    cloud.start('agent', name=f'agent-{number}')
    return Site(cloud.host, cloud.provider_of('FPGA'))


if __name__ == '__main__':
    main()
