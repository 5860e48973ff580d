# SPDX-License-Identifier: Apache-2.0
"""SQLite keeps whatever it is given; a row with such a value takes no other away."""

from typing import Any

import pytest
from sqlalchemy import text

from cyborg_lite.db import attributes, deployables
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import (
    Arq,
    Attribute,
    Deployable,
    Device,
    DeviceProfile,
    Service,
)
from cyborg_lite.model.queries import Query
from tests.fakes import rows
from tests.unit.db.test_reading import (
    Listed,
    cards,
    daemons,
    profiles,
    requests,
    stocked,
)

__all__ = ['stocked']


def parts(database: Database, query: Query) -> Any:
    return database.read(deployables.listed, query)


def facts(database: Database, query: Query) -> Any:
    return database.read(attributes.listed, query)


def make_unreadable(database: Database, table: Any, column: str, uuid: str) -> None:
    """By other means than ours: no other database would keep it."""
    words = f"UPDATE {table.__tablename__} SET {column} = '{{' WHERE uuid = :uuid"
    statement = text(words).bindparams(uuid=uuid)
    database.write(lambda session: session.execute(statement) and None)


@pytest.mark.parametrize(
    'spoiled',
    [
        (profiles, DeviceProfile, 'groups'),
        (profiles, DeviceProfile, 'created_at'),
        (requests, Arq, 'device_profile_group'),
        (requests, Arq, 'updated_at'),
        (cards, Device, 'std_board_info'),
        (cards, Device, 'created_at'),
        (parts, Deployable, 'created_at'),
        (facts, Attribute, 'created_at'),
        (daemons, Service, 'started_at'),
    ],
)
@pytest.mark.parametrize('query', [Query(), Query(limit=2), Query(detailed=True)])
def test_a_row_that_cannot_be_read_is_left_out_and_logged(
    stocked: Database,
    spoiled: tuple[Listed, Any, str],
    query: Query,
    caplog: pytest.LogCaptureFixture,
) -> None:
    listed, table, column = spoiled
    rows.add_arqs(stocked, 3)
    for part in parts(stocked, Query()):
        stocked.write(attributes.create, part.id, 'rack', 'r17')
    expected = [one.uuid for one in listed(stocked, Query())]
    make_unreadable(stocked, table, column, expected.pop(1))
    shown = [one.uuid for one in listed(stocked, query)]
    assert shown == expected[: query.limit]
    assert f'of table {table.__tablename__} makes no sense' in caplog.text


def test_an_attribute_that_cannot_be_read_takes_no_deployable_away(
    stocked: Database,
) -> None:
    every = parts(stocked, Query())
    made = stocked.write(attributes.create, every[0].id, 'rack', 'r17')
    make_unreadable(stocked, Attribute, 'created_at', made.uuid)
    assert len(parts(stocked, Query())) == len(every)
