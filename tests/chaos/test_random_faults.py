# SPDX-License-Identifier: Apache-2.0
"""Clients bind and release during random faults; afterwards the state is consistent.

CYBORG_LITE_CHAOS_CYCLES is the number of instances, 250 on each database by default.
CYBORG_LITE_CHAOS_SEED repeats the choices of an earlier run.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from devstack.launcher.processes import Child
from tests.chaos.broker import Broker, broker
from tests.chaos.clients import Client, Ledger, new_seed, offers
from tests.chaos.faulty_cloud import FaultyCloud, run_cloud

CYCLES: Final = int(os.environ.get('CYBORG_LITE_CHAOS_CYCLES', '250'))
SEED: Final = int(os.environ.get('CYBORG_LITE_CHAOS_SEED', new_seed()))
CLIENTS: Final = 16
CONDUCTORS: Final = ('c1', 'c2')


class FaultInjector:
    """Thread that injects one fault after another until the clients are finished."""

    def __init__(self, cloud: FaultyCloud, node: Broker) -> None:
        self.hurts: list[str] = []
        self._cloud = cloud
        self._node = node
        self._random = random.Random(SEED)
        self._over = threading.Event()
        self._conductors = {name: self._conductor(name) for name in CONDUCTORS}
        self._agent = cloud.children[1]

    def _conductor(self, name: str) -> Child:
        return self._cloud.start('conductor', name=name)

    def inject_faults(self) -> None:
        """Inject each fault once, then mostly faults of conductors."""
        other_faults: list[Callable[[], None]] = [
            self.kill_agent,
            self.cut_database,
            self.hurt_broker,
            self.fail_nova,
        ]
        ahead = list(other_faults)
        took = 1.0
        # The pause grows with the time of a repair, so that the service can work on
        # slow machines, too.
        while not self._over.wait(self._random.uniform(0.5, 2.0) * max(1.0, took)):
            rare = ahead or self._random.random() < 0.2
            act = self.kill_conductor
            if rare:
                act = ahead.pop() if ahead else self._random.choice(other_faults)
            self.hurts.append(act.__name__)
            began = time.monotonic()
            act()
            took = time.monotonic() - began

    def end(self) -> None:
        self._over.set()

    def kill_conductor(self) -> None:
        name = self._random.choice(CONDUCTORS)
        self._conductors[name].kill()
        self._conductors[name] = self._conductor(name)

    def kill_agent(self) -> None:
        self._agent.kill()
        self._agent = self._cloud.start('agent')

    def hurt_broker(self) -> None:
        self._node.interrupt()

    def fail_nova(self) -> None:
        self._cloud.nova.rules.failures = self._random.randint(5, 20)

    def cut_database(self) -> None:
        engine = create_engine(self._cloud.connection, isolation_level='AUTOCOMMIT')
        name = make_url(self._cloud.connection).database
        with engine.connect() as connection:
            if engine.dialect.name == 'postgresql':
                cut = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity '
                cut += 'WHERE datname = :name AND pid <> pg_backend_pid()'
                connection.execute(text(cut), {'name': name})
            else:
                ids = 'SELECT id FROM information_schema.processlist WHERE db = :name '
                ids += 'AND id <> CONNECTION_ID()'
                for (number,) in connection.execute(text(ids), {'name': name}).all():
                    with suppress(OperationalError):  # closed in the meantime
                        connection.execute(text(f'KILL CONNECTION {number}'))
        engine.dispose()


@pytest.fixture
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker(tmp_path_factory.mktemp('broker')) as node:
        yield node


def test_random_faults_leave_consistent_state(
    tmp_path: Path, node: Broker, connection: str
) -> None:
    with run_cloud(FaultyCloud(tmp_path, node.url, connection, pause=0.02)) as cloud:
        disorder, ledger = FaultInjector(cloud, node), Ledger()
        requests = offers(cloud, 'FPGA', 'VGPU')

        def serve() -> None:
            with ThreadPoolExecutor(CLIENTS) as pool:
                for number in range(CYCLES):
                    client = Client(cloud, ledger, SEED + number)
                    pool.submit(client.serve, requests[number % len(requests)])
            disorder.end()

        began = time.monotonic()
        serving = threading.Thread(target=serve)
        serving.start()
        # In this thread, because a child process ends with the thread that started it.
        disorder.inject_faults()
        serving.join()
        seconds = time.monotonic() - began
        cloud.nova.rules.failures = 0
        print_figures(cloud, disorder, ledger, seconds)
        assert ledger.faults == []
        cloud.settle()
        # A create whose answer was lost leaves ARQs without a client. They own no
        # handle, and the audit deletes them.
        remaining = cloud.states()
        assert set(remaining) <= {'Initial'}
        assert (
            remaining.total()
            <= ledger.answers['POST 503'] + ledger.answers['no answer']
        )
        assert cloud.owners() == cloud.list_prepared_arqs() == []
        # An event arrives twice only if the answer to its first POST was lost.
        assert count_repeated_events(cloud) <= disorder.hurts.count('kill_conductor')


def count_repeated_events(cloud: FaultyCloud) -> int:
    """Count the events that Nova accepted more than once."""
    tags = [event['tag'] for event in cloud.nova.events]
    return len(tags) - len(set(tags))


def print_figures(
    cloud: FaultyCloud, disorder: FaultInjector, ledger: Ledger, seconds: float
) -> None:
    hurts = {name: disorder.hurts.count(name) for name in sorted(set(disorder.hurts))}
    print(f'\nseed {SEED}: {CYCLES} servers in {seconds:.0f} s')
    print(f'hurt: {hurts}')
    print(f'answers: {dict(sorted(ledger.answers.items()))}')
    print(f'events: {len(cloud.nova.events)}, repeated: {count_repeated_events(cloud)}')
