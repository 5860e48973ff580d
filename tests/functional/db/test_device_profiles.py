# SPDX-License-Identifier: Apache-2.0
"""Where the databases differ: the words with which they refuse, and races."""

import threading
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from cyborg_lite.db import arqs, device_profiles
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import (
    CyborgError,
    DeviceProfileExists,
    DeviceProfileInUse,
    InvalidInput,
)
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.queries import Query


def _new(name: str, uuid: str | None = None) -> DeviceProfile:
    return DeviceProfile(
        uuid=uuid or str(uuid4()),
        name=name,
        description=None,
        groups=({'resources:PGPU': '1'},),
        created_at=datetime.now(UTC),
    )


def test_of_many_who_create_a_name_at_once_one_succeeds(database: Database) -> None:
    ended: list[str] = []
    together = threading.Barrier(6)

    def create() -> None:
        together.wait()
        try:
            database.write(device_profiles.create, _new('a'))
        except CyborgError as error:
            ended.append(type(error).__name__)
        else:
            ended.append('made')

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == ['DeviceProfileExists'] * 5 + ['made']
    assert len(database.read(device_profiles.listed, Query())) == 1


def test_the_name_that_is_taken_is_told(database: Database) -> None:
    made = database.write(device_profiles.create, _new('a'))
    with pytest.raises(DeviceProfileExists, match='profile a already exists'):
        database.write(device_profiles.create, _new('a'))
    with pytest.raises(DeviceProfileExists, match=made.uuid):
        database.write(device_profiles.create, _new('b', made.uuid))


def test_the_foreign_key_keeps_a_profile_in_use(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.write(device_profiles.create, _new('a'))
    database.write(arqs.create, 'a', None)
    monkeypatch.setattr(device_profiles, '_check_unused', lambda *_: None)
    with pytest.raises(DeviceProfileInUse, match='profile a is in use'):
        database.write(device_profiles.delete, ['a'])


def test_the_order_is_that_of_the_words_on_every_database(database: Database) -> None:
    for name in 'bdac':
        database.write(device_profiles.create, _new(name))
    seen = ''
    while True:
        marker = _uuid(database, seen[-1]) if seen else None
        query = Query(sort_key='updated_at', limit=1, marker=marker)
        rows = database.read(device_profiles.listed, query)
        if not rows:
            break
        seen += rows[0].name
    # None was updated: all are equal, so the order is that of creation.
    assert seen == 'bdac'
    query = Query(sort_key='name', descending=True)
    rows = database.read(device_profiles.listed, query)
    assert ''.join(profile.name for profile in rows) == 'dcba'


def _uuid(database: Database, name: str) -> str:
    [found] = database.read(device_profiles.listed, Query(filters={'name': (name,)}))
    return found.uuid


@pytest.mark.parametrize('value', ['\0', '\ud800'])
def test_a_filter_that_cannot_be_stored_finds_nothing(
    database: Database, value: str
) -> None:
    query = Query(filters={'name': (value,)})
    assert database.read(device_profiles.listed, query) == ()


@pytest.mark.parametrize('marker', ['\0', '\ud800', 'x' * 300])
def test_a_marker_that_cannot_be_is_refused(database: Database, marker: str) -> None:
    with pytest.raises(InvalidInput):
        database.read(device_profiles.listed, Query(marker=marker))


@pytest.mark.parametrize('descending', [False, True])
def test_profiles_are_picked_and_paged_by_their_switches(
    database: Database, descending: bool
) -> None:
    """Databases differ in what a truth value is, and whether false comes before it."""
    for number in range(6):
        profile = replace(_new(f'p{number}'), enabled=number % 3 > 0, is_public=True)
        database.write(device_profiles.create, profile)
    wanted = Query({'is_public': ('true',)}, 4, None, 'enabled', descending)
    first = database.read(device_profiles.listed, wanted)
    rest = replace(wanted, marker=first[-1].uuid)
    met = [*first, *database.read(device_profiles.listed, rest)]
    ordered = ['p0', 'p3', 'p1', 'p2', 'p4', 'p5']
    assert [one.name for one in met] == ordered[:: -1 if descending else 1]
    disabled = Query({'enabled': ('false',)})
    found = database.read(device_profiles.listed, disabled)
    assert [one.name for one in found] == ['p0', 'p3']
