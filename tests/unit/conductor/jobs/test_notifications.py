# SPDX-License-Identifier: Apache-2.0
"""The sender of notifications: order, repetition after a crash, and broker outages."""

import logging
import threading

import pytest

from cyborg_lite.conductor.jobs.notifications import (
    NotificationSender,
)
from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import outbox
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.jobs import Owner
from cyborg_lite.model.notifications import DevicePayload, Notification, ObjectKind
from cyborg_lite.rpc.notifications import NotificationBus
from tests.servers.databases import find_url

MAX_BACKLOG = 1000


class Topic(NotificationBus):
    """A topic that can fail."""

    def __init__(self) -> None:
        self.received: list[Notification] = []
        self.works = True
        self.crash_after: int | None = None  # None: it never crashes

    def send(self, notification: Notification) -> None:
        if not self.works:
            raise ServiceUnavailable(what='RabbitMQ')
        self.received.append(notification)
        if self.crash_after == len(self.received):
            raise KeyboardInterrupt

    @property
    def numbers(self) -> list[str]:
        return [item.payload['value'] for item in self.received]


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture
def notifying(database: Database) -> Database:
    return Database(find_url(database), notifies=True)


def add(database: Database, number: int) -> list[str]:
    """Add notifications of one device; return their values."""
    values = [str(place) for place in range(number)]
    payloads = [
        DevicePayload('u', 'h', [], 'GPU', 'v', 'm', '', value, '') for value in values
    ]
    database.write(outbox.add_notifications, ObjectKind.DEVICE, 'added', payloads)
    return values


def build(database: Database, topic: Topic, name: str = 'a:1:1') -> NotificationSender:
    return NotificationSender(database, topic, Owner(name, 30_000), MAX_BACKLOG)


def test_send_batch_keeps_order_and_deletes(notifying: Database, topic: Topic) -> None:
    values = add(notifying, 150)
    sender = build(notifying, topic)
    assert sender.send_batch()
    assert not sender.send_batch()
    assert topic.numbers == values
    assert notifying.read(outbox.list_oldest, 1) == ()


def test_send_batch_second_conductor_sends_nothing(
    notifying: Database, topic: Topic
) -> None:
    build(notifying, topic).send_batch()
    add(notifying, 3)
    assert not build(notifying, topic, 'b:1:1').send_batch()
    assert topic.numbers == []


def test_excess_is_dropped_while_broker_is_away(
    notifying: Database, topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    add(notifying, 1003)
    topic.works = False
    counts: list[tuple[str, int]] = []
    sender = NotificationSender(
        notifying,
        topic,
        Owner('a:1:1', 30_000),
        MAX_BACKLOG,
        lambda result, number: counts.append((result, number)),
    )
    with pytest.raises(ServiceUnavailable), caplog.at_level(logging.ERROR):
        sender.send_batch()
    assert ('dropped', 3) in counts
    assert 'max_backlog' in caplog.text
    assert notifying.read(outbox.read_backlog).count == 1000


def test_run_logs_outage_once_and_ends_lease(
    notifying: Database, topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    add(notifying, 1)
    stopping = StopAfter(3)
    topic.works = False
    with caplog.at_level(logging.INFO):
        build(notifying, topic).run(stopping)
    assert caplog.text.count('Cannot send notifications, retrying') == 1
    assert notifying.write(outbox.renew_lease, Owner('b:1:1', 30_000))


class StopAfter(threading.Event):
    """An event that is set after some waits, without waiting."""

    def __init__(self, waits: int) -> None:
        super().__init__()
        self.waits = waits

    def wait(self, timeout: float | None = None) -> bool:
        self.waits -= 1
        return self.waits < 0


def test_backlog_metrics_show_waiting_notifications(notifying: Database) -> None:
    add(notifying, 2)
    metrics = Metrics()
    metrics.add_database_metrics(notifying)
    read = metrics.registry.get_sample_value
    assert read('cyborg_lite_notifications_waiting') == 2
    assert 0 <= (read('cyborg_lite_notification_age_seconds') or 0) < 60
