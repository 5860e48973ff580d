# SPDX-License-Identifier: Apache-2.0
"""One row that makes no sense does not take the others from anybody."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import arqs, device_profiles, devices, history, services
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import (
    Arq,
    ArqEvent,
    AttachHandle,
    Device,
    DeviceProfile,
    Service,
)
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.queries import Query
from tests.fakes import rows
from tests.fakes.bound_rows import bound
from tests.fakes.daemons import speak
from tests.fakes.statements import statements

ALL = Scope(project_id=None)
Listed = Callable[[Database, Query], Any]


def profiles(database: Database, query: Query) -> Any:
    return database.read(device_profiles.listed, query)


def requests(database: Database, query: Query) -> Any:
    return database.read(arqs.listed, query, ALL)


def cards(database: Database, query: Query) -> Any:
    return database.read(devices.listed, query)


def daemons(database: Database, query: Query) -> Any:
    return database.read(services.listed, query)


def spoil(database: Database, table: Any, **columns: Any) -> str:
    """The uuid of the second row, which makes no sense any more."""

    def write(session: Session) -> str:
        row = session.scalars(select(table).order_by(table.id)).all()[1]
        session.execute(update(table).where(table.id == row.id).values(**columns))
        return str(row.uuid)

    return database.write(write)


@pytest.fixture
def stocked(database: Database) -> Database:
    """Three of each kind."""
    for number in range(3):
        rows.add_card(database, 1)
        rows.add_profile(database, [{'resources:PGPU': '1'}])
        speak(database, f'compute-{number}')
    return database


@pytest.mark.parametrize(
    'spoiled',
    [
        (profiles, DeviceProfile, {'groups': None}),
        (profiles, DeviceProfile, {'groups': ['x']}),
        (requests, Arq, {'state': 'Strange'}),
        (requests, Arq, {'device_profile_group': [1]}),
        (cards, Device, {'status': 'odd'}),
        (cards, Device, {'health': 'odd'}),
        (cards, Device, {'figures': {'health': 'odd'}}),
        (cards, Device, {'figures': [1]}),
        (cards, Device, {'figures': {'power': 'much'}}),
        (daemons, Service, {'state': 'odd'}),
    ],
)
@pytest.mark.parametrize('query', [Query(), Query(limit=2), Query(detailed=True)])
def test_a_row_that_makes_no_sense_is_left_out_and_logged(
    stocked: Database,
    spoiled: tuple[Listed, Any, Mapping[str, Any]],
    query: Query,
    caplog: pytest.LogCaptureFixture,
) -> None:
    listed, table, columns = spoiled
    rows.add_arqs(stocked, 3)
    expected = [one.uuid for one in listed(stocked, Query())]
    expected.remove(spoil(stocked, table, **columns))
    assert expected
    # A page is as full as without it: clients take a shorter one for the last.
    shown = [one.uuid for one in listed(stocked, query)]
    assert shown == expected[: query.limit]
    assert f'of table {table.__tablename__} makes no sense' in caplog.text


def test_what_is_no_text_is_shown_as_text(stocked: Database) -> None:
    """Nova calls methods of strings on the values of a handle."""
    bound(stocked, 2, needs_host=False)
    groups = [{'resources:PGPU': 2}]

    def write(session: Session) -> None:
        session.execute(update(AttachHandle).values(info={'domain': 0, 'bus': 59}))
        session.execute(update(DeviceProfile).values(groups=groups))

    stocked.write(write)
    for arq in requests(stocked, Query()):
        assert arq.attach_handle_info == {'domain': '0', 'bus': '59'}
    for profile in profiles(stocked, Query()):
        assert profile.groups == ({'resources:PGPU': '2'},)


def test_a_step_that_makes_no_sense_is_left_out(stocked: Database) -> None:
    (uuid,) = rows.add_arqs(stocked, 1)

    def write(session: Session) -> None:
        for step, actor in (('Initial', 'client'), ('odd', 'odd'), ('Bound', 'agent')):
            session.add(ArqEvent(arq_uuid=uuid, step=step, actor=actor))

    stocked.write(write)
    steps = [one.step for one in stocked.read(history.steps, uuid, ALL)]
    assert steps[-2:] == ['Initial', 'Bound']
    assert 'odd' not in steps


def test_what_makes_sense_costs_nothing_more(stocked: Database) -> None:
    with statements(stocked) as made:
        assert len(cards(stocked, Query(limit=2))) == 2
    assert len(made) == 1
