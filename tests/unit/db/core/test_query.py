# SPDX-License-Identifier: Apache-2.0
"""Filters, sort orders and pages, on a table with columns of several types."""

from typing import Any

import pytest
from sqlalchemy import delete, insert, select, text
from sqlalchemy.orm import Session

from cyborg_lite.db.core import query
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import (
    Arq,
    ArqEvent,
    Attribute,
    Deployable,
    Device,
    DeviceProfile,
    Service,
)
from cyborg_lite.db.devices import deployables
from cyborg_lite.db.profiles.profiles import PROFILE
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.profiles.device_profiles import DeviceProfile as Profile
from cyborg_lite.model.queries import Query
from tests.builders import rows
from tests.builders.bound_arqs import read_history
from tests.builders.listed_rows import (
    ListRows,
    add_three_rows_each,
    list_arqs,
    list_devices,
    list_profiles,
    list_services,
)
from tests.builders.table_rows import change_rows, execute
from tests.support.sql_statements import statements

_UUID = '00000000-0000-4000-8000-00000000000'  # and the name of a profile
_PROFILES = query.Collection(
    DeviceProfile,
    filters={
        'name': DeviceProfile.name,
        'id': DeviceProfile.id,
        'enabled': DeviceProfile.enabled,
    },
    sorts={'name': DeviceProfile.name, 'description': DeviceProfile.description},
)


@pytest.fixture
def profiles(database: Database) -> Database:
    """Add b, a, d, c in this order; two descriptions are equal, one is NULL."""
    descriptions = {'b': 'same', 'a': None, 'd': 'same', 'c': 'another'}
    rows: list[dict[str, Any]] = [
        {'uuid': f'{_UUID}{name}', 'name': name, 'description': text, 'groups': []}
        for name, text in descriptions.items()
    ]
    database.write(lambda session: session.execute(insert(DeviceProfile), rows))
    return database


def _list_names(database: Database, **fields: Any) -> str:
    """Return the joined names of a page; the keywords are fields of Query."""
    rows = database.read(
        query.select_page, select(DeviceProfile.name), Query(**fields), _PROFILES
    )
    return ''.join(name for (name,) in rows)


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'filters': {'nonsense': ('1',)}}, 'Unknown filter nonsense'),
        ({'sort_key': 'nonsense'}, 'Unknown sort key nonsense'),
        ({'marker': 'nonsense'}, 'marker nonsense is not in'),
    ],
)
def test_select_page_unknown_name_is_in_error(
    profiles: Database, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        _list_names(profiles, **fields)


def test_select_page_marker_need_not_match_filters(profiles: Database) -> None:
    assert (
        _list_names(profiles, filters={'name': ('c', 'b')}, marker=f'{_UUID}a') == 'c'
    )


@pytest.mark.parametrize('descending', [False, True])
@pytest.mark.parametrize(
    ('sort_key', 'expected'),
    [(None, 'badc'), ('name', 'abcd'), ('description', 'cbda')],
)
@pytest.mark.parametrize('limit', [1, 2, 3])
def test_select_page_pages_cover_all_rows_once(
    profiles: Database,
    sort_key: str | None,
    expected: str,
    limit: int,
    descending: bool,
) -> None:
    """Rows with equal or NULL values are neither repeated nor left out."""
    order: dict[str, Any] = {'sort_key': sort_key, 'descending': descending}
    names = page = _list_names(profiles, limit=limit, **order)
    while page:
        assert len(page) <= limit
        page = _list_names(profiles, limit=limit, marker=f'{_UUID}{names[-1]}', **order)
        names += page
    assert names == (expected[::-1] if descending else expected)


# --- rows that cannot be read ---------------------------------------------------------


def _delete_profiles(session: Session, names: str) -> None:
    session.execute(delete(DeviceProfile).where(DeviceProfile.name.in_(list(names))))


@pytest.mark.parametrize(
    ('deleted', 'expected'), [('', 'dc'), ('a', 'dc'), ('ba', 'dc')]
)
def test_fill_page_deleted_unreadable_rows_are_no_error(
    profiles: Database, deleted: str, expected: str
) -> None:
    """The first two rows cannot be read; others delete them before the next SELECT."""

    def read(session: Session) -> str:
        def convert(row: Any) -> Profile:
            if row.name in 'ba':
                raise ValueError(row.name)
            return PROFILE.read(row)

        def select_rows(page: Query) -> query.ConvertibleRows[Profile]:
            rows = query.select_page(session, PROFILE.select(), page, _PROFILES)
            _delete_profiles(session, deleted)
            return rows, convert

        page = query.fill_page(Query(limit=2), _PROFILES, select_rows)
        return ''.join(profile.name for profile in page)

    assert profiles.write(read) == expected


def list_attributes(database: Database, query: Query) -> Any:
    return database.read(deployables.list_attributes, query)


def list_deployables(database: Database, query: Query) -> Any:
    return database.read(deployables.list_deployables, query)


def make_unreadable(database: Database, table: Any, column: str, uuid: str) -> None:
    """Store text that is neither JSON nor a time; only SQLite accepts it."""
    sql = f"UPDATE {table.__tablename__} SET {column} = '{{' WHERE uuid = :uuid"
    execute(database, text(sql).bindparams(uuid=uuid))


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
        # Columns that get a text of another type.
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
def test_list_rows_invalid_row_is_skipped_and_logged(
    filled_database: Database,
    damage: tuple[ListRows, Any, dict[str, Any] | str],
    query: Query,
    caplog: pytest.LogCaptureFixture,
) -> None:
    list_rows, table, values = damage
    rows.add_arqs(filled_database, 3)
    for deployable in list_deployables(filled_database, Query()):
        filled_database.write(
            deployables.create_attribute, deployable.id, 'rack', 'r17'
        )
    expected = [row.uuid for row in list_rows(filled_database, Query())]
    uuid = expected.pop(1)
    if isinstance(values, str):
        make_unreadable(filled_database, table, values, uuid)
    else:
        change_rows(filled_database, table, table.uuid == uuid, **values)
    # The page is still full: clients take a shorter page for the last one.
    uuids = [row.uuid for row in list_rows(filled_database, query)]
    assert uuids == expected[: query.limit]
    assert f'of table {table.__tablename__} has an invalid value' in caplog.text


def test_list_steps_invalid_step_is_skipped(filled_database: Database) -> None:
    (uuid,) = rows.add_arqs(filled_database, 1)

    def write(session: Session) -> None:
        for step, actor in (('Initial', 'client'), ('odd', 'odd'), ('Bound', 'agent')):
            session.add(ArqEvent(arq_uuid=uuid, step=step, actor=actor))

    filled_database.write(write)
    steps = [history_step.step for history_step in read_history(filled_database, uuid)]
    assert steps[-2:] == ['Initial', 'Bound']
    assert 'odd' not in steps


def test_list_rows_valid_rows_cost_one_statement(filled_database: Database) -> None:
    with statements(filled_database) as sql:
        assert len(list_devices(filled_database, Query(limit=2))) == 2
    assert len(sql) == 1


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
