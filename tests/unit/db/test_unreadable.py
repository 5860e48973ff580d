# SPDX-License-Identifier: Apache-2.0
"""Rows with values that cannot be read. SQLite stores values of any type."""

from typing import Any

import pytest
from sqlalchemy import text

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import (
    Arq,
    Attribute,
    Deployable,
    Device,
    DeviceProfile,
    Service,
)
from cyborg_lite.db.devices import deployables
from cyborg_lite.model.queries import Query
from tests.builders import rows
from tests.builders.listed_rows import (
    ListRows,
    add_three_rows_each,
    list_arqs,
    list_devices,
    list_profiles,
    list_services,
)


@pytest.fixture
def filled_database(database: Database) -> Database:
    """Return a database with three devices, profiles and services."""
    add_three_rows_each(database)
    return database


def list_deployables(database: Database, query: Query) -> Any:
    return database.read(deployables.list_deployables, query)


def list_attributes(database: Database, query: Query) -> Any:
    return database.read(deployables.list_attributes, query)


def make_unreadable(database: Database, table: Any, column: str, uuid: str) -> None:
    """Store text that is neither JSON nor a time; only SQLite accepts it."""
    sql = f"UPDATE {table.__tablename__} SET {column} = '{{' WHERE uuid = :uuid"
    statement = text(sql).bindparams(uuid=uuid)
    database.write(lambda session: session.execute(statement) and None)


@pytest.mark.parametrize(
    'damage',
    [
        (list_profiles, DeviceProfile, 'groups'),
        (list_profiles, DeviceProfile, 'created_at'),
        (list_arqs, Arq, 'device_profile_group'),
        (list_arqs, Arq, 'updated_at'),
        (list_devices, Device, 'std_board_info'),
        (list_devices, Device, 'created_at'),
        (list_deployables, Deployable, 'created_at'),
        (list_attributes, Attribute, 'created_at'),
        (list_services, Service, 'started_at'),
    ],
)
@pytest.mark.parametrize('query', [Query(), Query(limit=2), Query(detailed=True)])
def test_list_rows_unreadable_row_is_skipped_and_logged(
    filled_database: Database,
    damage: tuple[ListRows, Any, str],
    query: Query,
    caplog: pytest.LogCaptureFixture,
) -> None:
    list_rows, table, column = damage
    rows.add_arqs(filled_database, 3)
    for deployable in list_deployables(filled_database, Query()):
        filled_database.write(
            deployables.create_attribute, deployable.id, 'rack', 'r17'
        )
    expected = [row.uuid for row in list_rows(filled_database, Query())]
    make_unreadable(filled_database, table, column, expected.pop(1))
    uuids = [row.uuid for row in list_rows(filled_database, query)]
    assert uuids == expected[: query.limit]
    assert f'of table {table.__tablename__} has an invalid value' in caplog.text


def test_list_deployables_unreadable_attribute_keeps_deployables(
    filled_database: Database,
) -> None:
    all_deployables = list_deployables(filled_database, Query())
    attribute = filled_database.write(
        deployables.create_attribute, all_deployables[0].id, 'rack', 'r17'
    )
    make_unreadable(filled_database, Attribute, 'created_at', attribute.uuid)
    assert len(list_deployables(filled_database, Query())) == len(all_deployables)


def test_list_profiles_by_name_skips_unreadable_row(
    filled_database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, _ = list_profiles(filled_database, Query())
    make_unreadable(filled_database, DeviceProfile, 'groups', first.uuid)
    query = Query(filters={'name': (first.name, second.name)})
    assert list(list_profiles(filled_database, query)) == [second]
    assert 'of table device_profiles has an invalid value' in caplog.text
