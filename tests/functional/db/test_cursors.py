# SPDX-License-Identifier: Apache-2.0
"""Pages of lists of the API while rows are deleted and added, on each database."""

import base64
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device, DeviceProfile
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model import cursors
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.cursors import Cursor
from cyborg_lite.model.queries import SORT_KEYS, Page, Query
from tests.builders.paged_rows import add_row, delete_row
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import Client
from tests.support.sql_statements import statements

_WITHOUT_CURSORS: Final = {'attributes', 'bitstreams', 'hosts', 'usages'}
_SORT_KEYS: Final = {
    path: keys for path, keys in SORT_KEYS.items() if path not in _WITHOUT_CURSORS
}
_KEYS: Final = {'accelerator_requests': 'arqs'}
_ROWS: Final = 9
"""Rows of a list, of which a page has two."""


@pytest.fixture
def newest(database: Database) -> Client:
    """Return a client of an API whose lists come from the database."""
    return Client(LocalConductor(database)).at('2.7')


def fill(database: Database, collection: str) -> None:
    """Add the rows of a list."""
    for number in range(_ROWS):
        database.write(add_row, collection, number)


def list_uuids(client: Client, collection: str, query: str) -> tuple[list[str], str]:
    """Return the uuids of a page, and the query of the next page or an empty text."""
    answer = client.get(f'/{collection}?{query}')
    assert answer.status == 200, answer.body
    key = _KEYS.get(collection, collection)
    links = answer.json.get(f'{key}_links', [])
    href = links[0]['href'] if links else ''
    return [item['uuid'] for item in answer.json[key]], urlsplit(href).query


def walk(client: Client, collection: str, query: str) -> Iterator[list[str]]:
    """Yield the pages of a list."""
    while query:
        page, query = list_uuids(client, collection, query)
        yield page


@pytest.mark.parametrize('direction', ['asc', 'desc'])
@pytest.mark.parametrize(
    ('collection', 'sort_key'),
    [
        (collection, key)
        for collection, keys in _SORT_KEYS.items()
        for key in ('', *keys)
    ],
)
def test_pages_survive_deleted_and_added_rows(
    newest: Client, database: Database, collection: str, sort_key: str, direction: str
) -> None:
    fill(database, collection)
    query = f'limit=2&sort_dir={direction}' + (sort_key and f'&sort_key={sort_key}')
    expected, _ = list_uuids(newest, collection, query.replace('limit=2&', ''))
    added: set[str] = set()
    listed: list[str] = []
    for number, page in enumerate(walk(newest, collection, query)):
        listed += page
        if page:
            database.write(delete_row, collection, page[-1])
        added.add(database.write(add_row, collection, number))
        assert number < _ROWS, 'the list has no end'
    assert [uuid for uuid in listed if uuid not in added] == expected
    assert len(listed) == len(set(listed))


def test_page_with_filter_and_prefix_continues(
    newest: Client, database: Database
) -> None:
    fill(database, 'deployables')
    query = 'name_prefix=name-&driver_name=NVIDIA&sort_key=num_accelerators&limit=1'
    expected, _ = list_uuids(newest, 'deployables', query.replace('&limit=1', ''))
    assert len(expected) == 5
    listed: list[str] = []
    for page in walk(newest, 'deployables', query):
        listed += page
        for uuid in page:
            database.write(delete_row, 'deployables', uuid)
    assert listed == expected


def test_marker_of_uuid_remains_valid(newest: Client, database: Database) -> None:
    fill(database, 'devices')
    uuids, _ = list_uuids(newest, 'devices', '')
    for client in (newest, newest.at('2.4')):
        page, _ = list_uuids(client, 'devices', f'limit=2&marker={uuids[3]}')
        assert page == uuids[4:6]
    _, following = list_uuids(newest.at('2.4'), 'devices', 'limit=2')
    assert parse_qs(following)['marker'] == [uuids[1]]


