# SPDX-License-Identifier: Apache-2.0
"""What a whole cycle of accelerator requests costs, and what its parts cost alone.

A cycle is what Nova asks for one server: create, bind, the event, read, delete. The
stack is real: API and conductor as processes, a broker, a database, a Placement, and a
receiver that stands for Nova. The floor is measured in the same run: a bare call of the
API, an echo over the broker, a row committed to the database, a POST.

    python -m benchmarks.full_cycle --connection mysql+pymysql://root@127.0.0.1/bench \\
        --transport rabbit://guest:guest@127.0.0.1:5672/

The database must exist and be empty. CPU is that of API and conductor together; compare
it with the floor of the same run alone, and on a machine that does nothing else.

Where the rest goes, by samples of both, of which the conductor uses three fifths: half
of the conductor's are in its six transactions, of nineteen statements, of which the
library and the driver have nearly all; a quarter receives the calls, a twelfth asks
Placement and tells Nova. Of the API's a third is the bus, a tenth the policy, and
nearly all the rest the server, the middlewares, WebOb and Pecan.
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

from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Base
from tests.fakes.stack import NOVA, Cloud
from tests.functional.db.test_cost import crowd

_ARQS: Final = '/v2/accelerator_requests'
_TICK: Final = os.sysconf('SC_CLK_TCK')
_BATCH: Final = 5_000
_HOSTS: Final = 2  # each with a card of sixteen units, so that 32 clients find one
# What a cycle cannot do without; and one POST to Nova.
_API_CALLS, _RPC_CALLS, _TRANSACTIONS = 4, 4, 8


@dataclass(frozen=True)
class Site:
    """A host and the resource provider of its card."""

    host: str
    provider: str


class Client:
    """One connection that is kept open, and the times of each step."""

    def __init__(self, cloud: Cloud, profile: str, site: Site) -> None:
        self._cloud = cloud
        self._profile = profile
        self._site = site
        self._connection = http.client.HTTPConnection('127.0.0.1', cloud.port)
        self.times: dict[str, list[float]] = defaultdict(list)

    def cycle(self) -> None:
        instance = str(uuid4())
        body = {'device_profile_name': self._profile}
        made = self._timed('create', 'POST', _ARQS, body)
        uuids = [arq['uuid'] for arq in made['arqs']]
        values = {
            '/hostname': self._site.host,
            '/device_rp_uuid': self._site.provider,
            '/instance_uuid': instance,
        }
        patch = [{'op': 'add', 'path': p, 'value': v} for p, v in values.items()]
        began = time.perf_counter()
        self._timed('bind', 'PATCH', _ARQS, dict.fromkeys(uuids, patch))
        while not self._heard(uuids[-1]):
            time.sleep(0.001)
        self.times['event'].append(time.perf_counter() - began)
        self._timed('read', 'GET', f'{_ARQS}?instance={instance}')
        self._timed('delete', 'DELETE', f'{_ARQS}?instance={instance}')

    def _heard(self, tag: str) -> bool:
        posts = self._cloud.nova.posts[-32:]
        return any(event['tag'] == tag for post in posts for event in post.events)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """JSON of any shape."""
        headers = {'Content-Type': 'application/json', **NOVA}
        content = None if body is None else json.dumps(body)
        self._connection.request(method, path, content, headers)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status >= 300:
            raise SystemExit(f'{method} {path}: {answer.status} {said.decode()}')
        return json.loads(said) if said else None

    def _timed(self, step: str, method: str, path: str, body: object = None) -> Any:
        began = time.perf_counter()
        answer = self.ask(method, path, body)
        self.times[step].append(time.perf_counter() - began)
        return answer


def cpu(cloud: Cloud) -> float:
    """Seconds that API and conductor have used so far."""
    total = 0
    for child in cloud.children:
        if child.status is None and not child.name.endswith('agent'):
            fields = Path(f'/proc/{child.group.pid}/stat').read_text().split(') ')[1]
            total += sum(map(int, fields.split()[11:13]))
    return total / _TICK


def each(number: int, act: Callable[[], object], clock: Callable[[], float]) -> float:
    """Seconds, by a clock of CPU, for one of ``number`` acts."""
    began = clock()
    for _ in range(number):
        act()
    return (clock() - began) / number


class Echo:
    """The endpoint of the bare call over the broker."""

    def echo(self, context: object, value: object) -> object:
        return value


@contextmanager
def echo(url: str) -> Iterator[Callable[[], object]]:
    """A call over the bus, client and server in this process."""
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


def floor(cloud: Cloud, client: Client, arguments: argparse.Namespace) -> float:
    """CPU seconds of the parts that a cycle cannot do without."""
    before = cpu(cloud)
    for _ in range(200):
        client.ask('GET', '/v2')
    api = (cpu(cloud) - before) / 200
    with echo(arguments.transport) as call:
        call()
        bus = each(200, call, time.process_time)
    engine = create_engine(arguments.connection)
    with engine.begin() as connection:
        connection.execute(text('CREATE TABLE floor_rows (word VARCHAR(64))'))

    def commit() -> None:
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO floor_rows VALUES ('x')"))

    row = each(200, commit, time.process_time)
    with engine.begin() as connection:
        connection.execute(text('DROP TABLE floor_rows'))
    engine.dispose()
    with requests.Session() as session:
        url = f'{cloud.nova.endpoint}/nowhere'
        # Of this thread alone: who answers is in this process too.
        post = each(200, lambda: session.post(url, json={}), time.thread_time)
    parts = _API_CALLS * api + _RPC_CALLS * bus + _TRANSACTIONS * row + post
    print(
        f'floor: API call {api * 1e3:.2f} ms, bus {bus * 1e3:.2f} ms, '
        f'row {row * 1e3:.2f} ms, POST {post * 1e3:.2f} ms; '
        f'of a cycle {parts * 1e3:.1f} ms CPU'
    )
    return parts


def measure(cloud: Cloud, crew: Sequence[Client], cycles: int, parts: float) -> None:
    """Print what so many cycles cost, and how often the ``parts`` of one."""
    before, began = cpu(cloud), time.perf_counter()
    share = threading.Semaphore(cycles)

    def work(client: Client) -> None:
        while share.acquire(blocking=False):
            client.cycle()

    with ThreadPoolExecutor(len(crew)) as pool:
        list(pool.map(work, crew))
    seconds, used = time.perf_counter() - began, cpu(cloud) - before
    steps: dict[str, list[float]] = defaultdict(list)
    for client in crew:
        for step, times in client.times.items():
            steps[step] += times
    medians = ' '.join(
        f'{step} {statistics.median(times) * 1e3:.1f}' for step, times in steps.items()
    )
    print(
        f'{len(crew):3} clients: {cycles / seconds:6.1f} cycles/s, '
        f'{used / cycles * 1e3:5.1f} ms CPU each, {used / cycles / parts:.1f} of the '
        f'floor; median ms: {medians}'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description='Cycles of accelerator requests.')
    parser.add_argument('--connection', required=True)
    parser.add_argument('--transport', required=True)
    parser.add_argument('--others', type=int, nargs='+', default=[0, 10_000, 100_000])
    parser.add_argument('--clients', type=int, nargs='+', default=[1, 8, 32])
    parser.add_argument('--cycles', type=int, default=200)
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
            cloud.start('conductor')
            cloud.start('api')
            run(cloud, database, arguments)
    Base.metadata.drop_all(database.engines[0])
    with database.engines[0].begin() as connection:
        connection.execute(text('DROP TABLE alembic_version'))
    database.close()


def run(cloud: Cloud, database: Database, arguments: argparse.Namespace) -> None:
    sites = [site(cloud, number) for number in range(_HOSTS)]
    one, eight = cloud.create_profile('FPGA'), cloud.create_profile('FPGA', 8)
    parts = floor(cloud, Client(cloud, one, sites[0]), arguments)
    there = 0
    for others in sorted(arguments.others):
        while there < others:
            wanted = min(others - there, _BATCH)
            database.write(crowd, one, wanted)
            there += wanted
        print(f'with {there} other requests, one for each server:')
        for clients in arguments.clients:
            crew = [
                Client(cloud, one, sites[number % _HOSTS]) for number in range(clients)
            ]
            measure(cloud, crew, arguments.cycles, parts)
        print('eight for each server:')
        measure(cloud, [Client(cloud, eight, sites[0])], arguments.cycles, parts)


def site(cloud: Cloud, number: int) -> Site:
    """Start the agent of one more host."""
    if number:
        cloud.next_host()
    folder = cloud.directory / f'agent-{number}'
    cloud.configure({'agent': {'state_path': folder}})
    cloud.start('agent', name=f'agent-{number}')
    return Site(cloud.host, cloud.provider_of('FPGA'))


if __name__ == '__main__':
    main()
