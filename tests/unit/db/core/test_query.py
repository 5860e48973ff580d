# SPDX-License-Identifier: Apache-2.0
"""Filters, sort orders and pages, on a table with columns of several types."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from cyborg_lite.db.core import query
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device, DeviceProfile
from cyborg_lite.db.profiles.rows import PROFILE
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.profiles.device_profiles import DeviceProfile as Profile
from cyborg_lite.model.queries import Page, Query
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


def test_select_page_default_order_is_creation(profiles: Database) -> None:
    assert _list_names(profiles) == 'badc'


def test_select_page_descending_reverses_order(profiles: Database) -> None:
    assert _list_names(profiles, descending=True) == 'cdab'


@pytest.mark.parametrize(
    ('filters', 'expected'),
    [
        ({'name': ('a',)}, 'a'),
        ({'name': ('a', 'c', 'x')}, 'ac'),
        ({'name': ()}, ''),
        ({'name': ('',)}, ''),
        ({'name': ('a', 'c'), 'id': ('2',)}, 'a'),
        ({'name': ('A',)}, ''),
        ({'name': ('a\0',)}, ''),
        ({'name': ('\ud800', 'd')}, 'd'),
        ({'enabled': ('true',)}, 'badc'),
        ({'enabled': ('false',)}, ''),
        ({'enabled': ('false', 'true'), 'name': ('a',)}, 'a'),
    ],
)
def test_select_page_filter_matches_any_value(
    profiles: Database, filters: dict[str, tuple[str, ...]], expected: str
) -> None:
    assert _list_names(profiles, filters=filters) == expected


@pytest.mark.parametrize(
    'value', ['x', '', '1.5', str(2**31), '9' * 40, '-' + '9' * 40]
)
def test_select_page_invalid_number_raises(profiles: Database, value: str) -> None:
    with pytest.raises(InvalidInput, match='id must be a 32-bit integer'):
        _list_names(profiles, filters={'id': (value,)})


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


def test_select_page_after_last_row_is_empty(profiles: Database) -> None:
    assert _list_names(profiles, marker=f'{_UUID}c') == ''


def test_select_page_marker_need_not_match_filters(profiles: Database) -> None:
    assert (
        _list_names(profiles, filters={'name': ('c', 'b')}, marker=f'{_UUID}a') == 'c'
    )


_DIRECTIONS = pytest.mark.parametrize('descending', [False, True])
_ORDERS = pytest.mark.parametrize(
    ('sort_key', 'expected'),
    [(None, 'badc'), ('name', 'abcd'), ('description', 'cbda')],
)
_LIMITS = pytest.mark.parametrize('limit', [1, 2, 3])


@_DIRECTIONS
@_ORDERS
@_LIMITS
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


def test_select_page_costs_one_select(profiles: Database) -> None:
    with statements(profiles) as sql:
        _list_names(
            profiles,
            limit=2,
            marker=f'{_UUID}b',
            sort_key='name',
            filters={'name': ('c',)},
        )
    assert len(sql) == 1


def test_select_page_marker_of_another_table_raises(profiles: Database) -> None:
    devices = query.Collection(Device, filters={}, sorts={})
    with pytest.raises(InvalidInput):
        profiles.read(
            query.select_page, select(Device.id), Query(marker=f'{_UUID}a'), devices
        )


# --- cursors ----------------------------------------------------------------------


def _read_page(database: Database, page_query: Query) -> Page[Profile]:
    def read(session: Session) -> tuple[Profile, ...]:
        def select_rows(page: Query) -> tuple[query.Rows, list[Profile]]:
            rows = query.select_page(session, PROFILE.select(), page, _PROFILES)
            return rows, [PROFILE.read(row) for row in rows]

        return query.fill_page(page_query, _PROFILES, select_rows)

    page = database.read(read)
    assert isinstance(page, Page)
    return page


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
        def select_rows(page: Query) -> tuple[query.Rows, list[Profile]]:
            rows = query.select_page(session, PROFILE.select(), page, _PROFILES)
            _delete_profiles(session, deleted)
            return rows, [PROFILE.read(row) for row in rows if row.name in 'dc']

        page = query.fill_page(Query(limit=2), _PROFILES, select_rows)
        return ''.join(profile.name for profile in page)

    assert profiles.write(read) == expected


@_DIRECTIONS
@_ORDERS
@_LIMITS
def test_fill_page_cursors_cover_all_rows_once(
    profiles: Database,
    sort_key: str | None,
    expected: str,
    limit: int,
    descending: bool,
) -> None:
    """Delete each row after it is read."""
    page_query = Query(
        limit=limit, sort_key=sort_key, descending=descending, needs_cursor=True
    )
    names = ''
    while (page := _read_page(profiles, page_query)) and page.cursor:
        names += ''.join(profile.name for profile in page)
        assert len(page) == limit
        profiles.write(_delete_profiles, names)
        page_query = replace(page_query, cursor=page.cursor)
    names += ''.join(profile.name for profile in page)
    assert names == (expected[::-1] if descending else expected)


def test_fill_page_last_page_has_no_cursor(profiles: Database) -> None:
    page = _read_page(profiles, Query(limit=5, needs_cursor=True))
    assert (len(page), page.cursor) == (4, None)


def test_fill_page_without_need_is_tuple(profiles: Database) -> None:
    with pytest.raises(AssertionError):
        _read_page(profiles, Query(limit=2))