def test_page_costs_as_many_statements_as_before(
    newest: Client, database: Database
) -> None:
    for collection in _SORT_KEYS.keys() - {'operations'}:  # a list since 2.7
        fill(database, collection)
        counts = []
        for client in (newest.at('2.4'), newest):
            _, following = list_uuids(client, collection, 'limit=2')
            with statements(database) as collected:
                list_uuids(client, collection, following)
            counts.append(len(collected))
        assert counts[0] == counts[1], collection


# --- rows that the caller does not see --------------------------------------------


def walk_rows(
    database: Database, read: Callable[..., Any], *arguments: object
) -> list[str]:
    """Return the uuids of all pages; each row is deleted after it is read."""
    query = Query(limit=1, needs_cursor=True)
    listed: list[str] = []
    while True:
        page = database.read(read, query, *arguments)
        assert isinstance(page, Page)
        if not page:
            return listed
        listed.append(page[0].uuid)
        assert page.cursor is not None
        collection = 'device_profiles' if read is profiles.list_profiles else None
        database.write(delete_row, collection or 'accelerator_requests', page[0].uuid)
        query = replace(query, cursor=page.cursor)


def test_arqs_of_other_projects_are_skipped(database: Database) -> None:
    fill(database, 'accelerator_requests')
    scope = Scope('project-1')
    expected = database.read(arqs.list_arqs, Query(), scope)
    assert walk_rows(database, arqs.list_arqs, scope) == [arq.uuid for arq in expected]
    assert len(expected) == 4


def test_private_profiles_are_skipped(database: Database) -> None:
    fill(database, 'device_profiles')
    expected = database.read(profiles.list_profiles, Query(), 'project')
    listed = walk_rows(database, profiles.list_profiles, 'project')
    assert listed == [profile.uuid for profile in expected]
    assert len(expected) == 3


def _make_unreadable(session: Session) -> None:
    rows = update(Device).where(Device.control_address.in_(['0000:01:00.0']))
    session.execute(rows.values(status='no status'))


def test_unreadable_row_is_skipped(newest: Client, database: Database) -> None:
    fill(database, 'devices')
    database.write(_make_unreadable)
    expected, _ = list_uuids(newest, 'devices', 'sort_key=status')
    assert len(expected) == _ROWS - 1
    listed: list[str] = []
    for page in walk(newest, 'devices', 'sort_key=status&limit=2'):
        listed += page
        if page:
            database.write(delete_row, 'devices', page[-1])
    assert listed == expected


def _describe(session: Session, text: str) -> None:
    session.execute(update(DeviceProfile).values(description=text))


def test_long_value_falls_back_to_uuid(newest: Client, database: Database) -> None:
    fill(database, 'device_profiles')
    database.write(_describe, 'x' * 5000)
    query = 'sort_key=description&limit=4'
    pages = list(walk(newest, 'device_profiles', query))
    assert [len(page) for page in pages] == [4, 4, 1]
    page, following = list_uuids(newest, 'device_profiles', query)
    assert parse_qs(following)['marker'] == [page[-1]]


# --- invalid cursors --------------------------------------------------------------

# No statement depends on a refused cursor: one database is enough.
_ONE_DATABASE: Final = pytest.mark.parametrize('database', ['sqlite'], indirect=True)
_POSITION: Final = Cursor('devices', None, False, None, 1)
_REFUSED: Final = (
    replace(_POSITION, collection='deployables'),
    replace(_POSITION, sort_key='model', value='T4'),
    replace(_POSITION, descending=True),
    replace(_POSITION, row=2**31),
    replace(_POSITION, row=-(2**31) - 1),
    replace(_POSITION, row=10**40),
)
_VALUES: Final = {
    'model': (5, True),
    'created_at': (
        'yesterday',
        '',
        7,
        '2026-11-21T10:00:00',
        '0001-01-01T00:00:00+14:00',
        '9999-12-31T23:59:59-14:00',
        '2026-W47',
    ),
}


@_ONE_DATABASE
@pytest.mark.parametrize('cursor', _REFUSED, ids=str)
def test_cursor_of_another_list_is_refused(newest: Client, cursor: Cursor) -> None:
    answer = newest.get(f'/devices?limit=2&marker={cursors.encode(cursor)}')
    assert answer.status == 400
    assert 'next link' in answer.fault


