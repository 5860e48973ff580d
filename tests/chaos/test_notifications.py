# SPDX-License-Identifier: Apache-2.0
"""Conductors are killed while they send notifications; the stream stays complete.

Clients bind and delete ARQs, and an operator changes a device and a device profile.
The sender is killed with SIGKILL in the middle of its batches. Afterwards the received
stream is compared with what was committed and with the history of the service.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from devstack.launcher.processes import Child
from devstack.launcher.rest import Answer
from tests.chaos.clients import Client, Ledger, new_seed, offers
from tests.chaos.faulty_cloud import FaultyCloud, run_cloud
from tests.chaos.notification_stream import CommitLog, group_by_object
from tests.servers import rabbitmq
from tests.servers.notification_consumer import Message, NotificationConsumer
from tests.servers.stack import ADMIN, Instance, expect
from tests.support.billing import parse_ms, rebuild_sums

CLIENTS: Final = 6
KILLS: Final = 6
MOST_KILLS: Final = 40
NAMES: Final = ('c1', 'c2')
NEWEST: Final = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.7'}


class SenderKiller:
    """Kills the conductor that sends notifications, and starts it again."""

    def __init__(
        self, cloud: FaultyCloud, log: CommitLog, consumer: NotificationConsumer
    ) -> None:
        self.kills = 0
        self._cloud = cloud
        self._log = log
        self._consumer = consumer
        self._conductors = {name: self._start(name) for name in NAMES}

    def _start(self, name: str) -> Child:
        return self._cloud.start('conductor', name=name)

    def run(self) -> None:
        """Kill senders until messages were repeated, which proves a torn batch."""
        while self.kills < KILLS or not self.count_repeated():
            assert self.kills < MOST_KILLS, 'no batch was interrupted'
            pid = self._log.find_sender()
            name = self._find_conductor(pid)
            if pid is None or name is None:
                time.sleep(0.1)
            # A message arrives while its sender works on the rest of the batch.
            elif self._consumer.wait_for_next(10.0):
                with suppress(ProcessLookupError):  # another one may send meanwhile
                    os.kill(pid, signal.SIGKILL)
                self._replace(name)

    def count_repeated(self) -> int:
        """Return the number of messages that have arrived again."""
        return len(self._consumer.messages) - len(self._consumer.list_distinct())

    def _find_conductor(self, pid: int | None) -> str | None:
        """Return the name of the conductor with a process; None: it has ended."""
        for name, child in self._conductors.items():
            if pid in child.group.members():
                return name
        return None

    def _replace(self, name: str) -> None:
        """Kill all processes of a conductor, and start it again."""
        self._conductors[name].kill()
        self.kills += 1
        self._log.expire_lease()
        self._conductors[name] = self._start(name)


class Operator:
    """Administrator who changes a device and a device profile in turns."""

    def __init__(self, cloud: FaultyCloud, profile: str) -> None:
        self.statuses: list[str] = []
        """Status of the device after each change."""
        self._cloud = cloud
        self._profile = profile
        devices = expect(cloud.api(NEWEST).ask('GET', '/v2/devices'), 200)['devices']
        (self.device,) = (row['uuid'] for row in devices if row['type'] == 'GPU')

    def run(self, over: threading.Event) -> None:
        """Change both until the event is set."""
        number = 0
        while not over.wait(0.05):
            number += 1
            status = 'maintaining' if number % 2 else 'enabled'
            self._patch(f'/v2/devices/{self.device}', status=status)
            self.statuses.append(status)
            path = f'/v2/device_profiles/{self._profile}'
            self._patch(path, description=f'change {number}')

    def _patch(self, path: str, **values: str) -> None:
        body = [
            {'op': 'replace', 'path': f'/{name}', 'value': value}
            for name, value in values.items()
        ]

        def is_accepted() -> bool:
            try:
                answer: Answer = self._cloud.api(NEWEST).ask('PATCH', path, body)
            except OSError:
                return False
            # Placement has another generation, or the conductor is killed: repeat.
            assert answer.status in (200, 409, 503), answer.body
            return answer.status == 200

        self._cloud.until(is_accepted, f'{path} is changed')


@pytest.fixture
def bus() -> Iterator[str]:
    with rabbitmq.virtual_host() as url:
        yield url


@pytest.fixture
def consumer(tmp_path: Path, bus: str) -> Iterator[NotificationConsumer]:
    consumer = NotificationConsumer(tmp_path, bus)
    yield consumer
    consumer.stop()


@pytest.fixture
def cloud(tmp_path: Path, bus: str, connection: str) -> Iterator[FaultyCloud]:
    cloud = FaultyCloud(tmp_path, bus, connection)
    cloud.configure({'notifications': {'enabled': True}})
    with run_cloud(cloud):
        yield cloud


@pytest.fixture
def log(cloud: FaultyCloud, connection: str) -> Iterator[CommitLog]:
    log = CommitLog(connection)
    log.start()
    yield log
    log.close()


def test_killed_senders_lose_and_disorder_nothing(
    cloud: FaultyCloud, log: CommitLog, consumer: NotificationConsumer
) -> None:
    killer = SenderKiller(cloud, log, consumer)
    (offer,) = offers(cloud, 'FPGA')
    operator = Operator(cloud, offer.profile)
    ledger, over = Ledger(), threading.Event()

    def serve() -> None:
        while not over.is_set():
            Client(cloud, ledger, new_seed()).serve(offer)

    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        changing = pool.submit(operator.run, over)
        for _ in range(CLIENTS):
            pool.submit(serve)
        # In this thread, because a child process ends with the thread that started it.
        try:
            killer.run()
        finally:
            over.set()
        changing.result()
    assert ledger.faults == []
    used = [cloud.boot('FPGA') for _ in range(3)]
    for instance in used:
        cloud.until(instance.is_resolved, 'Nova receives the event')
    cloud.settle()
    cloud.until(lambda: not log.count_waiting(), 'all notifications are sent')
    committed = log.read()
    cloud.until(
        lambda: len(consumer.list_distinct()) >= len(committed), 'all have arrived'
    )
    received = consumer.list_distinct()
    print(
        f'\n{killer.kills} kills, {len(received)} notifications of '
        f'{len(group_by_object(committed))} objects, {killer.count_repeated()} repeated'
    )
    check_stream(received, committed)
    check_histories(received, operator, used, cloud)
    check_bill(received, cloud)


def check_stream(received: list[Message], committed: list[Message]) -> None:
    """Check that all notifications arrive, no others, and in order per object."""
    assert {item.message_id: item for item in received} == {
        item.message_id: item for item in committed
    }
    assert group_by_object(received) == group_by_object(committed)


def check_histories(
    received: list[Message],
    operator: Operator,
    used: list[Instance],
    cloud: FaultyCloud,
) -> None:
    """Check that the stream tells the history of each ARQ and of the device."""
    arqs: dict[str, list[str]] = {}
    for item in received:
        kind, _, action = item.event_type.partition('.')
        if kind == 'accelerator_request':
            step = item.payload.get('state', action)
            arqs.setdefault(item.payload['uuid'], []).append(step)
    bound = {uuid for instance in used for uuid in instance.arqs}
    for uuid, steps in arqs.items():
        assert steps[0] == 'Initial'
        assert steps.count('Initial') == 1
        if uuid in bound:
            assert steps == ['Initial', 'BindStarted', 'Bound']
        elif steps != ['Initial']:  # a creation whose answer was lost
            assert steps[-1] == 'Deleted'
            assert steps.count('used') == steps.count('Bound')
    statuses = [
        item.payload['value']
        for item in received
        if item.event_type == 'device.status_changed'
        and item.payload['uuid'] == operator.device
    ]
    # A refused change is undone, and a request whose answer was lost is repeated. Both
    # send more statuses than the operator has set.
    remaining = iter(statuses)
    assert all(status in remaining for status in operator.statuses)
    assert statuses[-1] == operator.statuses[-1]
    path = f'/v2/devices/{operator.device}/events'
    events = expect(cloud.api(NEWEST).ask('GET', path), 200)['events']
    stored = [row['value'] for row in events if row['kind'] == 'status-changed']
    assert stored[::-1] == statuses[-len(stored) :]  # the latest first, at most 1000


def check_bill(received: list[Message], cloud: FaultyCloud) -> None:
    """Check that the stream results in the unit hours of the service."""
    # Any: JSON.
    answer: Any = expect(cloud.api(NEWEST).ask('GET', '/v2/usages'), 200)
    hours = {
        key: round(milliseconds / 3_600_000, 6)
        for key, milliseconds in rebuild_sums(received, parse_ms(answer['end'])).items()
    }
    assert hours
    names = ('project_id', 'resource_class', 'device_profile_name')
    assert hours == {
        tuple(row[name] for name in names): row['unit_hours']
        for row in answer['usages']
    }
