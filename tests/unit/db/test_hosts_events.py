# SPDX-License-Identifier: Apache-2.0
"""Host events in the history of ARQs. Each event is recorded once."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import ArqEvent, Device
from cyborg_lite.db.hosts import hosts, services
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.hosts.events import HostEvent, HostEventKind
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.rows import HOST

_MOMENT = datetime(2026, 2, 3, tzinfo=UTC)


@pytest.fixture
def database_with_host(database: Database) -> Database:
    """Return a database with the service row of the host."""
    database.write(services.store_digest, HOST, 'digest', 'boot-1')
    return database


def read_control_address(session: Session) -> str:
    """Return the control address of the only device."""
    return session.execute(select(Device.control_address)).scalar_one()


def record_events(database: Database, *events: HostEvent) -> int:
    return database.write(hosts.record_host_events, HOST, events)[0]


def list_steps(database: Database, uuid: str) -> list[tuple[str, str | None]]:
    history = database.read(arqs.list_steps, uuid, Scope(project_id=None))
    return [(step.step, step.reason) for step in history]


def test_record_event_with_arq_belongs_to_this_arq(
    database_with_host: Database,
) -> None:
    first, second = create_bound_arqs(database_with_host, 2)
    before = list_steps(database_with_host, second)
    kind = HostEventKind.PREPARED
    record_events(
        database_with_host,
        HostEvent(
            1, kind, database_with_host.read(read_control_address), _MOMENT, first
        ),
    )
    assert list_steps(database_with_host, first)[-1] == ('Prepared', None)
    assert list_steps(database_with_host, second) == before


def test_record_device_event_belongs_to_all_its_arqs(
    database_with_host: Database,
) -> None:
    uuids = create_bound_arqs(database_with_host, 2)
    control_address = database_with_host.read(read_control_address)
    failure = HostEvent(
        1, HostEventKind.HEALTH, control_address, _MOMENT, None, 'failed: lost'
    )
    elsewhere = HostEvent(2, HostEventKind.LOSS, 'ffff:ff:1f.7', _MOMENT)
    assert record_events(database_with_host, failure, elsewhere) == 2
    for uuid in uuids:
        assert list_steps(database_with_host, uuid)[-1] == (
            'HealthChanged',
            'failed: lost',
        )


def test_record_events_again_are_ignored(database_with_host: Database) -> None:
    (uuid,) = create_bound_arqs(database_with_host, 1)
    event = HostEvent(1, HostEventKind.PREPARED, 'x', _MOMENT, uuid)
    later = HostEvent(2, HostEventKind.RELEASED, 'x', _MOMENT, uuid)
    assert [
        record_events(database_with_host, event),
        record_events(database_with_host, event),
        record_events(database_with_host, event, later),
    ] == [
        1,
        1,
        2,
    ]
    recorded = [
        step
        for step, _ in list_steps(database_with_host, uuid)
        if step in ('Prepared', 'Released')
    ]
    assert recorded == ['Prepared', 'Released']


def test_record_event_of_unknown_arq_is_dropped(database_with_host: Database) -> None:
    event = HostEvent(7, HostEventKind.RELEASED, 'x', _MOMENT, 'unknown')
    assert record_events(database_with_host, event) == 7
    assert database_with_host.read(_count) == 0


def _count(session: Session) -> int:
    return len(session.execute(select(ArqEvent.id)).all())


def test_record_event_of_arq_on_other_host_is_dropped(
    database_with_host: Database,
) -> None:
    """The agent of one host must not write to the history of any ARQ."""
    (uuid,) = create_bound_arqs(database_with_host, 1)
    before = list_steps(database_with_host, uuid)
    database_with_host.write(services.store_digest, 'compute-2', 'digest', 'boot-1')
    event = HostEvent(
        1, HostEventKind.NOT_REBUILT, '0000:01:00.0', _MOMENT, uuid, 'forged'
    )
    assert database_with_host.write(hosts.record_host_events, 'compute-2', [event])
    assert list_steps(database_with_host, uuid) == before