@_ONE_DATABASE
@pytest.mark.parametrize(
    ('sort_key', 'value'),
    [(key, value) for key, values in _VALUES.items() for value in values],
)
def test_cursor_with_wrong_value_is_refused(
    newest: Client, sort_key: str, value: cursors.Value
) -> None:
    cursor = replace(_POSITION, sort_key=sort_key, value=value)
    path = f'/devices?sort_key={sort_key}&marker={cursors.encode(cursor)}'
    answer = newest.get(path)
    assert answer.status == 400
    assert 'invalid position' in answer.fault


@_ONE_DATABASE
@pytest.mark.parametrize(
    ('collection', 'sort_key', 'value'),
    [
        ('deployables', 'num_accelerators', 2**31),
        ('deployables', 'num_accelerators', '1'),
        ('deployables', 'num_accelerators', True),
        ('device_profiles', 'enabled', 'true'),
        ('device_profiles', 'enabled', 1),
    ],
)
def test_cursor_with_wrong_type_is_refused(
    newest: Client, collection: str, sort_key: str, value: cursors.Value
) -> None:
    cursor = replace(_POSITION, collection=collection, sort_key=sort_key, value=value)
    path = f'/{collection}?sort_key={sort_key}&marker={cursors.encode(cursor)}'
    assert newest.get(path).status == 400


@pytest.mark.parametrize(
    'cursor',
    [
        replace(_POSITION, row=-(2**31)),
        replace(_POSITION, row=2**31 - 1),
        replace(_POSITION, sort_key='model', value='x' * 1000),
        replace(_POSITION, sort_key='model', value='\'"\\%_ é💻'),
        replace(_POSITION, sort_key='created_at', value='0002-01-01T00:00:00+14:00'),
        replace(_POSITION, sort_key='created_at', value='9998-12-31T23:59:59.9-14:00'),
        replace(_POSITION, sort_key='created_at'),
        Cursor('deployables', 'num_accelerators', False, -(2**31), 1),
        Cursor('arqs', 'uuid', False, '', 2**31 - 1),
    ],
    ids=str,
)
@pytest.mark.parametrize('direction', ['asc', 'desc'])
def test_cursor_at_limit_is_accepted(
    newest: Client, cursor: Cursor, direction: str
) -> None:
    marker = cursors.encode(replace(cursor, descending=direction == 'desc'))
    path = {'arqs': 'accelerator_requests'}.get(cursor.collection, cursor.collection)
    order = f'&sort_key={cursor.sort_key}' if cursor.sort_key else ''
    answer = newest.get(f'/{path}?sort_dir={direction}{order}&marker={marker}')
    assert answer.status == 200, answer.body


_ANYTHING: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    10**30,
    1.5,
    '',
    'devices',
    'x\0',
    '\ud800',
    'é💻',
    "'; --",
    '2026-11-21T10:00:00+00:00',
    '0001-01-01',
    [],
    {},
)
_TIMES: Final = ('created_at', 'updated_at', 'model', None)


def test_no_cursor_causes_server_error(newest: Client, database: Database) -> None:
    fill(database, 'devices')
    source, statuses = random.Random(31), Counter[int]()
    for _ in range(400):
        sort_key = source.choice(_TIMES)
        fields: list[Any] = [1, 'devices', sort_key, False, None, 1]
        for place in source.sample(range(len(fields)), source.choice([1, 1, 1, 2])):
            fields[place] = source.choice(_ANYTHING)
        text = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()
        order = f'&sort_key={sort_key}' if sort_key else ''
        answer = newest.get(f'/devices?marker={text.rstrip("=")}{order}')
        statuses[answer.status] += 1
    assert statuses.keys() == {200, 400}


def test_page_after_last_row_is_empty(newest: Client, database: Database) -> None:
    fill(database, 'services')
    _, following = list_uuids(newest, 'services', 'limit=9')
    assert list_uuids(newest, 'services', following) == ([], '')
