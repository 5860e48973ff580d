# SPDX-License-Identifier: Apache-2.0
"""Notifications in the database: their rows, their lease, and the use of units."""

import random
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import binding, release, usages
from cyborg_lite.db.core.clock import now_ms, read_now_ms
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, Lease
from cyborg_lite.db.jobs import outbox, queue
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.arqs.usages import UnitUsage, UsageQuery
from cyborg_lite.model.jobs import NewJob, Owner
from cyborg_lite.model.notifications import Notification
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.rpc.context import RequestContext
from tests.builders.bound_arqs import create_bound_arqs, create_bound_instance
from tests.builders.rows import HOST, OWNER, PROJECT, add_arqs, add_card, bindings
from tests.servers.databases import find_url
from tests.support.billing import parse_ms, rebuild_sums

ANY = Scope(project_id=None)
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
    notifying.write(release.unbind_arqs, [uuid], ANY, None)
    notifying.write(release.delete_arqs, [uuid], ANY, True, None)
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
    notifying.write(release.delete_arqs_of_instance, instance, ANY, None)
    assert list_steps(notifying, uuid)[-2:] == [('used', ''), ('deleted', 'Deleted')]
    last = list_all(notifying)[-1].payload
    assert (last['project_id'], last['host'], last['resource_class']) == (
        PROJECT,
        HOST,
        'PGPU',
    )
    assert (last['version'], last['bound_at']) == ('1.0', None)


def test_notification_has_request_id(notifying: Database) -> None:
    context = RequestContext(user_id='u', project_id=PROJECT)
    add_arqs(notifying, 1)
    assert list_all(notifying)[-1].payload['request_id'] == context.request_id


def test_rolled_back_change_writes_no_notification(notifying: Database) -> None:
    (uuid,) = add_arqs(notifying, 1)
    count = len(list_all(notifying))

    def fail(session: Session) -> None:
        release.delete_arqs(session, [uuid], ANY, True, None)
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
            notifying.write(release.unbind_arqs, sets[number], ANY, None)
            bound.discard(number)
        else:
            bind(notifying, sets[number], card)
            bound.add(number)
    notifying.write(release.delete_arqs, sets[0], ANY, True, None)
    end = notifying.read(read_now_ms) + 1000
    # The query counts until now, which follows the last event.
    report = notifying.read(usages.sum_usages, UsageQuery(0, end))
    expected = {
        UnitUsage(*key, total)
        for key, total in rebuild_sums(list_all(notifying), report.end).items()
    }
    assert {item for item in report.usages if item.milliseconds} == {
        item for item in expected if item.milliseconds
    }


def bind(database: Database, uuids: list[str], card: str) -> None:
    by_arq = bindings(uuids, card, str(uuid4()))
    job = database.write(
        binding.accept_bind, by_arq, ANY, NewJob(OperationKind.BIND), OWNER
    )
    event = NewJob(OperationKind.NOVA_EVENT)
    claimed = database.write(binding.claim_for_bind, job, uuids, None, event)
    database.write(queue.finish_job, claimed.job)


def test_bound_notification_has_start_of_use(notifying: Database) -> None:
    (uuid,) = create_bound_arqs(notifying, 1)
    start = notifying.read(lambda session: session.scalar(select(Arq.bound_at)))
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
    end_lease = update(Lease).values(lease_until=until)
    database.write(lambda session: session.execute(end_lease))
    assert database.write(outbox.renew_lease, SECOND)
    assert not database.write(outbox.renew_lease, FIRST)


def test_drop_oldest_spares_largest_backlog(notifying: Database) -> None:
    add_arqs(notifying, 5)
    latest_ids = [item.id for item in list_all(notifying)][-3:]
    assert notifying.write(outbox.drop_oldest, 3, 1) == 1
    assert notifying.write(outbox.drop_oldest, 3, 1000) == len(latest_ids) - 2
    assert notifying.write(outbox.drop_oldest, 3, 1000) == 0
    assert [item.id for item in list_all(notifying)] == latest_ids


def test_read_backlog_counts_waiting_notifications(notifying: Database) -> None:
    assert notifying.read(outbox.read_backlog).count == 0
    add_arqs(notifying, 2)
    backlog = notifying.read(outbox.read_backlog)
    assert backlog.count == 2
    assert 0 <= backlog.age < 60
