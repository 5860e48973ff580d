# SPDX-License-Identifier: Apache-2.0
"""Events of a host are a part of the history of those whom they concern, once."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db import history, host_events, services
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import ArqEvent, Device
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.host_events import HostEvent, HostEventKind
from tests.fakes.bound_rows import bound
from tests.fakes.rows import HOST

_MOMENT = datetime(2026, 2, 3, tzinfo=UTC)


@pytest.fixture
def known(database: Database) -> Database:
    """It knows the host."""
    database.write(services.keep_digest, HOST, 'digest', 'boot-1')
    return database


def address(session: Session) -> str:
    """Of the only device."""
    return session.execute(select(Device.address)).scalar_one()


def hear(database: Database, *events: HostEvent) -> int:
    return database.write(host_events.hear, HOST, events)[0]


def steps(database: Database, uuid: str) -> list[tuple[str, str | None]]:
    found = database.read(history.steps, uuid, Scope(project_id=None))
    return [(one.step, one.reason) for one in found]


def test_what_names_a_request_is_its_alone(known: Database) -> None:
    one, other = bound(known, 2)
    before = steps(known, other)
    kind = HostEventKind.PREPARED
    hear(known, HostEvent(1, kind, known.read(address), _MOMENT, one))
    assert steps(known, one)[-1] == ('Prepared', None)
    assert steps(known, other) == before


def test_what_happens_to_a_device_concerns_all_who_hold_a_part_of_it(
    known: Database,
) -> None:
    uuids = bound(known, 2)
    where = known.read(address)
    lost = HostEvent(1, HostEventKind.HEALTH, where, _MOMENT, None, 'failed: lost')
    elsewhere = HostEvent(2, HostEventKind.LOSS, '0000:ff:00.0', _MOMENT)
    assert hear(known, lost, elsewhere) == 2
    for uuid in uuids:
        assert steps(known, uuid)[-1] == ('HealthChanged', 'failed: lost')


def test_what_was_heard_before_is_ignored(known: Database) -> None:
    (uuid,) = bound(known, 1)
    event = HostEvent(1, HostEventKind.PREPARED, 'x', _MOMENT, uuid)
    later = HostEvent(2, HostEventKind.RELEASED, 'x', _MOMENT, uuid)
    assert [hear(known, event), hear(known, event), hear(known, event, later)] == [
        1,
        1,
        2,
    ]
    told = [step for step, _ in steps(known, uuid) if step in ('Prepared', 'Released')]
    assert told == ['Prepared', 'Released']


def test_a_request_that_is_gone_has_no_history(known: Database) -> None:
    event = HostEvent(7, HostEventKind.RELEASED, 'x', _MOMENT, 'gone')
    assert hear(known, event) == 7
    assert known.read(_count) == 0


def _count(session: Session) -> int:
    return len(session.execute(select(ArqEvent.id)).all())
