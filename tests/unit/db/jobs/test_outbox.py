# SPDX-License-Identifier: Apache-2.0
"""Notifications in the database: their rows, their lease, and the use of units."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import release, usages
from cyborg_lite.db.core.clock import now_ms, read_now_ms
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, Lease
from cyborg_lite.db.jobs import outbox
from cyborg_lite.model.arqs.usages import UnitUsage, UsageQuery
from cyborg_lite.model.jobs import Owner
from cyborg_lite.model.notifications import Notification
from cyborg_lite.rpc.context import RequestContext
from tests.builders.bind_jobs import ANY_PROJECT
from tests.builders.bound_arqs import (
    bind_arqs,
    create_bound_arqs,
    create_bound_instance,
)
from tests.builders.rows import HOST, PROJECT, add_arqs, add_card
from tests.builders.table_rows import change_rows, read_column
from tests.servers.databases import find_url
from tests.support.billing import parse_ms, rebuild_sums

FIRST, SECOND = Owner('first:1:1', 30_000), Owner('second:1:1', 30_000)


@pytest.fixture
def notifying(database: Database) -> Iterator[Database]:
    """Return the same database with notifications."""
    url = find_url(database)
    opened = Database(url, notifies=True)
    yield opened
    opened.close()


def list_all(database: Database) -> tuple[Notification, ...]:
    return database.read(outbox.list_oldest, 10_000)


def list_steps(database: Database, uuid: str) -> list[tuple[str, str]]:
    """Return action and state of the notifications of an ARQ."""
    return [
        (item.event_type.partition('.')[2], item.payload.get('state', ''))
        for item in list_all(database)
        if item.payload['uuid'] == uuid
    ]


def test_disabled_notifications_write_no_row(database: Database) -> None:
    create_bound_arqs(database, 2)
    assert list_all(database) == ()


def test_arq_life_is_notified_in_order(notifying: Database) -> None:
    (uuid,) = create_bound_arqs(notifying, 1)
    notifying.write(release.unbind_arqs, [uuid], ANY_PROJECT, None)
    notifying.write(release.delete_arqs, [uuid], ANY_PROJECT, True, None)
    assert list_steps(notifying, uuid) == [
        ('created', 'Initial'),
        ('state_changed', 'BindStarted'),
        ('state_changed', 'Bound'),
        ('used', ''),
        ('state_changed', 'Unbound'),
        ('state_changed', 'Deleting'),
    ]


def test_deleted_arq_is_notified_before_its_row_goes(notifying: Database) -> None:
    (uuid,), instance = create_bound_instance(notifying, 1)
    notifying.write(release.delete_arqs_of_instance, instance, ANY_PROJECT, None)
    assert list_steps(notifying, uuid)[-2:] == [('used', ''), ('deleted', 'Deleted')]
    last = list_all(notifying)[-1].payload
    assert (last['project_id'], last['host']) == (PROJECT, HOST)
    assert (last['resource_class'], last['version']) == ('PGPU', '1.0')
    assert last['bound_at'] is None


def test_notification_has_request_id(notifying: Database) -> None:
    context = RequestContext(user_id='u', project_id=PROJECT)
    add_arqs(notifying, 1)
    assert list_all(notifying)[-1].payload['request_id'] == context.request_id


def test_rolled_back_change_writes_no_notification(notifying: Database) -> None:
    (uuid,) = add_arqs(notifying, 1)
    count = len(list_all(notifying))

    def fail(session: Session) -> None:
        release.delete_arqs(session, [uuid], ANY_PROJECT, True, None)
        raise KeyError

    with pytest.raises(KeyError):
        notifying.write(fail)
    assert len(list_all(notifying)) == count


@pytest.mark.parametrize('seed', [1, 2, 3])
def test_billing_replays_stream_to_same_sums(notifying: Database, seed: int) -> None:
    """Random binds, unbinds and deletes; the times are spread by hand."""
    chooser = random.Random(seed)
    card = add_card(notifying, 6)
    sets = [add_arqs(notifying, chooser.randint(1, 2)) for _ in range(3)]
    bound: set[int] = set()
    for _ in range(25):
        number = chooser.randrange(3)
        if number in bound:
            notifying.write(release.unbind_arqs, sets[number], ANY_PROJECT, None)
            bound.discard(number)
        else:
            bind_arqs(notifying, sets[number], card)
            bound.add(number)
    notifying.write(release.delete_arqs, sets[0], ANY_PROJECT, True, None)
    end = notifying.read(read_now_ms) + 1000
    # The query counts until now, which follows the last event.
    report = notifying.read(usages.sum_usages, UsageQuery(0, end))
    sums = rebuild_sums(list_all(notifying), report.end)
    expected = {UnitUsage(*key, total) for key, total in sums.items() if total}
    assert {item for item in report.usages if item.milliseconds} == expected


def test_bound_notification_has_start_of_use(notifying: Database) -> None:
    (uuid,) = create_bound_arqs(notifying, 1)
    (start,) = read_column(notifying, select(Arq.bound_at))
    times = [
        item.payload['bound_at']
        for item in list_all(notifying)
        if item.payload['uuid'] == uuid
    ]
    assert times[:-1] == [None, None]
    assert parse_ms(times[-1]) == start


# --- lease and backlog ---


def test_renew_lease_has_one_owner(database: Database) -> None:
    assert database.write(outbox.renew_lease, FIRST)
    assert database.write(outbox.renew_lease, FIRST)
    assert not database.write(outbox.renew_lease, SECOND)
    database.write(outbox.end_lease, SECOND)
    assert not database.write(outbox.renew_lease, SECOND)
    database.write(outbox.end_lease, FIRST)
    assert database.write(outbox.renew_lease, SECOND)


@pytest.mark.parametrize('until', [1, now_ms() + 3_600_000])
def test_renew_lease_of_impossible_time_is_taken_over(
    database: Database, until: Any
) -> None:
    assert database.write(outbox.renew_lease, FIRST)
    change_rows(database, Lease, lease_until=until)
    assert database.write(outbox.renew_lease, SECOND)
    assert not database.write(outbox.renew_lease, FIRST)


def test_drop_oldest_spares_largest_backlog(notifying: Database) -> None:
    add_arqs(notifying, 5)
    latest_ids = [item.id for item in list_all(notifying)][-3:]
    assert notifying.write(outbox.drop_oldest, 3, 1) == 1
    assert notifying.write(outbox.drop_oldest, 3, 1000) == len(latest_ids) - 2
    assert notifying.write(outbox.drop_oldest, 3, 1000) == 0
    assert [item.id for item in list_all(notifying)] == latest_ids
