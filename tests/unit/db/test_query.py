# SPDX-License-Identifier: Apache-2.0
"""Filters, orders and pages, on a table that has a column of each kind."""

from typing import Any

import pytest
from sqlalchemy import insert, select

from cyborg_lite.db import query
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Device, DeviceProfile
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.queries import Query
from tests.fakes.statements import statements

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
    """b, a, d, c in this order; two descriptions are equal and one is missing."""
    descriptions = {'b': 'same', 'a': None, 'd': 'same', 'c': 'another'}
    rows: list[dict[str, Any]] = [
        {'uuid': f'uuid-{name}', 'name': name, 'description': text, 'groups': []}
        for name, text in descriptions.items()
    ]
    database.write(lambda session: session.execute(insert(DeviceProfile), rows))
    return database


def _names(database: Database, **wanted: Any) -> str:
    """Any: the fields of a Query."""
    rows = database.read(
        query.page, select(DeviceProfile.name), Query(**wanted), _PROFILES
    )
    return ''.join(name for (name,) in rows)


def test_all_come_in_the_order_of_creation(profiles: Database) -> None:
    assert _names(profiles) == 'badc'


def test_the_order_of_creation_can_be_reversed(profiles: Database) -> None:
    assert _names(profiles, descending=True) == 'cdab'


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
def test_any_value_of_each_filter_fits(
    profiles: Database, filters: dict[str, tuple[str, ...]], expected: str
) -> None:
    assert _names(profiles, filters=filters) == expected


@pytest.mark.parametrize(
    'value', ['x', '', '1.5', str(2**31), '9' * 40, '-' + '9' * 40]
)
def test_a_filter_of_a_number_wants_a_number_that_can_be(
    profiles: Database, value: str
) -> None:
    with pytest.raises(InvalidInput, match='id must be an integer'):
        _names(profiles, filters={'id': (value,)})


@pytest.mark.parametrize(
    ('wanted', 'complaint'),
    [
        ({'filters': {'nonsense': ('1',)}}, 'Unknown filter nonsense'),
        ({'sort_key': 'nonsense'}, 'Unknown sort key nonsense'),
        ({'marker': 'nonsense'}, 'marker nonsense is not in'),
    ],
)
def test_what_is_unknown_is_named(
    profiles: Database, wanted: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        _names(profiles, **wanted)


def test_an_empty_page_after_the_last_one_is_no_mistake(profiles: Database) -> None:
    assert _names(profiles, marker='uuid-c') == ''


def test_a_marker_need_not_fit_the_filters(profiles: Database) -> None:
    assert _names(profiles, filters={'name': ('c', 'b')}, marker='uuid-a') == 'c'


@pytest.mark.parametrize('descending', [False, True])
@pytest.mark.parametrize(
    ('sort_key', 'expected'),
    [(None, 'badc'), ('name', 'abcd'), ('description', 'cbda')],
)
@pytest.mark.parametrize('limit', [1, 2, 3])
def test_pages_make_up_the_whole(
    profiles: Database,
    sort_key: str | None,
    expected: str,
    limit: int,
    descending: bool,
) -> None:
    """Equal values and missing ones must neither repeat nor fall between two pages."""
    order: dict[str, Any] = {'sort_key': sort_key, 'descending': descending}
    seen = page = _names(profiles, limit=limit, **order)
    while page:
        assert len(page) <= limit
        page = _names(profiles, limit=limit, marker=f'uuid-{seen[-1]}', **order)
        seen += page
    assert seen == (expected[::-1] if descending else expected)


def test_a_page_costs_one_select(profiles: Database) -> None:
    with statements(profiles) as seen:
        _names(
            profiles,
            limit=2,
            marker='uuid-b',
            sort_key='name',
            filters={'name': ('c',)},
        )
    assert len(seen) == 1


def test_a_marker_of_another_collection_is_unknown(profiles: Database) -> None:
    devices = query.Collection(Device, filters={}, sorts={})
    with pytest.raises(InvalidInput):
        profiles.read(query.page, select(Device.id), Query(marker='uuid-a'), devices)
