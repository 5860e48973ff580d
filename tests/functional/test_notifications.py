# SPDX-License-Identifier: Apache-2.0
"""Notifications over a real RabbitMQ, as another service receives them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.conductor.jobs.notifications import (
    NotificationSender,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import outbox
from cyborg_lite.errors.daemons import ConfigurationError, ServiceUnavailable
from cyborg_lite.model.jobs import Owner
from cyborg_lite.rpc import notifications, transport
from tests.builders.bound_arqs import create_bound_arqs
from tests.servers import rabbitmq
from tests.servers.databases import create_sqlite_file
from tests.servers.notification_consumer import TOPIC, NotificationConsumer

MAX_BACKLOG = 1000


OPTIONS = """
[DEFAULT]
transport_url = local://
[oslo_messaging_notifications]
transport_url = {url}
"""


def parse(directory: Path, url: str) -> cfg.ConfigOpts:
    """Return a configuration with a broker for notifications."""
    file = directory / 'cyborg-lite.conf'
    file.write_text(OPTIONS.format(url=url))
    conf = configuration.parse(['--config-file', str(file)], 'prog')
    transport.connect(conf).cleanup()  # registers the options of the library
    return conf


@pytest.fixture
def broker() -> Iterator[str]:
    with rabbitmq.virtual_host() as url:
        yield url


@pytest.fixture
def conf(tmp_path: Path, broker: str) -> cfg.ConfigOpts:
    return parse(tmp_path, broker)


@pytest.fixture
def notifying(tmp_path: Path) -> Iterator[Database]:
    database = Database(create_sqlite_file(tmp_path / 'db.sqlite'), notifies=True)
    yield database
    database.close()


def test_consumer_receives_messages_sent_before_its_start(
    conf: cfg.ConfigOpts, notifying: Database, tmp_path: Path, broker: str
) -> None:
    create_bound_arqs(notifying, 2)
    waiting = notifying.read(outbox.list_oldest, 100)
    bus = notifications.connect(conf, TOPIC, 'controller-1')
    sender = NotificationSender(notifying, bus, Owner('a:1:1', 30_000), MAX_BACKLOG)
    sender.send_batch()
    assert notifying.read(outbox.list_oldest, 1) == ()
    consumer = NotificationConsumer(tmp_path, broker)
    received = consumer.wait_for(len(waiting), 60.0)
    consumer.stop()
    bus.close()
    assert [message.message_id for message in received] == [
        item.uuid for item in waiting
    ]
    assert [message.payload for message in received] == [
        item.payload for item in waiting
    ]
    assert received[0].publisher_id == 'cyborg-lite-conductor:controller-1'
    assert received[0].event_type == waiting[0].event_type


def test_unreachable_broker_keeps_notifications(
    notifying: Database, tmp_path: Path
) -> None:
    create_bound_arqs(notifying, 1)
    waiting = notifying.read(outbox.list_oldest, 100)
    conf = parse(tmp_path, 'rabbit://guest:guest@127.0.0.1:1/')
    bus = notifications.connect(conf, TOPIC, 'controller-1')
    sender = NotificationSender(notifying, bus, Owner('a:1:1', 30_000), MAX_BACKLOG)
    with pytest.raises(ServiceUnavailable):
        sender.send_batch()
    assert notifying.read(outbox.list_oldest, 100) == waiting


@pytest.mark.parametrize('url', ['local://', 'nonsense://'])
def test_transport_without_notifications_is_refused(url: str, tmp_path: Path) -> None:
    conf = parse(tmp_path, url)
    with pytest.raises(ConfigurationError):
        notifications.connect(conf, TOPIC, 'controller-1')
