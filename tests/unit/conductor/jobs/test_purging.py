# SPDX-License-Identifier: Apache-2.0
"""Deletion of old rows: each table that grows with time is bounded."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, insert, select, update

from cyborg_lite.conductor.jobs.purging import Purger, Retention
from cyborg_lite.db import purging
from cyborg_lite.db.arqs import history
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import (
    ArqEvent,
    Cleaning,
    Device,
    Job,
    Operation,
    ProviderTraits,
    Reconfiguration,
    Service,
)
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.db.providers import providers
from cyborg_lite.model.arqs.arqs import Actor
from cyborg_lite.model.hosts.services import CONDUCTOR
from cyborg_lite.model.jobs import JobState, JobType, NewJob
from cyborg_lite.model.operations import NewOperation, OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.reports import HOST, card, report
from tests.doubles.placement import FakePlacement
from tests.support.sql_statements import statements

_NOW = datetime.now(UTC)
_LONG_AGO = _NOW - timedelta(days=31)


@pytest.fixture
def placement() -> FakePlacement:
    return FakePlacement()


@pytest.fixture
def purger(database: Database, placement: FakePlacement) -> Purger:
    return Purger(database, placement, threading.Event())


def execute(database: Database, statement: Any, *arguments: Any) -> None:
    database.write(lambda session: session.execute(statement, *arguments))


def list_hosts(database: Database) -> set[str]:
    return {service.host for service in database.read(services.list_services)}


def test_purge_deletes_old_daemons_without_devices(
    database: Database, purger: Purger
) -> None:
    database.write(reports.store_report, report(card(1)))
    for host in ('old-controller', 'new-controller'):
        database.write(services.record_start, CONDUCTOR, host, '1')
    database.write(services.record_agent_digest, 'empty-host', '1', 'digest')
    is_old = Service.host != 'new-controller'
    execute(database, update(Service).where(is_old).values(heartbeat_at=_LONG_AGO))
    purger.purge()
    assert list_hosts(database) == {HOST, 'new-controller'}


def test_purge_deletes_jobs_that_failed_long_ago(
    database: Database, purger: Purger
) -> None:
    for key in ('recent', 'old', 'waiting'):
        database.write(queue.add_job, NewJob(JobType.RELEASE, key=key))
    failed = update(Job).where(Job.key != 'waiting').values(state=JobState.FAILED)
    execute(database, failed)
    is_old = Job.key.in_(['old', 'waiting'])
    execute(database, update(Job).where(is_old).values(created_at=0))
    purger.purge()
    keys = database.read(lambda session: set(session.scalars(select(Job.key))))
    assert keys == {'recent', 'waiting'}


def test_purge_deletes_operations_that_ended_long_ago(
    database: Database, purger: Purger
) -> None:
    uuids = [str(uuid4()) for _ in range(3)]
    for uuid in uuids:
        new = NewOperation(OperationKind.AUDIT, uuid=uuid)
        database.write(operations.add, new)
    database.write(operations.end_job, uuids[:2])
    is_old = Operation.uuid == uuids[0]
    execute(database, update(Operation).where(is_old).values(ended_at=_LONG_AGO))
    execute(database, update(Operation).values(created_at=_LONG_AGO))
    purger.purge()
    remaining = database.read(operations.list_operations, Query(), None)
    assert [operation.uuid for operation in remaining] == uuids[1:]


def test_purge_keeps_newest_steps_of_long_history(
    database: Database, purger: Purger
) -> None:
    long, short = create_bound_arqs(database, 2)
    row = {'arq_uuid': long, 'step': 'Health', 'actor': Actor.AGENT}
    execute(
        database,
        insert(ArqEvent),
        [{**row, 'at': _LONG_AGO} for _ in range(history.MAX_STEPS)],
    )
    database.write(history.record_step, [long], 'Newest', Actor.AGENT)
    purger.purge()

    def read_steps(uuid: str) -> list[str]:
        steps = select(ArqEvent.step).where(ArqEvent.arq_uuid == uuid)
        return database.read(
            lambda session: list(session.scalars(steps.order_by(ArqEvent.id)))
        )

    assert len(read_steps(long)) == history.MAX_STEPS
    assert read_steps(long)[-1] == 'Newest'
    assert len(read_steps(short)) > 1


def test_purge_without_old_rows_costs_twelve_statements(
    database: Database, purger: Purger
) -> None:
    create_bound_arqs(database, 2)
    with statements(database) as sql:
        purger.purge()
    assert len(sql) == 12
    count = database.read(
        lambda session: session.scalar(select(func.count(ArqEvent.id)))
    )
    assert count


def test_purge_deletes_traits_of_providers_that_are_gone(
    database: Database, placement: FakePlacement, purger: Purger
) -> None:
    database.write(reports.store_report, report(card(1)))
    rows = database.read(providers.list_providers_of_host, HOST)
    used, present, deleted = rows[0].rp_uuid, str(uuid4()), str(uuid4())
    traits = {uuid: ['CUSTOM_A'] for uuid in (used, present, deleted)}
    database.write(providers.record_provider_traits, traits)
    placement.create_provider(present, 'compute-1_0000:01:00.0', None)
    purger.purge()
    table = select(ProviderTraits.rp_uuid)
    uuids = database.read(lambda session: set(session.scalars(table)))
    assert uuids == {used, present}
    assert placement.counts() == {'GET': 2, 'POST': 1}


def create_devices(database: Database) -> list[int]:
    """Store a host with two devices and return their ids."""
    database.write(reports.store_report, report(card(1), card(2)))
    ids = select(Device.id).order_by(Device.id)
    return database.read(lambda session: list(session.scalars(ids)))


def add_cleans(
    database: Database, device: int, unit: str, days: list[int | None]
) -> None:
    """Add a clean of a unit for each age in days since its end; None: it is running."""
    rows: list[dict[str, Any]] = [
        {
            'uuid': str(uuid4()),
            'device_id': device,
            'handle_uuid': str(uuid4()),
            'unit': unit,
            'generation': 1,
            'state': 'running' if age is None else 'succeeded',
            'actor': 'cyborg-lite',
            'steps': [],
            'started_at': _NOW - timedelta(days=age or 1000),
            'finished_at': None if age is None else _NOW - timedelta(days=age),
        }
        for age in days
    ]
    execute(database, insert(Cleaning), rows)


def list_cleans(database: Database) -> list[tuple[int, str, int | None]]:
    """Return device, unit and days since the end of the cleans, oldest first."""
    rows = database.read(
        lambda session: session.execute(
            select(Cleaning.device_id, Cleaning.unit, Cleaning.finished_at).order_by(
                Cleaning.id
            )
        ).all()
    )
    return [(row[0], row[1], count_days(row[2])) for row in rows]


def count_days(moment: datetime | None) -> int | None:
    """Return the days between a stored time and now."""
    if moment is None:
        return None
    return (_NOW - moment.replace(tzinfo=UTC)).days


def test_purge_keeps_last_clean_of_each_unit(
    database: Database, purger: Purger
) -> None:
    first, second = create_devices(database)
    add_cleans(database, first, 'a', [600, 500, 450])
    add_cleans(database, first, 'b', [500, 399])
    add_cleans(database, second, 'a', [500, None])
    purger.purge()
    assert list_cleans(database) == [
        (first, 'a', 450),
        (first, 'b', 399),
        # The clean that runs now may fail; the one before it is the last result.
        (second, 'a', 500),
        (second, 'a', None),
    ]


def test_purge_deletes_old_cleans_in_bounded_transactions(
    database: Database, purger: Purger
) -> None:
    (device, _) = create_devices(database)
    add_cleans(database, device, 'a', [500] * (2 * purging.MAX_RECORDS + 1))
    with statements(database) as sql:
        purger.purge()
    assert list_cleans(database) == [(device, 'a', 500)]
    deletes = [text for text in sql if text.startswith('DELETE FROM cleanings')]
    assert len(deletes) == 2


def test_purge_keeps_last_change_of_each_device(
    database: Database, purger: Purger
) -> None:
    devices = create_devices(database)
    ages: list[tuple[int, int | None]] = [
        (0, 300),
        (0, 91),
        (0, 89),
        (1, 300),
        (1, 200),
        (1, None),
    ]
    rows: list[dict[str, Any]] = [
        {
            'uuid': str(uuid4()),
            'device_id': devices[place],
            'hardware_set': 'gpus',
            'settings': {},
            'held_ids': [],
            'state': 'waiting' if age is None else 'failed',
            'actor': 'admin',
            'finished_at': None if age is None else _NOW - timedelta(days=age),
        }
        for place, age in ages
    ]
    execute(database, insert(Reconfiguration), rows)
    purger.purge()
    table = select(Reconfiguration.finished_at).order_by(Reconfiguration.id)
    ends = database.read(lambda session: list(session.scalars(table)))
    assert [count_days(end) for end in ends] == [89, 200, None]


def test_purge_follows_retention(database: Database, placement: FakePlacement) -> None:
    (device, _) = create_devices(database)
    add_cleans(database, device, 'a', [5, 3])
    retention = Retention(
        usage=1,
        device_events=1,
        cleanings=4,
        reconfigurations=1,
        operations=1,
        arq_history=1,
    )
    Purger(database, placement, threading.Event(), retention).purge()
    assert list_cleans(database) == [(device, 'a', 3)]
