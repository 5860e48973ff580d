# SPDX-License-Identifier: Apache-2.0
"""Deletion of old rows: each table that grows with time is bounded."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, insert, select, update

from cyborg_lite.conductor.jobs.purging import Purger, Retention
from cyborg_lite.db.arqs import history
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import (
    ArqEvent,
    Cleaning,
    Device,
    ProviderTraits,
    Service,
)
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.providers import providers
from cyborg_lite.model.arqs.arqs import Actor
from cyborg_lite.model.hosts.services import CONDUCTOR
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
    database.write(services.record_agent_heartbeat, 'empty-host', '1', 'digest')
    is_old = Service.host != 'new-controller'
    execute(database, update(Service).where(is_old).values(heartbeat_at=_LONG_AGO))
    purger.purge()
    assert list_hosts(database) == {HOST, 'new-controller'}


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


def test_purge_follows_retention(database: Database, placement: FakePlacement) -> None:
    database.write(reports.store_report, report(card(1)))
    row = {
        'device_id': select(Device.id).scalar_subquery(),
        'handle_uuid': str(uuid4()),
        'unit': 'a',
        'generation': 1,
        'state': 'succeeded',
        'actor': 'cyborg-lite',
        'steps': [],
        'started_at': _LONG_AGO,
    }
    for days in (5, 3):
        times = {
            'uuid': f'of {days} days',
            'finished_at': _NOW - timedelta(days),
        }
        execute(database, insert(Cleaning).values(row | times))
    Purger(database, placement, threading.Event(), Retention(cleanings=4)).purge()
    uuids = database.read(lambda session: list(session.scalars(select(Cleaning.uuid))))
    assert uuids == ['of 3 days']
