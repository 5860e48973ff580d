# SPDX-License-Identifier: Apache-2.0
"""Rows with invalid values: lists skip them and show all other rows."""

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import (
    Arq,
    ArqEvent,
    AttachHandle,
    Device,
    DeviceProfile,
    Service,
)
from cyborg_lite.model.queries import Query
from tests.builders import rows
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.listed_rows import (
    ANY_PROJECT,
    ListRows,
    add_three_rows_each,
    list_arqs,
    list_devices,
    list_profiles,
    list_services,
)
from tests.support.sql_statements import statements


def damage_second_row(database: Database, table: Any, **columns: Any) -> str:
    """Store invalid values in the second row and return its uuid."""

    def write(session: Session) -> str:
        row = session.scalars(select(table).order_by(table.id)).all()[1]
        session.execute(update(table).where(table.id == row.id).values(**columns))
        return str(row.uuid)

    return database.write(write)


@pytest.fixture
def filled_database(database: Database) -> Database:
    """Return a database with three devices, profiles and services."""
    add_three_rows_each(database)
    return database


@pytest.mark.parametrize(
    'damage',
    [
        (list_profiles, DeviceProfile, {'groups': None}),
        (list_profiles, DeviceProfile, {'groups': ['x']}),
        (list_arqs, Arq, {'state': 'Odd'}),
        (list_arqs, Arq, {'device_profile_group': [1]}),
        (list_devices, Device, {'status': 'odd'}),
        (list_devices, Device, {'health': 'odd'}),
        (list_devices, Device, {'telemetry': {'health': 'odd'}}),
        (list_devices, Device, {'telemetry': [1]}),
        (list_devices, Device, {'telemetry': {'power': 'much'}}),
        (list_services, Service, {'state': 'odd'}),
    ],
)
@pytest.mark.parametrize('query', [Query(), Query(limit=2), Query(detailed=True)])
def test_list_rows_invalid_row_is_skipped_and_logged(
    filled_database: Database,
    damage: tuple[ListRows, Any, Mapping[str, Any]],
    query: Query,
    caplog: pytest.LogCaptureFixture,
) -> None:
    list_rows, table, columns = damage
    rows.add_arqs(filled_database, 3)
    expected = [row.uuid for row in list_rows(filled_database, Query())]
    expected.remove(damage_second_row(filled_database, table, **columns))
    assert expected
    # The page is still full: clients take a shorter page for the last one.
    uuids = [row.uuid for row in list_rows(filled_database, query)]
    assert uuids == expected[: query.limit]
    assert f'of table {table.__tablename__} has an invalid value' in caplog.text


def test_list_rows_numbers_are_converted_to_text(filled_database: Database) -> None:
    """Nova calls methods of strings on the values of a handle."""
    create_bound_arqs(filled_database, 2, needs_host=False)
    groups = [{'resources:PGPU': 2}]

    def write(session: Session) -> None:
        session.execute(update(AttachHandle).values(info={'domain': 0, 'bus': 59}))
        session.execute(update(DeviceProfile).values(groups=groups))

    filled_database.write(write)
    for arq in list_arqs(filled_database, Query()):
        assert arq.attach_handle_info == {
            'domain': '0',
            'bus': '59',
            'managed': 'true',
        }
    for profile in list_profiles(filled_database, Query()):
        assert profile.groups == ({'resources:PGPU': '2'},)


def test_list_steps_invalid_step_is_skipped(filled_database: Database) -> None:
    (uuid,) = rows.add_arqs(filled_database, 1)

    def write(session: Session) -> None:
        for step, actor in (('Initial', 'client'), ('odd', 'odd'), ('Bound', 'agent')):
            session.add(ArqEvent(arq_uuid=uuid, step=step, actor=actor))

    filled_database.write(write)
    steps = [
        history_step.step
        for history_step in filled_database.read(arqs.list_steps, uuid, ANY_PROJECT)
    ]
    assert steps[-2:] == ['Initial', 'Bound']
    assert 'odd' not in steps


def test_list_rows_valid_rows_cost_one_statement(filled_database: Database) -> None:
    with statements(filled_database) as sql:
        assert len(list_devices(filled_database, Query(limit=2))) == 2
    assert len(sql) == 1
